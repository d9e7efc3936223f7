from itertools import takewhile

from controller.desk import spec
from muster.model.job import ArrayPart, Job
from muster.model.value import DAY, HOUR, MINUTE, Instant, JobId, replace
from muster.simulator.recent import RecentArrivals
from muster.simulator.run import Arrival


def submitted(number: int, at: int, **more: object) -> Job:
    return Job(id=JobId(number), spec=replace(spec(), **more), submitted_at=Instant(at))


def coming(recent: RecentArrivals, now: int, until: int, draw: int = 0) -> list[Arrival]:
    found = recent.coming(Instant(now), draw)
    return list(takewhile(lambda arrival: arrival.at < until, found))


def test_every_day_is_one_of_the_last_days() -> None:
    recent = RecentArrivals()
    for day in range(3):
        for number in range(4):
            recent.note(submitted(10 * day + number, day * DAY + number * HOUR, name=f"d{day}"))

    found = coming(recent, 3 * DAY, 6 * DAY)

    assert [each.at % DAY for each in found] == [0, HOUR, 2 * HOUR, 3 * HOUR] * 3
    assert {each.spec.name for each in found} <= {"d0", "d1", "d2"}
    assert found == coming(recent, 3 * DAY, 6 * DAY)


def test_other_draws_are_other_days() -> None:
    recent = RecentArrivals()
    for day in range(6):
        recent.note(submitted(day, day * DAY, name=f"d{day}"))

    drawn = {coming(recent, 6 * DAY, 7 * DAY, draw)[0].spec.name for draw in range(20)}

    assert len(drawn) > 3


def test_what_is_known_for_less_than_a_day_comes_again_and_again() -> None:
    recent = RecentArrivals()
    recent.note(submitted(1, 0))
    recent.note(submitted(2, HOUR))

    found = coming(recent, 2 * HOUR, 6 * HOUR)

    assert [each.at for each in found] == [2 * HOUR, 3 * HOUR, 4 * HOUR, 5 * HOUR]


def test_a_few_minutes_say_nothing_about_what_comes() -> None:
    recent = RecentArrivals()
    recent.note(submitted(1, 0))

    assert coming(recent, 10 * MINUTE, DAY) == []


def test_a_request_comes_again_without_its_dates_and_its_array() -> None:
    recent = RecentArrivals()
    part = ArrayPart(array=JobId(1), index=3)
    recent.note(submitted(1, 0, array=part, begin_at=Instant(5), deadline=Instant(HOUR)))

    (again,) = coming(recent, 2 * HOUR, 3 * HOUR)

    assert again.spec.array is None
    assert again.spec.begin_at is None
    assert again.spec.deadline is None


def test_jobs_that_ended_may_be_noted_late_and_twice() -> None:
    recent = RecentArrivals()
    for number in (3, 1, 2, 1):
        recent.note(submitted(number, number * HOUR, name=f"j{number}"))

    found = coming(recent, 4 * HOUR, 7 * HOUR)

    assert [each.spec.name for each in found] == ["j1", "j2", "j3"]
