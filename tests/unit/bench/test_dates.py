"""First dates: which jobs are asked about, what two methods say, and how that is judged."""

from itertools import count

from bench._dates_told import Range, by_limits, forecast, waited
from bench._default_ours import Setting
from bench._jct_queue import exact_limit, limit_of, no_limit
from bench._jct_trace import Park, Row
from bench.dates import Held, judged

HOUR_S = 3_600
HALF = "second"


def at(second: float) -> Range:
    """A date without a range."""
    return Range(second, second, second)


def park(*rows: tuple[int, int, int], nodes: int = 1) -> Park:
    """Jobs as (at, lasts, gpus), in seconds."""
    made = (Row(number, *row, park="p") for number, row in enumerate(rows))
    return Park("p", nodes, tuple(made))


LINE = park((0, 100, 8), (1, 50, 8), (2, 20, 8))


def test_dates_by_exact_limits_hold_while_nothing_passes() -> None:
    dates = by_limits(LINE, exact_limit, every=1)

    assert dates.started == {0: 0, 1: 100, 2: 150}
    assert dates.first == {1: at(100), 2: at(150)}


def test_dates_by_the_limits_of_users_are_late() -> None:
    dates = by_limits(LINE, limit_of, every=1)

    assert dates.first == {1: at(HOUR_S), 2: at(2 * HOUR_S)}


def test_without_limits_there_are_no_dates() -> None:
    assert by_limits(LINE, no_limit, every=1).first == {1: None, 2: None}


def test_the_default_policy_is_asked_about_the_jobs_that_must_wait() -> None:
    dates = forecast(LINE, Setting(exact_limit), 1)

    assert dates.started == {0: 0, 1: 120, 2: 100}
    said = dates.first[1]
    assert said is not None
    assert said.early_s < said.middle_s < said.late_s
    assert set(dates.first) == {1, 2}


def test_the_date_that_is_judged_is_the_first_that_a_board_shows() -> None:
    crowd = park((0, 100, 8), (10, 50, 4), *((10, 50, 8) for _ in range(20)))
    ticks = count()

    def hurried() -> float:
        return next(ticks) / 10

    patient = forecast(crowd, Setting(exact_limit), 1, lambda: 0.0)
    early = forecast(crowd, Setting(exact_limit), 1, hurried)

    assert set(early.first) == set(patient.first)
    assert early.first != patient.first


def test_a_sample_is_every_so_manieth_of_those_that_wait() -> None:
    assert waited(LINE, exact_limit) == 2
    assert set(forecast(LINE, Setting(exact_limit), 2).first) == {1}
    assert set(by_limits(LINE, exact_limit, every=2).first) == {1}


def test_dates_are_judged_by_range_width_and_middle() -> None:
    dates = [
        Held(HALF, at_s=0, started_s=100, said=Range(90, 110, 130)),
        Held(HALF, at_s=0, started_s=200, said=Range(300, 400, 500)),
        Held(HALF, at_s=0, started_s=300, said=None),
    ]

    found = judged(dates)

    assert (found.asked, found.wait_s) == (3, 200)
    assert found.dated == 2 / 3
    assert found.inside == 0.5
    assert found.width == 120 / 200
    assert found.error == (0.1 + 1.0) / 2


def test_a_date_without_a_range_holds_within_a_minute() -> None:
    found = judged([Held(HALF, 0, 100, at(150)), Held(HALF, 0, 100, at(161))])

    assert found.inside == 0.5
