"""The crash test in small: every kind of round once. `make chaos` plays hundreds.

The rest shows that it would notice: a test that cannot fail proves nothing.
"""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from chaos.__main__ import report
from chaos.blows import BLOWS
from chaos.evidence import Written, written_by_all
from chaos.load import JOB, Answers
from chaos.play import play
from chaos.verdict import Verdict, disagreements, judge_ends
from muster.api.jobs import AttemptDocument, JobDocument, ReasonDocument

PATIENCE_S = 10.0
EXITED = ReasonDocument(kind="exited", text="Ended by itself.")


@pytest.mark.slow
def test_nothing_is_lost_doubled_or_left_behind_when_everything_is_killed(tmp_path: Path) -> None:
    played = play(rounds=len(BLOWS), seed=11, folder=tmp_path / "chaos")

    lines = list(report(played))
    assert played.passed, "\n".join(lines)
    assert played.verdict.acknowledged > 0
    assert lines[-1].endswith("PASS")


def test_a_job_that_runs_twice_at_the_same_time_tells_so(evidence: Path) -> None:
    first = job(evidence, attempt=1, lasts_ms=60_000)
    wait_for(evidence, "start 1")

    second = job(evidence, attempt=2, lasts_ms=0)
    second.wait(PATIENCE_S)
    first.kill()
    first.wait(PATIENCE_S)

    assert written_by_all(evidence)[7].overlaps == ["OVERLAP 2 0 job-7-0", "OVERLAP 2 0 slot-n1-3"]


def test_attempts_one_after_the_other_do_not_overlap(evidence: Path) -> None:
    for attempt in (1, 2):
        job(evidence, attempt=attempt, lasts_ms=0).wait(PATIENCE_S)

    written = written_by_all(evidence)[7]

    assert written.overlaps == []
    assert written.attempts == {1, 2}
    assert written.ended_with(2, 0)


def test_an_acknowledged_job_that_nobody_knows_is_lost() -> None:
    found = Verdict(acknowledged=2)

    judge_ends(found, Answers(acknowledged={1: "a", 2: "b"}), [document(1)], [])

    assert found.lost == ["job 2 is unknown"]
    assert found.ended == 1


def test_a_refused_job_that_is_there_all_the_same_is_wrong() -> None:
    found = Verdict(acknowledged=0)

    judge_ends(found, Answers(refused={"job"}), [document(1)], [])

    assert found.wrong == ["job 1 (job) is there, though it was refused"]


def test_a_completed_job_that_never_wrote_of_its_end_is_wrong() -> None:
    written = Written()
    written.starts[1, 0] += 1

    assert list(disagreements(document(1), written)) == [
        "job 1 is recorded with exit code 0, and wrote of no such end"
    ]


def test_an_attempt_that_ran_and_is_not_recorded_is_wrong() -> None:
    written = Written(ends={(1, 0): 0})
    written.starts.update([(1, 0), (2, 0)])

    assert list(disagreements(document(1), written)) == [
        "job 1 ran attempt 2, which is not recorded"
    ]


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    for name in ("written", "locks"):
        (tmp_path / name).mkdir()
    return tmp_path


def job(evidence: Path, *, attempt: int, lasts_ms: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 our own program
        [sys.executable, "-I", "-S", JOB, evidence, "plain", str(lasts_ms)],
        env={
            "MUSTER_JOB_ID": "7",
            "MUSTER_ATTEMPT": str(attempt),
            "MUSTER_NODE": "n1",
            "RANK": "0",
            "CUDA_VISIBLE_DEVICES": "3",
        },
    )


def wait_for(evidence: Path, word: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    path = evidence / "written" / "7"
    while not (path.exists() and word in path.read_text()):
        assert time.monotonic() < deadline, f"the job never wrote: {word}"
        time.sleep(0.01)


def document(id: int) -> JobDocument:
    attempt = AttemptDocument(
        number=1,
        nodes=("n1",),
        started_at=None,
        ended_at="",
        reason=EXITED,
        gpu_seconds=0,
        lost_gpu_seconds=0,
    )
    return JobDocument(
        id=id,
        name="job",
        user="ada",
        queue="default",
        job_class="normal",
        state="completed",
        reason=EXITED,
        submitted_at="",
        exit_code=0,
        attempts=(attempt,),
    )
