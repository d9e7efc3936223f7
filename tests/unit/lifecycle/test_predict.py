import math
import random

import pytest

from muster.lifecycle.predict import Predictor
from muster.model.gpu import GpuAsk
from muster.model.job import Ask, JobSpec, TaskGroup
from muster.model.value import (
    HOUR,
    MINUTE,
    SECOND,
    Duration,
    JobId,
    QueuePath,
    UserName,
    replace,
)


def spec(user: str = "ann", name: str = "train", gpus: int = 1, queue: str = "nlp") -> JobSpec:
    group = TaskGroup(each=Ask(gpus=GpuAsk(count=gpus)))
    return JobSpec(name=name, user=UserName(user), queue=QueuePath(queue), groups=(group,))


def taught(*lessons: tuple[JobSpec, int], times: int = 20) -> Predictor:
    predictor = Predictor()
    for number in range(times):
        for job, lasted in lessons:
            predictor.learn(JobId(number), job, lasted)
    return predictor


def test_what_always_takes_an_hour_will_take_an_hour() -> None:
    predictor = taught((spec(), HOUR))

    found = predictor.predict(spec())

    assert found.typical == pytest.approx(HOUR, rel=0.1)
    assert found.expected == pytest.approx(HOUR, rel=0.25)
    assert found.samples == 20
    assert (found.samples, found.like) == (20, "jobs of this size of ann named train")


def test_numbers_in_names_do_not_make_them_different() -> None:
    predictor = taught((spec(name="sweep-1"), MINUTE), (spec(name="train-9"), 10 * HOUR))

    assert predictor.predict(spec(name="sweep-77")).typical < 3 * MINUTE
    assert predictor.predict(spec(name="train-77")).typical > 5 * HOUR


def test_a_new_user_is_judged_by_what_others_did_with_this_size() -> None:
    predictor = taught((spec(gpus=1), MINUTE), (spec(gpus=64), 20 * HOUR))

    small, large = predictor.predict(spec("bob", "x")), predictor.predict(spec("bob", "x", gpus=64))

    assert small.typical < HOUR < large.typical
    assert "ann" not in small.like


def test_one_odd_job_of_a_name_moves_the_figure_only_so_far() -> None:
    predictor = taught((spec(name="usual"), HOUR))
    predictor.learn(JobId(99), spec(name="odd"), SECOND)

    found = predictor.predict(spec(name="odd"))

    assert MINUTE < found.typical < HOUR


def test_old_evidence_fades() -> None:
    predictor = taught((spec(), MINUTE), times=300)
    for number in range(300):
        predictor.learn(JobId(number), spec(), 5 * HOUR)

    assert predictor.predict(spec()).typical > 2 * HOUR


def test_before_anything_ended_a_guess_is_expected_or_the_limit() -> None:
    predictor = Predictor()

    unlimited = predictor.expect(JobId(1), spec())
    limited = predictor.expect(JobId(2), replace(spec(), time_limit=Duration(600_000)))

    assert unlimited == 13_300_301
    assert limited == 600_000
    assert not predictor.predict(spec()).samples


def test_the_high_figure_holds_for_nine_of_ten_and_the_error_is_known() -> None:
    dice = random.Random(7)  # noqa: S311
    predictor = Predictor()
    for number in range(6_000):
        job = spec(user=f"user{number % 5}", gpus=1 << number % 4)
        predictor.expect(JobId(number), job)
        lasted = math.exp(dice.gauss(13 + number % 5, 1.0))
        predictor.learn(JobId(number), job, round(lasted))

    accuracy = predictor.accuracy

    assert accuracy.count == 6_000
    assert accuracy.covered == pytest.approx(0.9, abs=0.02)
    # The median of |N(0, 1)| is 0.674: no predictor can do better here.
    assert accuracy.error == pytest.approx(0.674, abs=0.07)


def test_news_come_with_twice_as_much_evidence() -> None:
    predictor = Predictor()

    news = [predictor.learn(JobId(number), spec(), HOUR) for number in range(1, 17)]

    assert [place for place, is_news in enumerate(news, start=1) if is_news] == [1, 2, 4, 8, 16]
