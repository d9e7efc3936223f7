import sys
import time

import pytest

from muster.backends.local.hardware.smoking import RealSmokeTests, SmokeResult
from muster.model.value import DeviceId

GPU = DeviceId("GPU-1")


def test_a_gpu_cannot_be_tested_where_there_is_no_cuda() -> None:
    assert outcome(RealSmokeTests()) == SmokeResult(device=GPU, wrong=None)


@pytest.mark.parametrize(
    ("program", "wrong"),
    [
        ("raise SystemExit(0)", None),
        ("print('3 words'); raise SystemExit(1)", "3 words"),
        ("raise SystemExit(1)", "it ended with 1"),
        ("import os; os.kill(os.getpid(), 9)", "it was ended by signal 9"),
        (
            "import os; assert os.environ['CUDA_VISIBLE_DEVICES'] == 'GPU-1'",
            None,
        ),
    ],
)
def test_what_the_program_says_counts(program: str, wrong: str | None) -> None:
    assert outcome(RealSmokeTests((sys.executable, "-c", program))).wrong == wrong


def test_a_test_that_runs_is_not_begun_again() -> None:
    tests = RealSmokeTests((sys.executable, "-c", "input()"))
    tests.begin(GPU, GPU)
    tests.begin(GPU, GPU)

    found = ended(tests)

    assert len(found) == 1
    tests.close()


def outcome(tests: RealSmokeTests) -> SmokeResult:
    tests.begin(GPU, GPU)
    (found,) = ended(tests)
    tests.close()
    return found


def ended(tests: RealSmokeTests) -> tuple[SmokeResult, ...]:
    deadline = time.monotonic() + 60
    while not (found := tests.over()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found
