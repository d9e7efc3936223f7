"""Versions of a mapping, and what differs between them."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from muster.model.versioned import MOST_KEPT, VersionHistory, changed_keys, with_values, without


def test_nothing_noted_gives_the_very_same_version_again() -> None:
    history = VersionHistory({"a": 1})

    first = history.version()

    assert first == {"a": 1}
    assert history.version() is first
    assert changed_keys(first, first) == ()


def test_between_versions_it_is_known_what_came_changed_and_went() -> None:
    history = VersionHistory({"a": 1, "b": 2, "c": 3})
    first = history.version()

    history.set("a", 4)
    history.drop("b")
    history.set("d", 5)
    second = history.version()

    assert changed_keys(first, second) == {"a", "b", "d"}
    assert first == {"a": 1, "b": 2, "c": 3}
    assert second == {"a": 4, "c": 3, "d": 5}


def test_a_reader_that_missed_some_versions_learns_all_that_changed() -> None:
    history = VersionHistory({"a": 1})
    first = history.version()
    for key in "bcd":
        history.set(key, 1)
        history.version()
    history.set("a", 2)

    assert changed_keys(first, history.version()) == {"a", "b", "c", "d"}


def test_a_reader_that_missed_too_many_or_looks_back_must_compare() -> None:
    history = VersionHistory({"a": 1})
    first = last = history.version()
    for _ in range(MOST_KEPT):
        history.set("a", 1)
        last = history.version()

    assert changed_keys(first, last) == {"a"}
    assert changed_keys(last, first) is None
    history.set("a", 1)
    assert changed_keys(first, history.version()) is None


def test_nothing_is_known_between_mappings_of_different_histories() -> None:
    first, other = VersionHistory({"a": 1}).version(), VersionHistory({"a": 1}).version()

    assert changed_keys(first, other) is None
    assert changed_keys({}, first) is None
    assert changed_keys(first, {}) is None


def test_what_a_mapping_would_be_is_known_to_differ_in_the_replaced_keys() -> None:
    history = VersionHistory({"a": 1, "b": 2})
    first = history.version()

    other = with_values(first, {"b": 3, "c": 4})
    history.set("a", 5)
    second = history.version()

    assert first == {"a": 1, "b": 2}
    assert other == {"a": 1, "b": 3, "c": 4}
    assert changed_keys(first, other) == {"b", "c"}
    assert changed_keys(other, first) == {"b", "c"}
    assert changed_keys(other, with_values(other, {"d": 1})) == {"b", "c", "d"}
    assert changed_keys(other, second) == {"a", "b", "c"}
    assert with_values({"a": 1}, {"b": 2}) == {"a": 1, "b": 2}


def test_without_some_keys_a_mapping_is_known_to_differ_in_these() -> None:
    history = VersionHistory({"a": 1, "b": 2})
    first = history.version()

    other = without(first, ["b", "c"])

    assert other == {"a": 1}
    assert len(other) == 1
    assert changed_keys(first, other) == {"b", "c"}
    assert without({"a": 1, "b": 2}, ["b"]) == {"a": 1}


def test_a_version_that_is_kept_while_many_follow_stays_as_it_was() -> None:
    history = VersionHistory(dict.fromkeys(range(100), 0))
    first = history.version()
    beside = with_values(first, {0: -1, 100: -1})

    for number in range(100):
        history.set(number, 1)
        history.version()

    assert first == dict.fromkeys(range(100), 0)
    assert beside == {**dict.fromkeys(range(100), 0), 0: -1, 100: -1}


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("set"), st.integers(0, 5), st.integers(0, 3)),
            st.tuples(st.just("drop"), st.integers(0, 5), st.just(0)),
            st.tuples(st.just("version"), st.just(0), st.just(0)),
            st.tuples(st.just("read"), st.integers(0, 20), st.just(0)),
        ),
        max_size=60,
    )
)
def test_every_version_stays_what_it_was_whatever_is_changed_and_read_later(
    moves: list[tuple[str, int, int]],
) -> None:
    history, now = VersionHistory[int, int]({}), dict[int, int]()
    kept: list[tuple[Mapping[int, int], dict[int, int]]] = []
    for move, key, value in moves:
        match move:
            case "set":
                history.set(key, value)
                now[key] = value
            case "drop":
                history.drop(key)
                now.pop(key, None)
            case "version":
                kept.append((history.version(), dict(now)))
            case _:
                # Some are read whole at some time, and others only key by key.
                list(kept[key % len(kept)][0]) if kept else None

    for version, was in kept:
        assert {key: version[key] for key in range(6) if key in version} == was
        assert len(version) == len(was)
        assert dict(version.items()) == was
