"""Whatever is reported, in whatever order, the laws of the lifecycle hold."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from muster.lifecycle.holding import allocation_after
from muster.lifecycle.step import NEXT, step
from muster.model.errors import ImpossibleMoveError
from muster.model.event import JobEvent
from muster.model.job import (
    FINAL,
    HOLDING,
    Cancelled,
    DeadlinePassed,
    EndReason,
    Exited,
    Job,
    JobState,
    LaunchFailed,
    NodeFailed,
    OutOfMemory,
    Preempted,
    Requeued,
    Signaled,
    TimedOut,
)
from muster.model.placement import Allocation
from muster.model.queue import PreemptMode
from muster.model.value import Duration, NodeId
from unit.lifecycle.given import (
    ANN,
    NOW,
    OTHER,
    cancel_asked,
    checkpointed,
    claim_dropped,
    claimed,
    ended,
    held,
    job,
    placed,
    preempted,
    released,
    requeue_asked,
    requeued,
    resized,
    resumed,
    started,
    suspended,
    updated,
)

ENDS: tuple[EndReason, ...] = (
    Exited(code=0),
    Exited(code=1),
    Signaled(signal=9),
    TimedOut(limit=Duration(1)),
    OutOfMemory(node=NodeId("n1")),
    NodeFailed(node=NodeId("n1")),
    Preempted(by=OTHER),
    Cancelled(by=ANN),
    Requeued(by=ANN),
    LaunchFailed(text="no"),
    DeadlinePassed(deadline=NOW),
)

UNNUMBERED: tuple[JobEvent, ...] = (
    held(),
    released(),
    claimed(),
    claim_dropped(),
    cancel_asked(),
    requeue_asked(),
    updated(max_attempts=4),
)


def about(attempt: int) -> tuple[JobEvent, ...]:
    return (
        placed(attempt),
        started(attempt),
        checkpointed(attempt),
        resized(attempt),
        suspended(attempt),
        resumed(attempt),
        requeued(attempt),
        *(preempted(mode, attempt) for mode in PreemptMode),
        *(ended(why, attempt) for why in ENDS),
    )


@st.composite
def histories(draw: st.DrawFn) -> tuple[Job, list[JobEvent]]:
    """Events of which half make sense: they are about the attempt that goes on or comes next."""
    begun = job(max_attempts=draw(st.integers(1, 4)), requeue=draw(st.booleans()))
    events: list[JobEvent] = []
    moved = begun
    for _ in range(draw(st.integers(0, 25))):
        event = draw(st.sampled_from(likely(moved) if draw(st.booleans()) else anything()))
        events.append(event)
        moved = stepped(moved, event)
    return begun, events


def likely(moved: Job) -> tuple[JobEvent, ...]:
    if moved.state is JobState.PENDING:
        return (placed(moved.attempt + 1),)
    return about(moved.attempt)


def anything() -> tuple[JobEvent, ...]:
    return (*UNNUMBERED, *about(0), *about(1), *about(2), *about(3))


def stepped(before: Job, event: JobEvent) -> Job:
    try:
        return step(before, event)
    except ImpossibleMoveError:
        return before


def moves_of(history: tuple[Job, list[JobEvent]]) -> Iterator[tuple[Job, JobEvent, Job]]:
    """Before, event, after; what is impossible is left out, as no controller would store it."""
    before, events = history
    for event in events:
        try:
            after = step(before, event)
        except ImpossibleMoveError:
            continue
        yield before, event, after
        before = after


@given(histories())
def test_no_move_leaves_the_table(history: tuple[Job, list[JobEvent]]) -> None:
    for before, _, after in moves_of(history):
        assert after.state is before.state or after.state in NEXT[before.state]


@given(histories())
def test_a_final_job_never_changes(history: tuple[Job, list[JobEvent]]) -> None:
    for before, _, after in moves_of(history):
        assert before.state not in FINAL or after == before


@given(histories())
def test_reported_twice_it_happens_once(history: tuple[Job, list[JobEvent]]) -> None:
    for _, event, after in moves_of(history):
        assert stepped(after, event) == after


@given(histories())
def test_counts_only_go_up_and_one_at_a_time(history: tuple[Job, list[JobEvent]]) -> None:
    for before, _, after in moves_of(history):
        assert after.attempt - before.attempt in {0, 1}
        assert after.failures - before.failures in {0, 1}
        assert after.failures < after.spec.max_attempts


@given(histories())
def test_what_a_state_promises_is_there(history: tuple[Job, list[JobEvent]]) -> None:
    for _, _, after in moves_of(history):
        assert after.claim is None or after.state is JobState.PENDING
        if after.state is JobState.STOPPING:
            assert isinstance(after.why, Preempted | Requeued | Cancelled)
        if after.state in FINAL:
            assert after.why is not None


@given(histories())
def test_a_job_has_an_allocation_exactly_while_an_attempt_goes_on(
    history: tuple[Job, list[JobEvent]],
) -> None:
    allocation: Allocation | None = None
    for _, event, after in moves_of(history):
        allocation = allocation_after(allocation, event, after)
        goes_on = after.state in HOLDING or after.state is JobState.SUSPENDED
        assert (allocation is not None) == goes_on
        assert allocation is None or allocation.attempt == after.attempt
        assert allocation_after(allocation, event, after) == allocation
