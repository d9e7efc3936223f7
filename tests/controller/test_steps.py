"""Steps are kept with their attempt, reported twice or late, and end with it at the latest."""

from controller.desk import SITE, Desk
from muster.controller.use_cases.job_actions import JobAction
from muster.controller.world.journal import Journal
from muster.controller.world.record import Record
from muster.model.event import StepBegan, StepEnded
from muster.model.resources import Resources
from muster.model.steps import Step
from muster.model.value import Instant, JobId, NodeId, replace
from muster.stores.base import EventQuery


def step(desk: Desk, job: JobId, number: int = 0, *, attempt: int = 1) -> Step:
    return Step(
        job=job,
        attempt=attempt,
        number=number,
        name="train",
        command="python train.py",
        tasks=1,
        nodes=(NodeId("n1"),),
        amount=Resources(cpu_milli=1_000),
        began_at=desk.simulation.now,
    )


def begins(desk: Desk, each: Step) -> Step:
    desk.applies(StepBegan(at=each.began_at, step=each))
    return each


def ends(desk: Desk, each: Step, code: int = 0) -> Step:
    over = replace(each, ended_at=desk.simulation.now, code=code)
    desk.applies(StepEnded(at=desk.simulation.now, step=over))
    return over


def kept(desk: Desk, job: JobId) -> tuple[Step, ...]:
    return desk.simulation.parts.history.steps((job,))


def running_job(desk: Desk, lasts: int = 60) -> JobId:
    job = desk.submits(gpus=1, lasts=lasts)
    desk.lets_pass(10)
    return job


def test_steps_of_a_running_job_are_kept_and_over_when_they_are() -> None:
    desk = Desk()
    job = running_job(desk)

    first, second = begins(desk, step(desk, job)), begins(desk, step(desk, job, 1))
    assert desk.record.steps.running() == (first, second)

    desk.lets_pass(5)
    over = ends(desk, first, code=3)

    assert desk.record.steps.running() == (second,)
    assert kept(desk, job) == (over, second)


def test_what_is_reported_twice_or_late_changes_nothing() -> None:
    desk = Desk()
    job = running_job(desk)
    over = ends(desk, begins(desk, step(desk, job)))
    version = desk.record.version

    begins(desk, step(desk, job))
    desk.lets_pass(1)
    ends(desk, step(desk, job), code=9)
    begins(desk, step(desk, job, 1, attempt=7))
    begins(desk, step(desk, JobId(999)))

    assert desk.record.version == version
    assert kept(desk, job) == (over,)


def test_a_step_whose_beginning_nobody_heard_of_is_kept() -> None:
    desk = Desk()
    job = running_job(desk)

    over = ends(desk, step(desk, job))

    assert kept(desk, job) == (over,)


def test_the_end_of_the_attempt_ends_its_steps() -> None:
    desk = Desk()
    job = running_job(desk)
    over = ends(desk, begins(desk, step(desk, job)))
    left = begins(desk, step(desk, job, 1))

    desk.lets_all_end()

    history = desk.simulation.parts.history
    ended_at = history.attempts((job,))[0].ended_at
    killed = replace(left, ended_at=ended_at, signal=9)
    assert kept(desk, job) == (over, killed)
    assert desk.record.steps.running() == ()
    kinds = [type(each.event).__name__ for each in history.events(EventQuery(job=job))]
    assert kinds[-2:] == ["StepEnded", "JobEnded"]


def test_a_step_that_begins_in_the_batch_that_ends_its_attempt_is_over() -> None:
    desk = Desk()
    job = running_job(desk)
    begun = step(desk, job)

    desk.simulation.write(
        lambda transaction: transaction.apply(StepBegan(at=transaction.now, step=begun))
    )
    desk.asks("root", JobAction.CANCEL, job)
    desk.lets_all_end()

    assert [each.signal for each in kept(desk, job)] == [9]


def test_the_next_attempt_begins_without_steps() -> None:
    desk = Desk()
    job = running_job(desk)
    begins(desk, step(desk, job))
    desk.asks("root", JobAction.REQUEUE, job)
    desk.lets_pass(30)
    assert desk.holds()[job].attempt == 2

    second = begins(desk, step(desk, job, attempt=2))

    assert desk.record.steps.running() == (second,)
    assert [(each.attempt, each.ended_at is None) for each in kept(desk, job)] == [
        (1, False),
        (2, True),
    ]


def test_who_loads_and_who_follows_know_the_same_steps() -> None:
    desk = Desk()
    store = desk.simulation.journal.store
    follower = Record(store.load(), {}, SITE)
    job = running_job(desk)
    ends(desk, begins(desk, step(desk, job)))
    desk.asks("root", JobAction.REQUEUE, job)
    desk.lets_pass(30)
    second = begins(desk, step(desk, job, 4, attempt=2))

    Journal(store, follower, lambda: Instant(0)).catch_up()

    assert follower.steps.running() == (second,)
    assert Record(store.load(), {}, SITE).steps.of(job) == follower.steps.of(job)
    assert follower.steps.of(job) == {4: second}
