"""Dates come from the real cycle: where durations are known, they are what happens."""

from itertools import count

import pytest

from controller.desk import Desk
from muster.controller.dates.protocol import JobDate, Lessons
from muster.controller.use_cases.job_actions import JobAction
from muster.model.event import JobStarted
from muster.model.job import JobState
from muster.model.value import SECOND, Instant, JobId
from muster.simulator.course import MOST_PASSING
from muster.simulator.forecast import Forecaster
from muster.stores.base import HistoryQuery


def forecaster(desk: Desk) -> Forecaster:
    """One that learned from all that ended, with a watch that stands still."""
    made = Forecaster(lambda: 0.0)
    past = desk.simulation.parts.history.ended(HistoryQuery(limit=1_000)).jobs
    made.learn(Lessons(ended=tuple(reversed(past))))
    return made


def dates(desk: Desk, made: Forecaster) -> dict[JobId, JobDate]:
    snapshot = desk.record.snapshot(desk.simulation.now)
    found: dict[JobId, JobDate] = {}
    for told in made.dates(snapshot, desk.record.site):
        found.update({each.job: each for each in told})
    return found


def taught_desk(nodes: int = 1) -> Desk:
    """Where everybody names exact limits, and this is known."""
    desk = Desk(nodes=nodes)
    for number in range(60):
        desk.submits(gpus=4, lasts=20 + number, limit_s=20 + number)
    desk.lets_all_end()
    return desk


def really_started(desk: Desk) -> dict[JobId, Instant]:
    found: dict[JobId, Instant] = {}
    desk.simulation.watch(
        lambda batch, _: found.update(
            {each.job: each.at for each in batch.events if isinstance(each, JobStarted)}
        )
    )
    desk.lets_all_end()
    return found


def test_where_limits_are_exact_dates_are_what_happens() -> None:
    desk = taught_desk(nodes=2)
    jobs = [
        desk.submits(gpus=1 + each % 4, lasts=30 * each, limit_s=30 * each) for each in range(1, 12)
    ]
    desk.lets_pass(10)
    waiting = [job for job in jobs if desk.state(job) is JobState.PENDING]

    found = dates(desk, forecaster(desk))
    started = really_started(desk)

    assert list(found) == sorted(found, key=lambda job: started[job])
    assert set(found) == set(waiting)
    for job in waiting:
        assert found[job].date.middle == pytest.approx(started[job], abs=3 * SECOND)


def test_a_date_names_who_must_end_first() -> None:
    desk = taught_desk()
    running, waiting = (desk.submits(gpus=4, lasts=60, limit_s=60) for _ in range(2))
    desk.lets_pass(10)

    assert dates(desk, forecaster(desk))[waiting].date.after == (running,)


def test_the_same_world_has_the_same_dates() -> None:
    desk = Desk()
    for _ in range(20):
        desk.submits(gpus=2)
    desk.lets_pass(30)

    assert dates(desk, forecaster(desk)) == dates(desk, forecaster(desk))


def test_who_is_held_or_cannot_start_has_no_date() -> None:
    desk = taught_desk()
    desk.submits(gpus=4, lasts=60, limit_s=60)
    held, large, usual = (desk.submits(gpus=gpus, lasts=60, limit_s=60) for gpus in (4, 4, 4))
    desk.asks("ada", JobAction.HOLD, held)
    desk.lets_pass(1)

    found = dates(desk, forecaster(desk))

    assert set(found) == {large, usual}


def test_newcomers_that_may_go_first_are_counted() -> None:
    desk = Desk()
    for _ in range(40):
        desk.submits("bob", gpus=1, lasts=300, limit_s=300)
        desk.lets_pass(150)
    first = [desk.submits("ada", gpus=4, lasts=600) for _ in range(30)][-1]
    desk.lets_pass(1)
    made = forecaster(desk)
    for job in desk.record.jobs.values():
        made.note(job)

    assert dates(desk, made)[first].date.newcomers > 0


def test_who_came_later_and_may_start_before_is_named() -> None:
    desk = taught_desk()
    desk.submits(gpus=4, lasts=60, limit_s=60, job_class="normal")
    usual = desk.submits(gpus=4, lasts=60, limit_s=60, job_class="normal")
    desk.lets_pass(1)
    urgent = [desk.submits(gpus=4, lasts=60, limit_s=60, job_class="high") for _ in range(5)]
    desk.lets_pass(1)

    found = dates(desk, forecaster(desk))

    assert found[usual].date.passing == tuple(urgent[-MOST_PASSING:])
    assert all(found[job].date.passing == () for job in urgent)


def test_where_very_many_wait_all_get_a_date_in_their_order() -> None:
    desk = taught_desk(nodes=8)
    jobs = [desk.submits(gpus=4, lasts=600, limit_s=600) for _ in range(900)]
    desk.lets_pass(1)

    found = dates(desk, forecaster(desk))

    waiting = [job for job in jobs if desk.state(job) is JobState.PENDING]
    assert set(found) == set(waiting)
    middles = [found[job].date.middle for job in waiting]
    assert middles == sorted(middles)
    turns = len(jobs) / 8
    assert middles[-1] - desk.simulation.now == pytest.approx(600_000 * (turns - 1), rel=0.1)


def test_the_first_in_line_are_told_before_all_is_known() -> None:
    desk = taught_desk()
    for _ in range(60):
        desk.submits(gpus=4, lasts=600, limit_s=600)
    desk.lets_pass(1)
    ticks = count()
    made = Forecaster(lambda: next(ticks) / 100)

    frames = list(made.dates(desk.record.snapshot(desk.simulation.now), desk.record.site))

    assert len(frames) > 1
    assert 0 < len(frames[0]) < 59
    assert len(frames[-1]) == 59
    assert {each.foreseen.courses for each in frames[0]} == {1}


def test_a_date_says_how_many_courses_it_stands_on() -> None:
    few, many = taught_desk(), taught_desk(nodes=8)
    for desk, count_of in ((few, 10), (many, 900)):
        for _ in range(count_of):
            desk.submits(gpus=4, lasts=600, limit_s=600)
        desk.lets_pass(1)

    snapshot = many.record.snapshot(many.simulation.now)
    sketch = next(forecaster(many).dates(snapshot, many.record.site))

    assert {each.foreseen.courses for each in dates(few, forecaster(few)).values()} == {5}
    assert {each.foreseen.courses for each in sketch} == {0}
