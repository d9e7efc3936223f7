"""The planner wakes exactly when something falls due, and not for what lets no job start."""

import pytest

from controller.desk import SITE, Desk
from muster.backends.simulated.attempt import Behaviour
from muster.controller.loop.triggers import PlanTriggers
from muster.controller.use_cases.job_actions import JobAction
from muster.model.cluster import NodesReserved
from muster.model.event import ClusterSeen, Event, JobCheckpointed, JobStarted
from muster.model.job import Dependency, DependencyKind, Exited, JobState
from muster.model.value import Duration, Instant, JobId, NodeId, QueuePath, replace
from muster.stores.base import Batch


def placed_at(desk: Desk, job: JobId) -> Instant:
    return desk.record.allocations[job].placed_at


def after(kind: DependencyKind, job: JobId, delay_s: int = 0) -> tuple[Dependency, ...]:
    return (Dependency(kind=kind, job=job, delay=Duration(delay_s * 1_000)),)


def test_a_job_starts_at_its_begin_time() -> None:
    desk = Desk()
    job = desk.submits(begin_at=Instant(12_345), lasts=600)

    desk.lets_pass(60)

    assert placed_at(desk, job) == 12_345


def test_after_a_failure_a_job_starts_when_its_pause_is_over() -> None:
    desk = Desk(nodes=1)
    job = desk.submits(gpus=1, lasts=600)
    desk.backend.fail_node(NodeId("n1"), Instant(10_000), Instant(10_500))

    desk.lets_pass(60)

    assert desk.job(job).attempt == 2
    assert placed_at(desk, job) == 11_000


@pytest.mark.parametrize(
    ("kind", "starts_at"),
    [
        (DependencyKind.AFTER, 7_000),
        (DependencyKind.AFTER_OK, 27_000),
        (DependencyKind.AFTER_ANY, 27_000),
    ],
)
def test_a_dependency_with_a_delay_is_met_when_the_delay_is_over(
    kind: DependencyKind, starts_at: int
) -> None:
    desk = Desk()
    first = desk.submits(lasts=20)
    second = desk.submits(after=after(kind, first, delay_s=7), lasts=600)

    desk.lets_pass(60)

    assert placed_at(desk, second) == starts_at


def test_a_delay_counts_from_a_start_that_was_before_the_request() -> None:
    desk = Desk()
    first = desk.submits(lasts=600)
    desk.lets_pass(5)

    second = desk.submits(after=after(DependencyKind.AFTER, first, delay_s=7), lasts=600)
    desk.lets_pass(60)

    assert placed_at(desk, second) == 7_000


def test_a_delay_counts_from_the_end_of_a_job_that_was_cancelled_while_it_waited() -> None:
    desk = Desk(gpus=1)
    desk.submits(gpus=0, lasts=5)
    first = desk.submits(begin_at=Instant(600_000))
    second = desk.submits(after=after(DependencyKind.AFTER_NOT_OK, first, delay_s=7), lasts=600)
    desk.lets_pass(10)

    desk.asks("ada", JobAction.CANCEL, first)
    desk.lets_pass(60)

    assert placed_at(desk, second) == 17_000


def test_a_job_that_waits_for_a_start_starts_with_it() -> None:
    desk = Desk()
    first = desk.submits(begin_at=Instant(3_000), lasts=600)
    second = desk.submits(after=after(DependencyKind.AFTER, first), lasts=600)

    desk.lets_pass(10)

    assert (placed_at(desk, first), placed_at(desk, second)) == (3_000, 3_000)


def test_a_job_fails_in_the_moment_in_which_it_can_no_longer_meet_its_deadline() -> None:
    desk = Desk(gpus=1)
    desk.submits(lasts=600)
    desk.lets_pass(0)
    late = desk.submits(limit_s=30, deadline=Instant(60_000))

    desk.lets_pass(30)
    assert desk.state(late) == JobState.PENDING
    desk.lets_pass(1)

    assert desk.state(late) == JobState.FAILED


@pytest.mark.parametrize("will_not_wait", [True, False])
def test_who_will_not_wait_for_what_cannot_be_is_cancelled(*, will_not_wait: bool) -> None:
    desk = Desk()
    first = desk.submits()
    desk.will_go(first, Behaviour(work=Duration(5_000), end=Exited(code=1)))
    other = desk.submits(lasts=5)
    kind = DependencyKind.AFTER_OK
    job = desk.submits(after=after(kind, first), cancel_if_hopeless=will_not_wait)
    either = (*after(kind, first), replace(*after(kind, other), way=1))
    patient = desk.submits(after=either, cancel_if_hopeless=will_not_wait, lasts=5)

    desk.lets_pass(30)

    assert desk.state(first) is JobState.FAILED
    assert desk.state(job) is (JobState.CANCELLED if will_not_wait else JobState.PENDING)
    assert desk.state(patient) is JobState.COMPLETED


