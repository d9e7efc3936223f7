"""What backends are ordered to do after a change, and again after a restart."""

import pytest

from controller.desk import LAB, MAIN, SITE, Desk, spec
from muster.backends.base import Action, Continue, Forget, Limit, Stop, Suspend
from muster.controller.loop.cycle import BackendDriver
from muster.controller.loop.orders import Begin, Order, Refresh, orders_after, orders_again
from muster.controller.use_cases.job_actions import JobAction
from muster.controller.world.transaction import Change
from muster.lifecycle.holding import allocation_after
from muster.lifecycle.step import step
from muster.model.event import (
    CancelAsked,
    JobCheckpointed,
    JobEnded,
    JobEvent,
    JobPlaced,
    JobPreempted,
    JobResumed,
    JobStarted,
    JobSuspended,
    JobUpdated,
    RequeueAsked,
)
from muster.model.job import Cancelled, Exited, Job, Preempted, Requeued
from muster.model.placement import Allocation, Placement
from muster.model.queue import PreemptMode
from muster.model.resources import NOTHING
from muster.model.value import Duration, Instant, JobId, NodeId, UserName, replace

JOB = JobId(1)
AT = Instant(1_000)
ADA = UserName("ada")
GRACE = Duration(5_000)

PLACED = JobPlaced(
    at=AT,
    job=JOB,
    attempt=1,
    cluster=LAB,
    placements=(Placement(group="main", index=0, node=NodeId("n1"), pool=MAIN, amount=NOTHING),),
)
STARTED = JobStarted(at=AT, job=JOB, attempt=1)
SUSPENDED = JobSuspended(at=AT, job=JOB, attempt=1)


def preempted(mode: PreemptMode) -> JobPreempted:
    return JobPreempted(at=AT, job=JOB, attempt=1, by=JobId(2), mode=mode, grace=GRACE)


class Life:
    """A job and what it holds, event after event."""

    def __init__(self, *events: JobEvent) -> None:
        wanted = spec(job_class="normal", limit_s=60)
        self.job = Job(id=JOB, spec=wanted, submitted_at=Instant(0))
        self.held: Allocation | None = None
        for event in events:
            self.after(event)

    def after(self, event: JobEvent) -> list[Order]:
        """What follows from this event."""
        before, held = self.job, self.held
        self.job = step(before, event)
        self.held = allocation_after(held, event, self.job)
        change = Change(before=before, after=self.job, held=held, holds=self.held)
        return list(orders_after(change, SITE.classes))

    def again(self) -> list[Order]:
        assert self.held is not None
        return list(orders_again(self.job, self.held, SITE.classes))


LIMIT = Limit(job=JOB, attempt=1, ends_at=Instant(AT + 60_000))


def stop(why: Cancelled | Preempted | Requeued, *, checkpoint: bool = False) -> Stop:
    return Stop(job=JOB, attempt=1, why=why, grace=GRACE, checkpoint=checkpoint)


def test_who_is_placed_is_begun() -> None:
    life = Life()

    orders = life.after(PLACED)

    assert life.held is not None
    assert orders == [Begin(job=life.job, allocation=life.held)]


def test_that_it_runs_or_saved_something_is_no_news_for_its_backend() -> None:
    life = Life(PLACED)

    assert life.after(STARTED) == []
    assert life.after(JobCheckpointed(at=AT, job=JOB, attempt=1, path="there")) == []


@pytest.mark.parametrize(
    ("event", "order"),
    [
        (CancelAsked(at=AT, job=JOB, by=ADA), stop(Cancelled(by=ADA))),
        (RequeueAsked(at=AT, job=JOB, by=ADA), stop(Requeued(by=ADA))),
        (preempted(PreemptMode.REQUEUE), stop(Preempted(by=JobId(2)))),
        (
            preempted(PreemptMode.CHECKPOINT),
            stop(Preempted(by=JobId(2), mode=PreemptMode.CHECKPOINT), checkpoint=True),
        ),
        (preempted(PreemptMode.SUSPEND), Suspend(job=JOB, attempt=1)),
        (SUSPENDED, Suspend(job=JOB, attempt=1)),
        (JobEnded(at=AT, job=JOB, attempt=1, why=Exited(code=0)), Forget(job=JOB, attempt=1)),
    ],
)
def test_what_happens_to_a_running_job_is_said_once(event: JobEvent, order: Action) -> None:
    life = Life(PLACED, STARTED)

    assert life.after(event) == [order]
    assert life.after(event) == []


