"""What is learned of how long jobs run, and the levels that follow from it."""

from muster.lifecycle.levels import Lifetimes, levels_from
from muster.model.gpu import GpuAsk
from muster.model.job import Ask, JobSpec, TaskGroup
from muster.model.levels import BRACKETS, PLAIN_LEVELS, SIZES, Levels, bracket_of, end_of
from muster.model.policy import Aim
from muster.model.value import HOUR, MINUTE, QueuePath, UserName


def request(gpus: int) -> JobSpec:
    group = TaskGroup(each=Ask(gpus=GpuAsk(count=gpus) if gpus else None))
    return JobSpec(name="job", user=UserName("ada"), queue=QueuePath("root"), groups=(group,))


def is_sorted(levels: Levels) -> bool:
    """Does a job never rise by running on?"""
    return all(list(row) == sorted(row) for row in levels.by_size)


def test_brackets_double() -> None:
    assert [bracket_of(ms * MINUTE) for ms in (0, 9, 10, 19, 20, 39, 40)] == [0, 0, 1, 1, 2, 2, 3]
    assert end_of(bracket_of(25 * MINUTE)) == 40 * MINUTE
    assert bracket_of(10**18) == BRACKETS - 1


def test_where_nothing_is_known_less_gpu_time_goes_first() -> None:
    levels = levels_from(Lifetimes(), None)

    assert levels == PLAIN_LEVELS
    assert is_sorted(levels)
    assert levels.level(request(8), 0) > levels.level(request(1), 0)
    assert levels.level(request(1), 40 * HOUR) > levels.level(request(8), HOUR)


def test_jobs_without_gpus_count_as_one() -> None:
    assert PLAIN_LEVELS.level(request(0), HOUR) == PLAIN_LEVELS.level(request(1), HOUR)


def test_sizes_whose_jobs_end_soon_go_before_sizes_whose_jobs_do_not() -> None:
    known = Lifetimes()
    for _ in range(100):
        known.end(2, ran=MINUTE)
        known.end(1, ran=100 * HOUR)

    levels = levels_from(known, None)

    assert levels.level(request(4), 0) < levels.level(request(2), 0)


def test_a_job_that_outlived_the_short_ones_may_rise_where_the_rest_soon_end() -> None:
    known = Lifetimes()
    for _ in range(200):
        known.end(0, ran=50 * HOUR)

    levels = levels_from(known, None)

    assert levels.level(request(1), 45 * HOUR) < levels.level(request(1), HOUR)


def test_jobs_that_are_not_over_count_for_what_they_outlived() -> None:
    known = Lifetimes()
    for _ in range(20):
        known.end(0, ran=MINUTE)
    live = [(0, 30 * HOUR)] * 200

    alone, all_of_them = levels_from(known, None), levels_from(known.with_live(live), None)

    assert alone.level(request(1), 0) < all_of_them.level(request(1), 0)


def test_for_little_slowdown_newcomers_who_may_be_short_go_before_those_who_will_soon_end() -> None:
    known = Lifetimes()
    for _ in range(10):
        known.end(0, ran=15 * MINUTE)
    for _ in range(90):
        known.end(0, ran=4 * HOUR)

    early = levels_from(known, None)
    even = levels_from(known, None, Aim.SLOWDOWN)

    assert early.level(request(1), 3 * HOUR) < early.level(request(1), 0)
    assert even.level(request(1), 0) < even.level(request(1), 3 * HOUR)


def test_for_little_slowdown_too_who_had_less_goes_first_where_nothing_is_known() -> None:
    levels = levels_from(Lifetimes(), None, Aim.SLOWDOWN)

    assert is_sorted(levels)
    assert levels.level(request(1), 0) == PLAIN_LEVELS.level(request(1), 0)
    assert levels.level(request(8), 0) > levels.level(request(1), 0)


def test_levels_stay_while_little_more_is_known() -> None:
    known = Lifetimes()
    for minutes in (1, 30, 300, 3_000):
        for _ in range(20):
            known.end(0, ran=minutes * MINUTE)
    before = levels_from(known, None)
    known.end(0, ran=60 * MINUTE)

    assert levels_from(known, before) == before
    assert len(before.by_size) == SIZES
