import pytest

from muster.doors.cli.screen.text import (
    clean,
    clean_lines,
    counted,
    jobs_text,
    listed,
    memory,
    number,
    shortened,
    width_of,
)


@pytest.mark.parametrize(
    ("text", "places"), [("", 0), ("job", 3), ("ñandú", 5), ("日本", 4), ("e\u0301", 1)]
)
def test_a_text_takes_as_many_places_as_a_terminal_gives_it(text: str, places: int) -> None:
    assert width_of(text) == places


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("short", 5, "short"),
        ("longer", 5, "long…"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("any", 0, "…"),
    ],
)
def test_a_text_that_is_too_wide_is_cut_with_an_ellipsis(
    text: str, width: int, expected: str
) -> None:
    assert shortened(text, width) == expected


def test_a_name_cannot_steer_the_terminal() -> None:
    hostile = "job\x1b[2J\x07\nnext"

    assert clean(hostile) == "job�[2J��next"
    assert clean_lines(hostile) == "job�[2J�\nnext"


@pytest.mark.parametrize(
    ("amount", "expected"), [(4, "4"), (4.0, "4"), (0.5, "0.5"), (1.142, "1.142"), (0, "0")]
)
def test_a_number_has_no_more_digits_than_it_needs(amount: float, expected: str) -> None:
    assert number(amount) == expected


@pytest.mark.parametrize(
    ("mib", "expected"),
    [(0, "0"), (512, "512M"), (1_024, "1G"), (1_536, "1.5G"), (1_048_576, "1T"), (2_000, "2G")],
)
def test_memory_is_shown_in_a_unit_that_fits(mib: int, expected: str) -> None:
    assert memory(mib) == expected


def test_things_are_counted_and_listed() -> None:
    assert counted(1, "job") == "1 job"
    assert counted(2, "class", "classes") == "2 classes"
    assert listed([1, 2, 3], most=2) == "1, 2 and 1 more"
    assert (jobs_text([]), jobs_text([7]), jobs_text([7, 8])) == ("", "job 7", "jobs 7, 8")
