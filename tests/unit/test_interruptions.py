"""The examples, interrupted for real and often, by SIGTERM and by SIGKILL."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shape.source import ROOT, SRC

pytestmark = pytest.mark.slow

EXAMPLES = ROOT / "examples" / "checkpoint"
PATIENCE_S = 120
SAVES_WITHOUT_END = """
from muster.checkpoint import save
for step in range(1, 100_000):
    save(f"step-{step}.bin", lambda file: file.write(bytes([step % 256]) * 500_000))
    print("step", step, flush=True)
"""


class Script:
    """A script in a folder of its own, started again and again; all it says is in one file."""

    def __init__(self, folder: Path, *argv: str) -> None:
        self.folder = folder
        self.argv = argv
        self.log = folder / "log"
        self.log.touch()
        self.starts = 0

    def start(self) -> subprocess.Popen[bytes]:
        surroundings = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(SRC),
            "MUSTER_CHECKPOINT_PATH": str(self.folder / "checkpoints"),
            "MUSTER_RESTARTS": str(self.starts),
        }
        self.starts += 1
        with self.log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 -- our own examples
                self.argv, cwd=self.folder, env=surroundings, stdout=log, stderr=log
            )

    def finish(self) -> str:
        """Run it to its end; returns what it said last."""
        with self.start() as process:
            assert process.wait(PATIENCE_S) == 0, self.log.read_text()
        return self.lines()[-1]

    def interrupt(self, number: int, *, after: int) -> int:
        """Start it, send the signal when it has done so many steps, and return how it ended."""
        done = self.steps()
        with self.start() as process:
            for _ in deadline():
                if self.steps() >= done + after or process.poll() is not None:
                    break
            process.send_signal(number)
            return process.wait(PATIENCE_S)

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()

    def steps(self) -> int:
        return sum(line.startswith("step ") for line in self.lines())


@pytest.mark.parametrize("seed", range(3))
def test_however_often_it_is_interrupted_the_count_is_right_and_little_is_done_twice(
    seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)  # noqa: S311 -- the same moments each time
    script = Script(tmp_path, *counting(steps=300, every=10))

    kills = 0
    for _ in range(12):
        number = chance.choice([signal.SIGKILL, signal.SIGTERM])
        code = script.interrupt(number, after=chance.randrange(1, 25))
        kills += code == -signal.SIGKILL
        assert code in {-signal.SIGKILL, 128 + signal.SIGTERM, 0}, script.log.read_text()
    last = script.finish()

    assert last == f"counted 300 steps, total 45150, {script.starts - 1} restarts"
    assert kills > 0
    assert script.steps() <= 300 + 10 * kills


def test_an_interruption_that_is_announced_costs_nothing(tmp_path: Path) -> None:
    script = Script(tmp_path, *counting(steps=60, every=1_000))

    codes = [script.interrupt(signal.SIGTERM, after=7) for _ in range(5)]
    script.finish()

    assert codes == [128 + signal.SIGTERM] * 5
    assert script.steps() == 60


def test_a_kill_in_the_midst_of_saving_leaves_only_whole_checkpoints(tmp_path: Path) -> None:
    chance = random.Random(5)  # noqa: S311 -- the same moments each time
    script = Script(tmp_path, sys.executable, "-c", SAVES_WITHOUT_END)
    folder = tmp_path / "checkpoints"

    cut_short = 0
    for _ in range(15):
        script.interrupt(signal.SIGKILL, after=chance.randrange(1, 12))

        found = [path.read_bytes() for path in folder.glob("step-*")]
        assert found
        assert [each for each in found if each != each[:1] * 500_000] == []
        hidden = [name for name in os.listdir(folder) if name.startswith(".")]
        # Never more: each start clears away what the one before left.
        assert len(hidden) <= 1
        cut_short += len(hidden)

    assert cut_short > 0


def test_training_with_pytorch_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    python = python_with_torch()
    for name in ("calm", "rough"):
        (tmp_path / name).mkdir()
    train = (python, str(EXAMPLES / "train.py"), "--steps", "200", "--every", "20")

    calm = Script(tmp_path / "calm", *train).finish()
    rough = Script(tmp_path / "rough", *train)
    codes = [
        rough.interrupt(signal.SIGTERM, after=2),
        rough.interrupt(signal.SIGKILL, after=2),
    ]
    last = rough.finish()

    assert codes == [128 + signal.SIGTERM, -signal.SIGKILL]
    assert calm.startswith("trained 200 steps, loss ")
    assert last == calm.replace("0 restarts", "2 restarts")


def counting(*, steps: int, every: int) -> tuple[str, ...]:
    example = str(EXAMPLES / "count.py")
    return (sys.executable, example, f"--steps={steps}", f"--every={every}", "--pause=0.001")


def python_with_torch() -> str:
    for name in (sys.executable, "python3", "/usr/bin/python3"):
        found = shutil.which(name)
        if found and has_torch(found):
            return found
    pytest.skip("no Python with PyTorch here: on Debian, apt-get install python3-torch brings one")


def has_torch(python: str) -> bool:
    argv = [python, "-c", "import torch"]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0  # noqa: S603 -- ours


def deadline() -> Iterator[None]:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        yield
        time.sleep(0.001)
    pytest.fail("the script made no progress")
