from muster.doors.cli.screen.printing import facts, wrapped
from muster.doors.cli.screen.screen import Screen

NARROW = Screen(width=20)
LONG = "job 2 must end before this one"


def test_a_fact_that_is_too_wide_goes_on_below_its_value() -> None:
    assert facts(NARROW, [("State", "pending"), ("Because", LONG)]) == [
        "State:   pending",
        "Because: job 2 must",
        "         end before",
        "         this one",
    ]


def test_a_file_has_whole_lines() -> None:
    assert facts(Screen(), [("Because", LONG)]) == [f"Because: {LONG}"]


def test_a_word_that_is_wider_than_the_screen_stays_whole() -> None:
    path = "/" + "a" * 30

    assert wrapped(f"see {path} there", NARROW) == ["see", f"  {path}", "  there"]


def test_text_of_several_lines_keeps_them() -> None:
    assert wrapped(f"{LONG}\n{LONG}", NARROW) == [LONG, LONG]
