import pytest

from muster.doors.kubernetes.tables.cells import duration, first_of, joined, shown_at, since
from muster.model.value import Instant


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 65, "3h1m"),
        (8 * 3600, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (50 * 3600, "2d2h"),
        (8 * 86400, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (764 * 86400, "2y34d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_a_duration_is_as_coarse_as_it_is_long(seconds: int, expected: str) -> None:
    assert duration(seconds) == expected


def test_a_time_that_is_not_known_says_so() -> None:
    assert since(None) == "<unknown>"


def test_a_row_that_was_worked_out_before_shows_the_age_of_now() -> None:
    cell = joined("3 (", since("1970-01-01T00:00:00Z"), " ago)")

    assert shown_at(cell, Instant(10_000)) == "3 (10s ago)"
    assert shown_at(cell, Instant(7_200_000)) == "3 (120m ago)"


def test_a_long_list_is_cut_short() -> None:
    assert first_of(["a", "b", "c", "d", "e"], 3, empty="-") == "a,b,c + 2 more..."
    assert first_of([], 3, empty="-") == "-"
