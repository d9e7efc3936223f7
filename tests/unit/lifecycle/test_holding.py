from muster.lifecycle.holding import allocation_after
from muster.lifecycle.step import step
from muster.model.event import JobCheckpointed, JobEvent, JobStarted
from muster.model.job import Exited, NodeFailed
from muster.model.placement import Allocation
from muster.model.value import Instant, NodeId
from unit.lifecycle.given import (
    HERE,
    JOB,
    NOW,
    ended,
    job,
    placed,
    placement,
    preempted,
    requeue_asked,
    requeued,
    resized,
    started,
    suspended,
    updated,
)

LATER = Instant(NOW + 5_000)
LOST = NodeFailed(node=NodeId("n1"))


def holding(*events: JobEvent) -> Allocation | None:
    """What a new job holds after these."""
    allocation, moved = None, job()
    for event in events:
        moved = step(moved, event)
        allocation = allocation_after(allocation, event, moved)
    return allocation


def test_an_attempt_holds_what_it_was_given_from_the_moment_it_is_placed() -> None:
    assert holding(placed()) == Allocation(
        job=JOB, attempt=1, cluster=HERE, placements=(placement(),), placed_at=NOW
    )


def test_the_first_report_of_a_start_counts() -> None:
    again = JobStarted(at=LATER, job=JOB, attempt=1, handle="other")

    allocation = holding(placed(), started(), again)

    assert allocation is not None
    assert (allocation.started_at, allocation.handle) == (NOW, "h")


def test_the_newest_checkpoint_counts_whichever_is_reported_last() -> None:
    new = JobCheckpointed(at=LATER, job=JOB, attempt=1)
    old = JobCheckpointed(at=NOW, job=JOB, attempt=1)

    allocation = holding(placed(), started(), new, old)

    assert allocation is not None
    assert allocation.checkpointed_at == LATER


def test_a_resize_adds_each_placement_once() -> None:
    allocation = holding(placed(), started(), resized(), resized())

    assert allocation is not None
    assert [each.index for each in allocation.placements] == [0, 1]


def test_stopping_and_suspended_jobs_keep_their_allocation() -> None:
    assert holding(placed(), started(), preempted()) is not None
    assert holding(placed(), started(), suspended()) is not None
    assert holding(placed(), started(), requeue_asked()) is not None


def test_an_update_leaves_what_is_held_as_it_is() -> None:
    assert holding(placed(), started(), updated(priority=5)) == holding(placed(), started())
    assert holding(updated(priority=5)) is None


def test_nothing_is_held_after_the_end() -> None:
    assert holding(placed(), started(), ended(Exited(code=0))) is None
    assert holding(placed(), started(), requeued()) is None
    assert holding(placed(), started(), requeue_asked(), ended(LOST)) is None
    assert holding(placed(), started(), requeue_asked(), ended(LOST), requeue_asked()) is None


def test_a_repeated_placement_does_not_bring_an_old_attempt_back() -> None:
    assert holding(placed(), started(), ended(LOST), placed()) is None


def test_what_is_reported_of_an_old_attempt_leaves_the_new_one_alone() -> None:
    fresh = holding(placed(), ended(LOST), placed(2))

    assert holding(placed(), ended(LOST), placed(2), started(1), resized(1), ended(LOST)) == fresh
