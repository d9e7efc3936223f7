"""What was measured lately."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.value import HOUR, MINUTE, SECOND, Duration, Instant
from muster.telemetry.window import Window

BEGIN = Instant(1_800_000_000_000)
EVERY = Duration(15 * SECOND)


def after(seconds: float) -> Instant:
    return Instant(BEGIN + int(seconds * SECOND))


def hour() -> Window[str]:
    return Window(HOUR, EVERY)


def test_values_come_back_oldest_first() -> None:
    window = hour()

    for number in range(4):
        window.add(after(15 * number), {"a": number})

    assert window.values("a", since=after(30)) == [(after(30), 2), (after(45), 3)]


def test_a_series_that_no_longer_comes_ends_and_has_no_latest_value() -> None:
    window = hour()
    window.add(after(0), {"a": 1, "b": 1})

    window.add(after(15), {"b": 2})

    assert window.latest("a") is None
    assert window.latest("b") == (after(15), 2)
    assert window.values("a") == [(after(0), 1)]


def test_a_gap_holds_nothing() -> None:
    window = hour()
    for number in range(600):
        window.add(after(15 * number), {"a": number} if number % 7 else {"b": 1})

    told = dict(window.values("a"))

    assert all(at >= after(15 * 599) - HOUR for at in told)
    assert all((at - BEGIN) // EVERY == value and value % 7 for at, value in told.items())


def test_what_left_the_window_is_forgotten() -> None:
    window = hour()
    window.add(after(0), {"gone": 1})

    for number in range(1, 600):
        window.add(after(15 * number), {"a": 1})

    assert window.keys() == ("a",)


def test_counters_keep_every_digit() -> None:
    window = hour()

    window.add(after(0), {"energy": 123_456_789_012_345})

    assert window.latest("energy") == (after(0), 123_456_789_012_345)


def test_a_clock_that_is_set_back_a_little_is_waited_for() -> None:
    window = hour()
    window.add(after(30), {"a": 1})

    window.add(after(28), {"a": 2})
    window.add(after(45), {"a": 3})

    assert window.values("a") == [(after(30), 1), (after(45), 3)]


def test_a_clock_that_is_set_back_by_hours_begins_again() -> None:
    window = hour()
    window.add(after(0), {"a": 1})

    window.add(Instant(BEGIN - 5 * HOUR), {"a": 2})

    assert window.values("a") == [(Instant(BEGIN - 5 * HOUR), 2)]


@pytest.mark.parametrize("span", [MINUTE, HOUR])
@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers()), max_size=30))
def test_a_window_holds_what_a_list_would(span: Duration, told: list[dict[str, int]]) -> None:
    window: Window[str] = Window(span, EVERY)
    for number, values in enumerate(told):
        window.add(after(15 * number), {key: float(each) for key, each in values.items()})

    newest = after(15 * (len(told) - 1))
    for key in "abc":
        kept = [
            (after(15 * number), float(values[key]))
            for number, values in enumerate(told)
            if key in values and after(15 * number) >= newest - span
        ]
        assert window.values(key) == kept
