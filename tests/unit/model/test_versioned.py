"""Versions of a mapping, and what differs between them."""

from muster.model.versioned import MOST_KEPT, VersionHistory, changed_keys, with_values


def test_nothing_noted_gives_the_very_same_version_again() -> None:
    history = VersionHistory({"a": 1})

    first = history.version()

    assert first == {"a": 1}
    assert history.version() is first
    assert changed_keys(first, first) == ()


def test_between_versions_it_is_known_what_came_changed_and_went() -> None:
    values = {"a": 1, "b": 2, "c": 3}
    history = VersionHistory(values)
    first = history.version()

    values["a"] = 4
    del values["b"]
    values["d"] = 5
    for key in ("a", "b", "d"):
        history.note(key)
    second = history.version()

    assert changed_keys(first, second) == {"a", "b", "d"}
    assert first == {"a": 1, "b": 2, "c": 3}
    assert second == {"a": 4, "c": 3, "d": 5}


def test_a_reader_that_missed_some_versions_learns_all_that_changed() -> None:
    history = VersionHistory({"a": 1})
    first = history.version()
    for key in "bcd":
        history.note(key)
        history.version()
    history.note("a")

    assert changed_keys(first, history.version()) == {"a", "b", "c", "d"}


def test_a_reader_that_missed_too_many_or_looks_back_must_compare() -> None:
    history = VersionHistory({"a": 1})
    first = last = history.version()
    for _ in range(MOST_KEPT):
        history.note("a")
        last = history.version()

    assert changed_keys(first, last) == {"a"}
    assert changed_keys(last, first) is None
    history.note("a")
    assert changed_keys(first, history.version()) is None


def test_nothing_is_known_between_mappings_of_different_histories() -> None:
    first, other = VersionHistory({"a": 1}).version(), VersionHistory({"a": 1}).version()

    assert changed_keys(first, other) is None
    assert changed_keys({}, first) is None
    assert changed_keys(first, {}) is None


def test_what_a_mapping_would_be_is_known_to_differ_in_the_replaced_keys() -> None:
    values = {"a": 1, "b": 2}
    history = VersionHistory(values)
    first = history.version()

    other = with_values(first, {"b": 3, "c": 4})
    values["a"] = 5
    history.note("a")
    second = history.version()

    assert first == {"a": 1, "b": 2}
    assert other == {"a": 1, "b": 3, "c": 4}
    assert changed_keys(first, other) == {"b", "c"}
    assert changed_keys(other, first) == {"b", "c"}
    assert changed_keys(other, with_values(other, {"d": 1})) == {"b", "c", "d"}
    assert changed_keys(other, second) == {"a", "b", "c"}
    assert with_values({"a": 1}, {"b": 2}) == {"a": 1, "b": 2}
