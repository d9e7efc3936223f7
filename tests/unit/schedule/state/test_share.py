"""Use is forgotten by halves, in integers: a float power differs from one machine to another."""

import pytest

from muster.model.value import DAY, HOUR, Duration
from muster.schedule.state.share import decayed

WEEK = Duration(7 * DAY)


@pytest.mark.parametrize(
    ("elapsed", "left"),
    [
        (0, 10**18),
        (-HOUR, 10**18),
        (7 * DAY, 10**18 // 2),
        (21 * DAY, 10**18 // 8),
        # 10 ** 18 / 2 ** (1 / 2) and / 2 ** (1 / 168), rounded down to what 64 bits of it give.
        (7 * DAY // 2, 707_106_781_186_547_524),
        (HOUR, 995_882_623_658_297_423),
    ],
)
def test_what_is_left_is_exact_to_the_last_digits(elapsed: int, left: int) -> None:
    found = decayed(10**18, elapsed=Duration(elapsed), half_life=WEEK)

    assert abs(found - left) <= 10**6


@pytest.mark.parametrize(
    ("elapsed", "left"),
    [
        (1, 999_999_998_854_538_284),
        (HOUR, 995_882_623_658_357_152),
        (DAY + 7, 905_723_656_997_770_681),
        (7 * DAY // 2, 707_106_781_186_547_496),
        (30 * DAY, 51_270_959_750_495_835),
    ],
)
def test_what_is_left_is_the_same_number_on_every_machine(elapsed: int, left: int) -> None:
    assert decayed(10**18, elapsed=Duration(elapsed), half_life=WEEK) == left


def test_all_of_it_is_forgotten_in_the_end() -> None:
    assert decayed(10**18, elapsed=Duration(100 * WEEK), half_life=WEEK) == 0


def test_what_is_left_never_grows() -> None:
    left = [decayed(10**15, elapsed=Duration(each), half_life=WEEK) for each in range(0, WEEK, 977)]

    assert left == sorted(left, reverse=True)
