from datetime import UTC, datetime

from muster.api.jobs import StartDocument
from muster.doors.cli.jobs.dates import about, range_text, why_then
from muster.doors.cli.screen.times import Moment

MOMENT = Moment(now=datetime(2026, 11, 18, 12, 0, 0, tzinfo=UTC))


def test_what_waits_does_not_start_in_the_past() -> None:
    assert about("2026-11-18T11:59:30+00:00", MOMENT) == "any moment now"
    assert about("2026-11-18T12:05:00+00:00", MOMENT) == "about 12:05:00 UTC (in 5m)"


def test_a_range_says_the_same_of_its_middle() -> None:
    start = StartDocument(
        early="2026-11-18T11:59:00+00:00",
        middle="2026-11-18T11:59:30+00:00",
        late="2026-11-18T12:10:00+00:00",
        of_ten=8,
    )

    assert range_text(start, MOMENT) == "11:59 to 12:10 (8 of 10), any moment now"


def test_who_may_overtake_is_named() -> None:
    at = "2026-11-18T12:10:00+00:00"
    start = StartDocument(
        early=at, middle=at, late=at, of_ten=8, after=(3,), passing=(8, 9), newcomers=2
    )

    assert why_then(start, {3: "3", 8: "8_1", 9: "9"}) == (
        "job 3 must end first; jobs 8_1, 9 came later and may start before it; "
        "2 jobs not submitted yet may start before it"
    )
