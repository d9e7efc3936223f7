import pytest

from muster.lifecycle.retry import JobOver, Retry, after_end, pause
from muster.model.job import (
    Cancelled,
    DeadlinePassed,
    EndReason,
    Exited,
    JobState,
    LaunchFailed,
    NodeFailed,
    OutOfMemory,
    Preempted,
    Requeued,
    RetryPolicy,
    Signaled,
    TimedOut,
)
from muster.model.queue import PreemptMode
from muster.model.value import Duration, Instant, NodeId, replace
from unit.lifecycle.given import ANN, OTHER, job

OWN_FAILURES: tuple[EndReason, ...] = (
    Exited(code=1),
    Signaled(signal=11),
    OutOfMemory(node=NodeId("n1")),
    LaunchFailed(text="no such image"),
)
LAST_WORDS: dict[EndReason, JobState] = {
    Exited(code=0): JobState.COMPLETED,
    TimedOut(limit=Duration(1)): JobState.FAILED,
    DeadlinePassed(deadline=Instant(1)): JobState.FAILED,
    Cancelled(by=ANN): JobState.CANCELLED,
    Preempted(by=OTHER, mode=PreemptMode.CANCEL): JobState.CANCELLED,
}
NO_FAULT: tuple[EndReason, ...] = (
    NodeFailed(node=NodeId("n1")),
    Preempted(by=OTHER),
    Preempted(by=OTHER, mode=PreemptMode.CHECKPOINT),
    Requeued(by=ANN),
)


@pytest.mark.parametrize("end", OWN_FAILURES, ids=repr)
def test_what_a_job_does_itself_uses_up_its_attempts(end: EndReason) -> None:
    two = job(max_attempts=2)

    assert after_end(two, end) == Retry(pause=Duration(100), used_up=True)
    assert after_end(replace(two, failures=1), end) == JobOver(state=JobState.FAILED)


@pytest.mark.parametrize(("end", "state"), LAST_WORDS.items(), ids=repr)
def test_some_ends_are_final_however_many_attempts_are_left(
    end: EndReason, state: JobState
) -> None:
    assert after_end(job(max_attempts=9), end) == JobOver(state=state)


@pytest.mark.parametrize("end", NO_FAULT, ids=repr)
def test_what_is_not_its_fault_never_uses_up_an_attempt(end: EndReason) -> None:
    often = replace(job(max_attempts=1), attempt=50)

    again = after_end(often, end)

    assert isinstance(again, Retry)
    assert not again.used_up


def test_a_job_that_will_not_be_requeued_is_over_when_it_loses_its_place() -> None:
    once = job(requeue=False)

    assert after_end(once, NodeFailed(node=NodeId("n1"))) == JobOver(state=JobState.FAILED)
    assert after_end(once, Preempted(by=OTHER)) == JobOver(state=JobState.CANCELLED)


def test_a_job_that_will_not_be_requeued_comes_back_when_somebody_asks_for_that() -> None:
    once = job(requeue=False)

    assert after_end(once, Requeued(by=ANN)) == Retry(pause=Duration(0), used_up=False)


def test_a_preempted_job_may_come_back_at_once_but_lost_nodes_make_it_pause_longer() -> None:
    first, third = replace(job(), attempt=1), replace(job(), attempt=3)
    lost = NodeFailed(node=NodeId("n1"))

    assert after_end(first, Preempted(by=OTHER)) == Retry(pause=Duration(0), used_up=False)
    assert after_end(first, lost) == Retry(pause=Duration(100), used_up=False)
    assert after_end(third, lost) == Retry(pause=Duration(900), used_up=False)


@pytest.mark.parametrize(
    ("nth", "expected"), [(1, 100), (2, 300), (3, 900), (4, 1_000), (1_000_000, 1_000)]
)
def test_pauses_grow_up_to_the_cap(nth: int, expected: int) -> None:
    policy = RetryPolicy(base=Duration(100), factor=3, cap=Duration(1_000))

    assert pause(policy, nth) == expected
