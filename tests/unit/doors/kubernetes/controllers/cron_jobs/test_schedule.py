import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.doors.kubernetes.controllers.cron_jobs.schedule import ScheduleError, parsed
from muster.doors.kubernetes.objects.times import instant, stamp
from muster.model.value import Instant


@pytest.mark.parametrize(
    ("text", "zone", "since", "expected"),
    [
        ("0 2 * * *", "", "2026-11-16T09:19:43Z", "2026-11-17T02:00:00Z"),
        ("0 2 * * *", "Europe/Berlin", "2026-11-16T09:19:43Z", "2026-11-17T01:00:00Z"),
        ("* * * * *", "", "2026-11-16T09:42:10Z", "2026-11-16T09:43:00Z"),
        ("*/15 9-17 * * mon-fri", "", "2026-11-20T17:50:00Z", "2026-11-23T09:00:00Z"),
        ("0 0 29 2 *", "", "2026-11-16T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("30 6 1,15 * 5", "", "2026-11-16T00:00:00Z", "2026-11-20T06:30:00Z"),
        ("0 0 1 jan *", "", "2026-11-16T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("@daily", "America/New_York", "2026-11-16T00:00:00Z", "2026-11-16T05:00:00Z"),
        ("@weekly", "", "2026-11-16T00:00:00Z", "2026-11-22T00:00:00Z"),
        ("@every 90s", "", "2026-11-16T00:00:00Z", "2026-11-16T00:01:30Z"),
        # The clock skips this hour on that day, so that the next day is meant.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"),
    ],
)
def test_the_next_time_is_what_cron_says(text: str, zone: str, since: str, expected: str) -> None:
    start = instant(since)
    assert start is not None

    found = parsed(text, zone).after(start)

    assert found is not None
    assert stamp(found) == expected


def test_a_day_that_never_comes_has_no_next_time() -> None:
    assert parsed("59 23 31 2 *").after(Instant(0)) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("every day", "expected exactly 5 fields, found 2: [every day]"),
        ("61 * * * *", "end of range (61) above maximum (59): 61"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("@often", "unrecognized descriptor: @often"),
        ("", "empty spec string"),
    ],
)
def test_what_is_wrong_with_a_schedule_is_said_as_kubernetes_says_it(text: str, why: str) -> None:
    with pytest.raises(ScheduleError, match=f"^{re.escape(why)}$"):
        parsed(text)


def test_a_zone_that_there_is_not_is_named() -> None:
    with pytest.raises(ScheduleError, match=r"^unknown time zone Mars/Base$"):
        parsed("* * * * *", "Mars/Base").after(Instant(0))


@given(
    st.sampled_from(["* * * * *", "*/7 */5 * * *", "0 4 * 2,7 *", "15 10 13 * 5", "@hourly"]),
    st.sampled_from(["", "Europe/Berlin", "Asia/Kolkata", "America/Sao_Paulo"]),
    st.integers(min_value=1_700_000_000_000, max_value=1_900_000_000_000),
)
def test_the_next_time_is_later_and_nothing_lies_between(text: str, zone: str, at: int) -> None:
    schedule = parsed(text, zone)

    found = schedule.after(Instant(at))

    assert found is not None
    assert found > at
    assert found % 60_000 == 0
    if found - at > 120_000:
        assert schedule.after(Instant(found - 120_000)) == found