def test_a_job_that_goes_on_is_reported_to() -> None:
    life = Life(PLACED, STARTED, SUSPENDED)

    orders = life.after(JobResumed(at=AT, job=JOB, attempt=1))

    assert orders == [Continue(job=JOB, attempt=1)]


def test_who_stops_for_another_and_is_cancelled_then_is_reported_the_new_reason() -> None:
    life = Life(PLACED, STARTED, preempted(PreemptMode.REQUEUE))

    orders = life.after(CancelAsked(at=AT, job=JOB, by=ADA))

    assert orders == [stop(Cancelled(by=ADA))]


@pytest.mark.parametrize(("limit", "ends_at"), [(Duration(90_000), Instant(91_000)), (None, None)])
def test_another_time_limit_counts_from_the_start(
    limit: Duration | None, ends_at: Instant | None
) -> None:
    life = Life(PLACED, STARTED)
    wanted = replace(life.job.spec, time_limit=limit)

    orders = life.after(JobUpdated(at=Instant(5_000), job=JOB, spec=wanted, by=ADA))

    assert orders == [Limit(job=JOB, attempt=1, ends_at=ends_at)]


def test_a_waiting_job_concerns_no_backend() -> None:
    life = Life()

    assert life.after(CancelAsked(at=AT, job=JOB, by=ADA)) == []


def test_after_a_restart_an_attempt_that_nobody_saw_run_is_begun_again() -> None:
    life = Life(PLACED)

    assert [type(order) for order in life.again()] == [Begin]


@pytest.mark.parametrize(
    ("events", "orders"),
    [
        ((PLACED, STARTED), [Continue(job=JOB, attempt=1), LIMIT, Refresh]),
        ((PLACED, STARTED, SUSPENDED), [Suspend(job=JOB, attempt=1), LIMIT, Refresh]),
        (
            (PLACED, STARTED, CancelAsked(at=AT, job=JOB, by=ADA)),
            [stop(Cancelled(by=ADA))],
        ),
        (
            (PLACED, STARTED, preempted(PreemptMode.SUSPEND)),
            [Suspend(job=JOB, attempt=1)],
        ),
    ],
)
def test_after_a_restart_what_may_not_have_been_heard_is_said_again(
    events: tuple[JobEvent, ...], orders: list[Order | type[Refresh]]
) -> None:
    """What its containers may read is looked up when it is sent, whatever it was before."""
    life = Life(*events)

    refreshed = None if life.held is None else Refresh(job=life.job, allocation=life.held)
    assert life.again() == [refreshed if order is Refresh else order for order in orders]


def test_a_new_time_limit_is_said_again_after_a_restart() -> None:
    life = Life(PLACED, STARTED)
    life.job = replace(life.job, spec=replace(life.job.spec, time_limit=Duration(90_000)))
    assert life.held is not None
    life.held = replace(life.held, stood=Duration(5_000))

    began = life.held.started_at or life.held.placed_at

    assert Limit(job=JOB, attempt=1, ends_at=Instant(began + 95_000)) in life.again()


def test_after_a_restart_a_cancelled_attempt_is_begun_before_it_is_stopped() -> None:
    """Its backend may never have heard of it, and must say how it ended."""
    life = Life(PLACED, CancelAsked(at=AT, job=JOB, by=ADA))

    assert [type(order) for order in life.again()] == [Begin, Stop]


def test_a_new_leader_leaves_running_jobs_alone_and_stops_the_cancelled() -> None:
    desk = Desk(gpus=2)
    runs, leaves = desk.submits(lasts=600), desk.submits(lasts=600)
    desk.lets_pass(1)
    desk.asks("ada", JobAction.CANCEL, leaves)

    driver = BackendDriver(desk.simulation.parts)
    driver.take_over(desk.simulation.now)
    driver.act()
    desk.lets_pass(10)

    assert (desk.state(runs), desk.state(leaves)) == ("running", "cancelled")
    assert desk.job(runs).attempt == 1
