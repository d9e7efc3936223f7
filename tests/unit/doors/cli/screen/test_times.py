from datetime import datetime, timedelta, timezone

import pytest

from muster.doors.cli.screen.times import (
    Moment,
    back,
    clock_span,
    exact_span,
    hours,
    short_span,
)

NOON = datetime(2026, 11, 15, 12, 0, 0, tzinfo=timezone(timedelta(hours=1)))
MOMENT = Moment(now=NOON)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5, "0:00"),
        (65, "1:05"),
        (3_600, "1:00:00"),
        (90_061, "1-01:01:01"),
    ],
)
def test_a_running_time_is_exact(seconds: float, expected: str) -> None:
    assert clock_span(seconds) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(5, "5s"), (65, "1m"), (3_600, "1h"), (12_000, "3h20m"), (100_000, "1d3h")],
)
def test_a_rough_time_shows_what_matters(seconds: float, expected: str) -> None:
    assert short_span(seconds) == expected


def test_a_setting_is_shown_whole() -> None:
    assert exact_span(90) == "1m30s"
    assert exact_span(0) == "0s"


def test_instants_are_shown_on_the_clock_of_the_user() -> None:
    assert MOMENT.local("2026-11-15T10:59:00Z") == "2026-11-15 11:59:00"
    assert MOMENT.near("2026-11-15T10:59:00Z") == "11:59:00"
    assert MOMENT.near("2026-11-14T10:59:00Z") == "2026-11-14 11:59:00"
    assert MOMENT.near(None) == "-"


def test_an_instant_is_shown_with_how_far_away_it_is() -> None:
    assert MOMENT.relative("2026-11-15T10:55:00Z") == "11:55:00 UTC+01:00 (5m ago)"
    assert MOMENT.relative("2026-11-15T11:05:00.500Z") == "12:05:00 UTC+01:00 (in 5m)"


def test_today_and_yesterday_begin_at_midnight() -> None:
    assert back(NOON, "today") == NOON.replace(hour=0)
    assert back(NOON, "Yesterday") == NOON.replace(day=14, hour=0)
    assert back(NOON, "7d") is None


def test_gpu_seconds_are_shown_as_hours() -> None:
    assert hours(900) == "0.25"
