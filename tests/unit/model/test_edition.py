"""Editions of a mapping, and what they say about each other."""

from muster.model.edition import MOST_KEPT, Press, changed


def test_nothing_noted_gives_the_very_same_edition_again() -> None:
    press = Press({"a": 1})

    first = press.edition()

    assert first == {"a": 1}
    assert press.edition() is first
    assert changed(first, first) == ()


def test_an_edition_tells_what_came_changed_and_went() -> None:
    values = {"a": 1, "b": 2, "c": 3}
    press = Press(values)
    first = press.edition()

    values["a"] = 4
    del values["b"]
    values["d"] = 5
    for key in ("a", "b", "d"):
        press.note(key)
    second = press.edition()

    assert changed(first, second) == {"a", "b", "d"}
    assert first == {"a": 1, "b": 2, "c": 3}
    assert second == {"a": 4, "c": 3, "d": 5}


def test_who_missed_some_editions_is_told_of_all_that_changed() -> None:
    press = Press({"a": 1})
    first = press.edition()
    for key in "bcd":
        press.note(key)
        press.edition()
    press.note("a")

    assert changed(first, press.edition()) == {"a", "b", "c", "d"}


def test_who_missed_too_many_or_looks_back_must_look_for_himself() -> None:
    press = Press({"a": 1})
    first = last = press.edition()
    for _ in range(MOST_KEPT):
        press.note("a")
        last = press.edition()

    assert changed(first, last) == {"a"}
    assert changed(last, first) is None
    press.note("a")
    assert changed(first, press.edition()) is None


def test_nobody_kept_count_between_mappings_of_different_origin() -> None:
    first, other = Press({"a": 1}).edition(), Press({"a": 1}).edition()

    assert changed(first, other) is None
    assert changed({}, first) is None
    assert changed(first, {}) is None
