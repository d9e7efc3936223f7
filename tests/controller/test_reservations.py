"""Reservations by the clock: when they begin, end and come back, and whom they take along."""

import pytest

from controller.desk import Desk
from muster.controller.world.reservations import current_window
from muster.model.cluster import Every, NodesReserved
from muster.model.job import JobState, TimedOut
from muster.model.value import DAY, HOUR, MINUTE, Duration, Instant, NodeId, UserName, replace

DEMO = NodesReserved(
    name="demo",
    nodes=(NodeId("n1"),),
    begins_at=Instant(5_000),
    ends_at=Instant(40_000),
    for_users=(UserName("ada"),),
    by_name=True,
)


def test_a_job_that_still_runs_when_its_reservation_ends_is_ended() -> None:
    desk = desk_with(DEMO)
    job = desk.submits(reservation="demo", limit_s=600, lasts=600)

    desk.lets_pass(39)
    before = desk.state(job)
    desk.lets_pass(60)

    assert before is JobState.RUNNING
    assert desk.state(job) is JobState.FAILED
    assert isinstance(desk.job(job).why, TimedOut)


def test_who_did_not_ask_for_the_reservation_by_name_is_left_alone() -> None:
    desk = desk_with(replace(DEMO, by_name=False))
    job = desk.submits(limit_s=600, lasts=600)

    desk.lets_pass(100)

    assert desk.state(job) is JobState.RUNNING


def test_a_reservation_that_is_made_longer_leaves_its_jobs_more_time() -> None:
    desk = desk_with(DEMO)
    job = desk.submits(reservation="demo", limit_s=600, lasts=70)
    desk.lets_pass(30)
    desk.changes_site(reservations=(replace(DEMO, ends_at=Instant(100_000)),))

    desk.lets_all_end()

    assert desk.state(job) is JobState.COMPLETED


def test_a_reservation_that_is_cut_short_ends_its_jobs() -> None:
    desk = desk_with(DEMO)
    job = desk.submits(reservation="demo", limit_s=600, lasts=600)
    desk.lets_pass(20)
    desk.changes_site(reservations=(replace(DEMO, ends_at=Instant(10_000)),))

    desk.lets_pass(1)
    desk.lets_pass(60)

    assert desk.state(job) is JobState.FAILED


def test_jobs_of_a_flexible_reservation_begin_before_it_and_stay() -> None:
    desk = desk_with(replace(DEMO, flexible=True))
    job = desk.submits(reservation="demo", limit_s=600, lasts=100)

    desk.lets_pass(1)
    early = desk.state(job)
    desk.lets_all_end()

    assert early in {JobState.STARTING, JobState.RUNNING}
    assert desk.state(job) is JobState.COMPLETED


def test_a_job_starts_in_the_next_window_of_a_reservation_that_comes_back() -> None:
    desk = desk_with(replace(DEMO, every=Every.DAILY))
    desk.lets_pass(60)
    job = desk.submits(reservation="demo", lasts=10)

    desk.lets_pass(3_600)
    waiting = desk.state(job)
    desk.lets_all_end()

    assert waiting is JobState.PENDING
    assert desk.state(job) is JobState.COMPLETED
    assert desk.simulation.now > DAY


def test_outsiders_leave_every_window_free() -> None:
    desk = desk_with(replace(DEMO, every=Every.HOURLY))
    desk.lets_pass(60)
    short = desk.submits("bob", limit_s=600, lasts=1)
    long = desk.submits("bob", limit_s=4_000, lasts=1)

    desk.lets_pass(600)

    assert desk.state(short) is JobState.COMPLETED
    assert desk.state(long) is JobState.PENDING


def test_a_window_ends_the_jobs_that_began_in_it() -> None:
    desk = desk_with(replace(DEMO, every=Every.HOURLY))
    desk.lets_pass(60)
    job = desk.submits(reservation="demo", lasts=6_000)

    desk.lets_pass(3_560)
    begun = desk.state(job)
    desk.lets_pass(60)

    assert begun is JobState.RUNNING
    assert isinstance(desk.job(job).why, TimedOut)


def test_pretend_time_ends_though_a_reservation_comes_back_for_ever() -> None:
    desk = desk_with(replace(DEMO, every=Every.HOURLY))
    job = desk.submits("bob", limit_s=4_000)

    desk.lets_all_end()

    assert desk.state(job) is JobState.PENDING


# 2026-10-22 is a Thursday; three days later clocks in Berlin go back by an hour.
THURSDAY = Instant(1_792_648_800_000)
BERLIN = replace(DEMO, begins_at=THURSDAY, ends_at=Instant(THURSDAY + HOUR), zone="Europe/Berlin")


@pytest.mark.parametrize(
    ("every", "hours"),
    [
        (Every.HOURLY, [1, 2, 3]),
        (Every.DAILY, [24, 48, 73]),
        (Every.WEEKDAY, [24, 97, 121]),
        (Every.WEEKEND, [48, 73, 217]),
        (Every.WEEKLY, [169, 337, 505]),
    ],
)
def test_windows_follow_the_calendar_of_their_zone(every: Every, hours: list[int]) -> None:
    each = replace(BERLIN, every=every)
    found: list[int] = []
    for _ in range(3):
        each = current_window(each, each.ends_at)
        found.append((each.begins_at - THURSDAY) // HOUR)
        assert each.ends_at - each.begins_at == HOUR

    assert found == hours


@pytest.mark.parametrize("every", Every)
@pytest.mark.parametrize("later", [0, HOUR + 1, 5 * DAY, 100 * DAY + 7 * MINUTE])
def test_the_window_is_the_one_that_is_open_or_the_next(every: Every, later: Duration) -> None:
    each = replace(BERLIN, every=every)
    now = Instant(THURSDAY + later)
    step = each
    while step.ends_at <= now:
        step = current_window(step, step.ends_at)

    found = current_window(each, now)

    assert (found.begins_at, found.ends_at) == (step.begins_at, step.ends_at)
    assert current_window(found, now) == found


def desk_with(reservation: NodesReserved) -> Desk:
    desk = Desk(gpus=4)
    desk.changes_site(reservations=(reservation,))
    return desk
