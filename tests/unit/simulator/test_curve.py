import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.value import Instant
from muster.simulator.curve import MOST_SPANS, Curve


def test_the_mean_weighs_each_value_by_its_time() -> None:
    curve = Curve(Instant(0))

    curve.set(10_000, 4)
    curve.set(20_000, 1)
    curve.reach(40_000)

    assert curve.mean() == pytest.approx((0 * 10 + 4 * 10 + 1 * 20) / 40)
    assert curve.series().means[12] == 4


def test_a_long_time_has_no_more_spans_than_a_short_one() -> None:
    curve = Curve(Instant(0), value=2)

    curve.reach(400 * 86_400_000)
    series = curve.series()

    assert len(series.means) <= MOST_SPANS
    assert set(series.means) == {2}


steps = st.lists(st.tuples(st.integers(1, 10_000_000), st.integers(0, 9)), min_size=1, max_size=60)


@given(steps)
def test_spans_add_up_to_the_integral(moves: list[tuple[int, int]]) -> None:
    curve, at = Curve(Instant(500)), 500
    for apart, value in moves:
        at += apart
        curve.set(at, value)
    curve.reach(at + 1_234)

    series, end = curve.series(), at + 1_234
    last = end - series.begins_at - (len(series.means) - 1) * series.every
    widths = [*[series.every] * (len(series.means) - 1), last]

    total = sum(mean * width for mean, width in zip(series.means, widths, strict=True))
    assert total == pytest.approx(curve.integral())
    assert curve.mean() == pytest.approx(curve.integral() / (end - 500))
