import math
import random

import pytest

from muster.lifecycle.durations import Durations
from muster.model.gpu import GpuAsk
from muster.model.job import Ask, JobSpec, TaskGroup
from muster.model.value import HOUR, MINUTE, Duration, JobId, QueuePath, UserName


def spec(limit: int | None = None, name: str = "train") -> JobSpec:
    return JobSpec(
        name=name,
        user=UserName("ann"),
        queue=QueuePath("nlp"),
        groups=(TaskGroup(each=Ask(gpus=GpuAsk(count=1))),),
        time_limit=None if limit is None else Duration(limit),
    )


def spread(seed: int, middle: float, deviation: float) -> list[int]:
    dice = random.Random(seed)  # noqa: S311
    return [round(math.exp(dice.gauss(math.log(middle), deviation))) for _ in range(400)]


def test_where_limits_are_exact_a_job_takes_its_limit() -> None:
    durations = Durations()
    for number, lasted in enumerate(spread(1, HOUR, 1.5)):
        durations.learn(JobId(number), spec(lasted), lasted)

    drawn = [durations.drawn(spec(3 * HOUR), part / 10) for part in range(1, 10)]

    assert drawn == pytest.approx([3 * HOUR] * 9, rel=0.01)


def test_careless_limits_say_nothing_about_how_long_a_job_takes() -> None:
    durations = Durations()
    for number, limit in enumerate(spread(2, 100 * HOUR, 2.0)):
        durations.learn(JobId(number), spec(max(2 * HOUR, limit)), HOUR)

    assert durations.drawn(spec(1_000 * HOUR), 0.5) == pytest.approx(HOUR, rel=0.1)


def test_draws_are_spread_like_what_was_seen() -> None:
    durations, seen = Durations(), spread(3, HOUR, 0.8)
    for number, lasted in enumerate(seen):
        durations.learn(JobId(number), spec(), lasted)

    drawn = [durations.drawn(spec(), (part + 0.5) / 100) for part in range(100)]

    assert drawn == sorted(drawn)
    assert sum(each < sorted(seen)[100] for each in drawn) == pytest.approx(25, abs=8)
    assert sum(each < sorted(seen)[300] for each in drawn) == pytest.approx(75, abs=8)


def test_who_runs_already_takes_longer_than_it_has_run() -> None:
    durations = Durations()
    for number, lasted in enumerate(spread(4, HOUR, 0.5)):
        durations.learn(JobId(number), spec(), lasted)

    old = [durations.drawn(spec(), part / 10, ran=2 * HOUR) for part in range(1, 10)]
    beyond_all = durations.drawn(spec(), 0.5, ran=200 * HOUR)

    assert min(old) > 2 * HOUR
    assert durations.drawn(spec(), 0.5, ran=MINUTE) < old[4]
    assert beyond_all > 250 * HOUR


def test_one_short_job_without_a_limit_ends_nobody_s_job_that_has_one() -> None:
    durations = Durations()
    durations.learn(JobId(1), spec(name="hello"), 100)

    drawn = durations.drawn(spec(10 * MINUTE), 0.5, ran=10_000)

    assert drawn > 3 * MINUTE


def test_nothing_takes_longer_than_its_limit() -> None:
    durations = Durations()

    assert durations.drawn(spec(MINUTE), 0.99) == MINUTE
    assert durations.drawn(spec(MINUTE), 0.99, ran=MINUTE - 5) == MINUTE
