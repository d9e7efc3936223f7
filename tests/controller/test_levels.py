"""Service through the whole controller: it is counted, it rings, and it is learned from."""

from controller.desk import SITE, Desk
from muster.controller.use_cases.job_actions import JobAction
from muster.controller.world.levels import LearnedLevels
from muster.model.job import JobState
from muster.model.levels import PLAIN_LEVELS, bracket_of
from muster.model.policy import Aim, OrderWeights, Policy, PreemptPolicy
from muster.model.value import HOUR, MINUTE, SECOND, Instant, JobId, replace
from muster.stores.base import HistoryQuery

BY_SERVICE = replace(
    SITE,
    policy=Policy(
        order=OrderWeights(fair_share=0, age=0, service=10_000),
        preempt=PreemptPolicy(by_service=True),
        backfill_depth=0,
    ),
)


def started_at(desk: Desk, job: JobId) -> Instant | None:
    return desk.record.allocations[job].started_at


def test_a_job_is_stopped_when_it_has_run_for_twice_the_first_bracket_and_another_waits() -> None:
    desk = Desk(gpus=4, site=BY_SERVICE)
    old = desk.submits(gpus=4, lasts=36_000)
    desk.lets_pass(300)
    new = desk.submits(gpus=4, lasts=36_000)

    desk.lets_pass(899)
    assert desk.state(new) is JobState.PENDING

    desk.lets_pass(60)
    assert (desk.state(old), desk.state(new)) == (JobState.PENDING, JobState.RUNNING)
    assert started_at(desk, new) == 20 * MINUTE
    assert desk.job(old).ran == 20 * MINUTE


def test_they_take_turns_each_as_long_as_all_before_it() -> None:
    desk = Desk(gpus=4, site=BY_SERVICE)
    jobs = [desk.submits(gpus=4, lasts=36_000) for _ in range(2)]

    desk.lets_pass(3 * 3_600)

    attempts = [desk.job(job).attempt for job in jobs]
    assert max(attempts) <= 1 + bracket_of(3 * HOUR)
    assert min(attempts) >= 2


def test_the_time_that_a_job_was_suspended_does_not_count() -> None:
    desk = Desk(gpus=4, site=BY_SERVICE)
    job = desk.submits(gpus=4, lasts=3_600)
    desk.lets_pass(100)
    desk.asks("root", JobAction.SUSPEND, job)
    desk.lets_pass(1_000)
    assert desk.job(job).ran == 100 * SECOND

    desk.asks("root", JobAction.RESUME, job)
    desk.lets_all_end()

    assert desk.job(job).ran == desk.simulation.now - 1_000 * SECOND


def test_without_the_knobs_nobody_is_stopped_and_levels_are_plain() -> None:
    desk = Desk(gpus=4)
    old = desk.submits(gpus=4, lasts=36_000)
    desk.submits(gpus=4, lasts=36_000)

    desk.lets_pass(7_200)

    assert desk.state(old) is JobState.RUNNING
    assert desk.record.snapshot(desk.simulation.now).levels is PLAIN_LEVELS


def test_levels_are_learned_as_jobs_end_and_again_from_the_history() -> None:
    desk = Desk(gpus=4, site=BY_SERVICE)
    before = desk.record.snapshot(desk.simulation.now).levels
    for _ in range(30):
        desk.submits(gpus=4, lasts=30)
    desk.lets_all_end()
    now = desk.simulation.now

    learned = desk.record.snapshot(now).levels

    spec = desk.job(JobId(1)).spec
    assert learned.level(spec, 0) < before.level(spec, 0)
    again = LearnedLevels()
    again.relearn(desk.simulation.parts.history.ended(HistoryQuery(limit=100)).jobs)
    assert again.levels({}, {}, now).level(spec, 0) < before.level(spec, 0)


def test_levels_are_found_again_when_the_site_has_another_aim() -> None:
    desk = Desk(gpus=4, site=BY_SERVICE)
    job = desk.submits(gpus=4, lasts=36_000)
    spec = desk.job(job).spec
    early = desk.record.snapshot(desk.simulation.now).levels

    desk.changes_site(policy=replace(BY_SERVICE.policy, aim=Aim.SLOWDOWN))
    even = desk.record.snapshot(desk.simulation.now).levels

    assert even.level(spec, 10 * HOUR) > early.level(spec, 10 * HOUR)
    desk.changes_site(policy=BY_SERVICE.policy)
    assert desk.record.snapshot(desk.simulation.now).levels == early


def test_a_short_job_need_not_wait_for_one_that_will_soon_end_if_slowdown_counts() -> None:
    took = {aim: taken_by_a_short_job(aim) for aim in Aim}

    assert took[Aim.SLOWDOWN] < 15 * MINUTE
    assert took[Aim.COMPLETION] > 2 * HOUR


def taken_by_a_short_job(aim: Aim) -> int:
    """Most jobs take four hours, and a few ten minutes: one of each, the long one halfway."""
    desk = Desk(gpus=1, site=replace(BY_SERVICE, policy=replace(BY_SERVICE.policy, aim=aim)))
    for number in range(40):
        desk.submits(gpus=1, lasts=600 if number % 8 == 0 else 4 * 3_600)
        desk.lets_all_end()
    desk.submits(gpus=1, lasts=4 * 3_600)
    desk.lets_pass(2 * 3_600)
    short = desk.submits(gpus=1, lasts=600)
    came_at = desk.simulation.now
    while desk.job(short).state is not JobState.COMPLETED:
        desk.lets_pass(60)
    return desk.simulation.now - came_at
