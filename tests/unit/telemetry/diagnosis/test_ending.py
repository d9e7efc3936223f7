"""Why an attempt ended badly is told from how it ended, what it met and what it wrote."""

import pytest

from muster.model.event import JobStruck
from muster.model.history import Attempt
from muster.model.job import EndReason, Exited, NodeFailed, OutOfMemory, Preempted, TimedOut
from muster.model.resources import Resources
from muster.model.value import (
    HOUR,
    MINUTE,
    ClusterName,
    DeviceId,
    Duration,
    Instant,
    JobId,
    NodeId,
)
from muster.telemetry.diagnosis.ending import Ended, Ending, Past, ending_of
from muster.telemetry.diagnosis.interruptions import interruptions
from unit.telemetry.diagnosis.given import asked, report

N1 = NodeId("n1")


def attempt(why: EndReason | None, *, number: int = 1, begins: int = 0, lost: int = 0) -> Attempt:
    return Attempt(
        job=JobId(17),
        number=number,
        cluster=ClusterName("c"),
        pools=(),
        nodes=(N1,),
        amount=Resources(),
        placed_at=Instant(begins),
        started_at=Instant(begins),
        ended_at=Instant(begins + HOUR),
        why=why,
        lost_gpu_ms=lost,
    )


def ended(why: EndReason | None, *log: str, xid: int = 0, gpus: int = 1) -> Ended | None:
    struck = JobStruck(
        at=Instant(HOUR - 1_000), job=JobId(17), attempt=1, node=N1, device=DeviceId("g0"), xid=xid
    )
    return ending_of(
        Past(
            attempt=attempt(why),
            spec=asked(gpus=gpus).spec,
            report=report(),
            struck=(struck,) if xid else (),
            log=log,
        )
    )


@pytest.mark.parametrize(
    ("why", "line", "what"),
    [
        (
            Exited(code=1),
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
            Ending.GPU_MEMORY,
        ),
        (
            Exited(code=1),
            "RuntimeError: Found no NVIDIA driver on your system.",
            Ending.FAILED,
        ),
        (Exited(code=2), "Traceback: KeyError: 'loss'", Ending.FAILED),
    ],
)
def test_the_line_that_says_why_is_shown(why: EndReason, line: str, what: Ending) -> None:
    found = ended(why, "epoch 1", line)

    assert found is not None
    assert (found.what, found.line) == (what, line)


def test_a_job_that_asked_for_no_gpu_and_looked_for_one_is_told_so() -> None:
    found = ended(Exited(code=1), "no CUDA-capable device is detected", gpus=0)

    assert found is not None
    assert (found.what, found.text) == (Ending.NO_GPU, "it exited with 1: it asked for no GPU")


@pytest.mark.parametrize(
    ("why", "what"),
    [
        (OutOfMemory(node=N1), Ending.HOST_MEMORY),
        (TimedOut(limit=Duration(HOUR)), Ending.TIME_LIMIT),
        (NodeFailed(node=N1), Ending.HARDWARE),
        (Preempted(by=JobId(18)), Ending.LOST_WORK),
    ],
)
def test_how_it_ended_says_why(why: EndReason, what: Ending) -> None:
    found = ended(why)

    assert found is not None
    assert found.what is what


def test_who_made_room_is_told_for_whom_as_it_is_called_everywhere() -> None:
    over = attempt(Preempted(by=JobId(18)))

    plain, part = (
        ending_of(Past(attempt=over, spec=asked(gpus=1).spec, labels=labels))
        for labels in ({}, {JobId(18): "12_3"})
    )

    assert plain is not None
    assert part is not None
    assert plain.text.startswith("it made room for job 18, and lost ")
    assert part.text.startswith("it made room for job 12_3, and lost ")


def test_a_gpu_that_failed_shortly_before_is_why() -> None:
    found = ended(Exited(code=1), "Aborted", xid=79)

    assert found is not None
    assert (found.what, "Xid 79" in found.text) == (Ending.HARDWARE, True)


def test_an_error_of_the_program_itself_is_no_fault_of_the_gpu() -> None:
    found = ended(Exited(code=1), "Aborted", xid=31)

    assert found is not None
    assert found.what is Ending.FAILED


def test_what_ended_well_or_goes_on_is_not_explained() -> None:
    assert ended(Exited(code=0)) is None
    assert ended(None) is None


def test_interruptions_say_what_they_cost_and_how_often_to_save() -> None:
    attempts = (
        attempt(Preempted(by=JobId(18)), lost=2 * HOUR),
        attempt(NodeFailed(node=N1), number=2, begins=HOUR + 10 * MINUTE),
        attempt(None, number=3, begins=2 * HOUR + 40 * MINUTE),
    )
    saved = [Instant(minute * MINUTE) for minute in (30, 60, 90, 120)]

    found = interruptions(attempts, saved, saving_ms=4 * MINUTE)

    assert found is not None
    assert (found.times, found.by) == (2, {"node_failed": 1, "preempted": 1})
    assert (found.lost_gpu_ms, found.recovery_ms) == (2 * HOUR, 20 * MINUTE)
    assert found.saved_every_ms == 30 * MINUTE
    # The root of 2 x 1 min x 90 min.
    assert round((found.best_every_ms or 0) / MINUTE, 1) == 13.4


def test_a_job_that_was_never_interrupted_has_none() -> None:
    assert interruptions((attempt(Exited(code=1)),), (), 0) is None
