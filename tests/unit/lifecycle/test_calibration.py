import math
import random

import pytest

from muster.lifecycle.calibration import Calibration, WaitRange
from muster.model.dates import Foreseen, KeptDate
from muster.model.value import HOUR, MINUTE, ClassName, Duration, Instant, JobId, QueuePath


def foreseen(wait: int, queue: str = "nlp", courses: int = 1) -> Foreseen:
    return Foreseen(
        queue=QueuePath(queue),
        job_class=ClassName("normal"),
        wait=Duration(wait),
        spread_milli=300,
        waiting=10,
        gpu_milli=1_000,
        courses=courses,
    )


def kept(number: int, said: WaitRange, made_from: Foreseen, waited: int) -> KeptDate:
    told_at = Instant(number * HOUR)
    return KeptDate(
        job=JobId(number),
        told_at=told_at,
        early=Instant(told_at + said.early),
        middle=Instant(told_at + said.middle),
        late=Instant(told_at + said.late),
        foreseen=made_from,
        started_at=Instant(told_at + waited),
    )


def lived(waits: list[tuple[int, int]], queue: str = "nlp") -> tuple[Calibration, list[KeptDate]]:
    """After dates of which it is known what was foreseen and how long the wait really was."""
    calibration, dates = Calibration(), list[KeptDate]()
    for number, (said, waited) in enumerate(waits):
        made_from = foreseen(said, queue)
        date = kept(number, calibration.range(made_from), made_from, waited)
        calibration.learn(date)
        dates.append(date)
    return calibration, dates


def noisy(seed: int, deviation: float, count: int = 400) -> list[tuple[int, int]]:
    dice = random.Random(seed)  # noqa: S311
    middles = [math.exp(dice.uniform(math.log(MINUTE), math.log(10 * HOUR))) for _ in range(count)]
    return [(round(each), round(each * math.exp(dice.gauss(0, deviation)))) for each in middles]


def test_before_anything_came_true_the_range_lies_around_the_forecast() -> None:
    found = Calibration().range(foreseen(HOUR))

    assert found.early < HOUR < found.late
    assert found.middle == pytest.approx(HOUR, rel=0.05)


@pytest.mark.parametrize("deviation", [0.02, 0.3, 1.0])
def test_ranges_hold_eight_of_ten_times_however_good_forecasts_are(deviation: float) -> None:
    _, dates = lived(noisy(5, deviation))

    held = sum(each.held for each in dates[100:]) / len(dates[100:])

    assert held == pytest.approx(0.8, abs=0.06)


def test_good_forecasts_make_short_ranges() -> None:
    good, _ = lived(noisy(6, 0.02))
    poor, _ = lived(noisy(6, 0.6))

    short, long = good.range(foreseen(HOUR)), poor.range(foreseen(HOUR))

    assert short.late - short.early < 0.2 * HOUR < long.late - long.early


def test_forecasts_that_are_always_too_short_are_put_right() -> None:
    calibration, _ = lived([(said, 3 * waited) for said, waited in noisy(7, 0.1)])

    assert calibration.range(foreseen(HOUR)).middle == pytest.approx(3 * HOUR, rel=0.15)


def test_where_forecasts_are_worth_nothing_the_usual_wait_is_told() -> None:
    waits = [(said, 5 * MINUTE) for said, _ in noisy(8, 0.1)]
    calibration, _ = lived(waits)

    assert calibration.range(foreseen(HOUR)).middle == pytest.approx(5 * MINUTE, rel=0.1)


def test_each_queue_has_its_own_experience() -> None:
    calibration, _ = lived(noisy(9, 0.05))
    for number, (said, waited) in enumerate(noisy(10, 0.05)):
        made_from = foreseen(said, "vision")
        found = calibration.range(made_from)
        calibration.learn(kept(number, found, made_from, 2 * waited))

    assert calibration.range(foreseen(HOUR)).middle == pytest.approx(HOUR, rel=0.2)
    assert calibration.range(foreseen(HOUR, "vision")).middle == pytest.approx(2 * HOUR, rel=0.2)


def test_what_is_told_early_is_judged_by_what_was_told_early() -> None:
    calibration = Calibration()
    sketches, forecasts = noisy(11, 1.0), noisy(12, 0.02)
    pairs = [pair for both in zip(sketches, forecasts, strict=True) for pair in both]
    for number, (said, waited) in enumerate(pairs):
        made_from = foreseen(said, courses=5 if number % 2 else 0)
        calibration.learn(kept(number, calibration.range(made_from), made_from, waited))

    sketch = calibration.range(foreseen(HOUR, courses=0))
    forecast = calibration.range(foreseen(HOUR, courses=5))

    assert forecast.late - forecast.early < 0.2 * HOUR
    assert sketch.late - sketch.early > HOUR
