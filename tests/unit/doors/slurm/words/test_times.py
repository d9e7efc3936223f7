from zoneinfo import ZoneInfo

import pytest

from muster.doors.slurm.words.times import (
    BadTimeError,
    cpu_text,
    instant,
    instant_text,
    limit,
    past_instant,
)
from muster.model.value import DAY, HOUR, MINUTE, SECOND, Duration, Instant

UTC = ZoneInfo("UTC")
NOON = Instant(1_794_744_000_000)
"""2026-11-15T12:00:00Z."""


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("30", 30 * MINUTE),
        ("0:01", MINUTE),
        ("90:00", 90 * MINUTE),
        ("1:30:00", 90 * MINUTE),
        ("1-12", 36 * HOUR),
        ("1-12:30", 36 * HOUR + 30 * MINUTE),
        ("2-0:0:1", 2 * DAY + MINUTE),
        ("UNLIMITED", None),
        ("infinite", None),
    ],
)
def test_limits_come_in_whole_minutes(text: str, span: int | None) -> None:
    assert limit(text) == span


@pytest.mark.parametrize("text", ["bogus", "", "1:2:3:4", "-5", "1-", "x:00"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(BadTimeError):
        limit(text)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("now", "2026-11-15T12:00:00"),
        ("now+60", "2026-11-15T12:01:00"),
        ("now+2hours", "2026-11-15T14:00:00"),
        ("now-1day", "2026-11-14T12:00:00"),
        ("now-2minutes", "2026-11-15T11:58:00"),
        ("16:00", "2026-11-15T16:00:00"),
        ("11:00", "2026-11-16T11:00:00"),
        ("4:30 PM", "2026-11-15T16:30:00"),
        ("midnight", "2026-11-16T00:00:00"),
        ("teatime", "2026-11-15T16:00:00"),
        ("tomorrow", "2026-11-16T00:00:00"),
        ("noon tomorrow", "2026-11-16T12:00:00"),
        ("2026-12-01", "2026-12-01T00:00:00"),
        ("2026-12-01T08:30", "2026-12-01T08:30:00"),
        ("2026-12-01T08:30:05", "2026-12-01T08:30:05"),
        ("12/24/26", "2026-12-24T00:00:00"),
        ("12.24", "2026-12-24T00:00:00"),
        ("111526", "2026-11-15T00:00:00"),
        ("uts1794744000", "2026-11-15T12:00:00"),
    ],
)
def test_instants_are_read_in_all_of_slurms_forms(text: str, at: str) -> None:
    assert instant_text(instant(text, NOON, UTC), zone=UTC) == at


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("now-1day", "2026-11-14T12:00:00"),
        ("08:00", "2026-11-15T08:00:00"),
        ("18:00", "2026-11-15T18:00:00"),
        ("00:00:00AM", "2026-11-15T00:00:00"),
        ("06:30pm", "2026-11-15T18:30:00"),
        ("midnight", "2026-11-15T00:00:00"),
        ("today", "2026-11-15T00:00:00"),
        ("1224", "2025-12-24T00:00:00"),
        ("12/24", "2025-12-24T00:00:00"),
        ("11.15", "2026-11-15T00:00:00"),
        ("111426", "2026-11-14T00:00:00"),
        ("11/14/26T09:15", "2026-11-14T09:15:00"),
        ("2026-11-14T09:15:05", "2026-11-14T09:15:05"),
        ("2026-11-14-09:15:05", "2026-11-14T09:15:05"),
        ("2026-11-14T", "2026-11-14T00:00:00"),
    ],
)
def test_the_past_is_read_in_all_forms_of_sacct(text: str, at: str) -> None:
    assert instant_text(past_instant(text, NOON, UTC), zone=UTC) == at


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", 0),
        ("foo", 0),
        ("now+5lightyears", 4),
        ("now-90min", 5),
        ("now-", 3),
        ("now 1", 4),
        ("now-1day2", 9),
        ("now-1dayz", 8),
        ("noon-2days", 6),
        ("25:00", 0),
        ("10:61", 3),
        ("2020-13-01", 5),
        ("2020-01-32", 8),
        ("2020-02-31", 0),
        ("2020-1-1", 0),
        ("01/32/20", 3),
        ("1pm1", 1),
        ("2020-01-01T10", 13),
        ("2020-01-01T10:00:0x", 18),
    ],
)
def test_an_unreadable_instant_says_where_it_stopped(text: str, place: int) -> None:
    with pytest.raises(BadTimeError) as caught:
        instant(text, NOON, UTC)

    assert caught.value.place == place


def test_instants_are_shown_as_slurm_time_format_wants_them() -> None:
    assert instant_text(NOON, "%s", UTC) == "1794744000"
    assert instant_text(NOON, "standard", UTC) == "2026-11-15T12:00:00"
    assert instant_text(NOON, "%H:%M", ZoneInfo("Asia/Tokyo")) == "21:00"


def test_measured_time_has_milliseconds_below_an_hour() -> None:
    assert cpu_text(Duration(61_250)) == "01:01.250"
    assert cpu_text(Duration(HOUR + SECOND)) == "01:00:01"