def test_what_was_kept_for_a_reservation_is_used_when_it_is_over() -> None:
    desk = Desk(gpus=4)
    kept = NodesReserved(
        name="upgrade",
        nodes=(NodeId("n1"),),
        begins_at=Instant(5_000),
        ends_at=Instant(40_000),
    )
    desk.changes_site(reservations=(kept,))
    job = desk.submits(limit_s=60, lasts=50)

    desk.lets_pass(60)

    assert placed_at(desk, job) == 40_000


def test_a_queue_gets_its_reservation_when_it_begins() -> None:
    desk = Desk(gpus=4)
    queue = QueuePath("a")
    desk.changes_site(
        reservations=(
            NodesReserved(
                name="course",
                nodes=(NodeId("n1"),),
                begins_at=Instant(5_000),
                ends_at=Instant(400_000),
                for_queue=queue,
            ),
        )
    )
    outside = desk.submits(limit_s=600, lasts=600)

    desk.lets_pass(10)

    assert desk.state(outside) == JobState.PENDING


@pytest.mark.parametrize(
    "event",
    [
        JobStarted(at=Instant(1), job=JobId(1), attempt=1),
        JobCheckpointed(at=Instant(1), job=JobId(1), attempt=1),
    ],
)
def test_what_gives_nobody_a_chance_is_no_reason_to_plan(event: Event) -> None:
    desk = Desk()
    attention = PlanTriggers(desk.record)

    assert not attention.note(batch(event), (), Instant(1))


def test_that_a_cluster_was_seen_is_no_reason_to_plan() -> None:
    desk = Desk()
    attention = PlanTriggers(desk.record)
    seen = ClusterSeen(at=Instant(1), cluster=next(iter(desk.record.clusters.values())))

    assert not attention.note(batch(seen), (), Instant(1))


def test_a_start_that_somebody_waits_for_is_a_reason_to_plan() -> None:
    desk = Desk(gpus=4)
    first = desk.submits(lasts=600)
    desk.submits(after=after(DependencyKind.AFTER, first))
    attention = PlanTriggers(desk.record)

    assert attention.note(batch(JobStarted(at=Instant(1), job=first, attempt=1)), (), Instant(1))


def test_a_new_leader_remembers_what_falls_due() -> None:
    desk = Desk(gpus=4)
    desk.changes_site(
        reservations=(
            NodesReserved(
                name="upgrade",
                nodes=(NodeId("n1"),),
                begins_at=Instant(90_000),
                ends_at=Instant(95_000),
            ),
        )
    )
    first = desk.submits(limit_s=60, lasts=50)
    desk.lets_pass(1)
    desk.submits(begin_at=Instant(40_000))
    desk.submits(limit_s=30, deadline=Instant(100_000), begin_at=Instant(50_000))
    desk.submits(after=after(DependencyKind.AFTER, first, delay_s=20))
    attention = PlanTriggers(desk.record)

    attention.look_around(Instant(1_000))
    due: list[int] = []
    while (at := attention.next_at()) is not None:
        assert attention.ring(at)
        due.append(at)

    assert due == [20_000, 40_000, 50_000, 70_001, 90_000, 95_000]


def test_what_is_due_rings_once() -> None:
    desk = Desk()
    desk.submits(begin_at=Instant(40_000))
    attention = PlanTriggers(desk.record)
    attention.look_around(Instant(0))

    assert not attention.ring(Instant(39_999))
    assert attention.ring(Instant(40_000))
    assert not attention.ring(Instant(40_000))


def batch(*events: Event) -> Batch:
    return Batch(version=99, next_job=JobId(99), events=events)


def test_a_site_that_did_not_change_is_not_remembered_twice() -> None:
    desk = Desk()
    kept = NodesReserved(
        name="upgrade", nodes=(), begins_at=Instant(50_000), ends_at=Instant(60_000)
    )
    desk.changes_site(reservations=(kept,))
    attention = PlanTriggers(desk.record)

    for _ in range(2):
        attention.note(batch(), (), Instant(0))
    attention.ring(Instant(50_000))

    assert attention.next_at() == 60_000
    assert replace(SITE, reservations=(kept,)) == desk.record.site
