"""What functions make of one series over a time."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from muster.telemetry.promql.arithmetic import mean, quantile, total, variance


class Window(NamedTuple):
    """One series' values in a range: later than `after`, not later than `until`, at `now`."""

    times: Sequence[int]
    values: Sequence[float]
    after: int
    until: int
    now: int

    @property
    def range_s(self) -> float:
        return (self.until - self.after) / 1000


Answer = Callable[[Window], float | None]
"""None: there are too few values to say."""


def _extrapolated(window: Window, *, is_counter: bool, is_rate: bool) -> float | None:
    """The change over the whole range, as it would have been had we looked at its very ends.

    A series that begins or ends well within the range is not stretched over all of it, and a
    counter is not stretched back to below 0.
    """
    times, values = window.times, window.values
    if len(values) < 2:
        return None
    change = values[-1] - values[0]
    if is_counter:
        for before, value in pairwise(values):
            change += before if value < before else 0.0
    to_start, to_end = (times[0] - window.after) / 1000, (window.until - times[-1]) / 1000
    sampled = (times[-1] - times[0]) / 1000
    between = sampled / (len(values) - 1)
    if to_start >= between * 1.1:
        to_start = between / 2
    if is_counter and change > 0 and values[0] >= 0:
        to_start = min(to_start, sampled * (values[0] / change))
    if to_end >= between * 1.1:
        to_end = between / 2
    factor = (sampled + to_start + to_end) / sampled
    return change * (factor / window.range_s if is_rate else factor)


def _rate(window: Window) -> float | None:
    return _extrapolated(window, is_counter=True, is_rate=True)


def _increase(window: Window) -> float | None:
    return _extrapolated(window, is_counter=True, is_rate=False)


def _delta(window: Window) -> float | None:
    return _extrapolated(window, is_counter=False, is_rate=False)


def _irate(window: Window) -> float | None:
    if len(window.values) < 2:
        return None
    before, last = window.values[-2:]
    grown = last if last < before else last - before
    return grown / ((window.times[-1] - window.times[-2]) / 1000)


def _changes(window: Window) -> float:
    return float(
        sum(
            value != before and not (math.isnan(value) and math.isnan(before))
            for before, value in pairwise(window.values)
        )
    )


def _resets(window: Window) -> float:
    return float(sum(value < before for before, value in pairwise(window.values)))


def _sum(window: Window) -> float:
    whole, lost = total(window.values)
    return whole if math.isinf(whole) else whole + lost


def _average(window: Window) -> float:
    return mean(list(window.values))


def _least(window: Window) -> float:
    return least(window.values)


def _most(window: Window) -> float:
    return most(window.values)


def least(values: Sequence[float]) -> float:
    """The smallest of those that are numbers."""
    return min((value for value in values if not math.isnan(value)), default=math.nan)


def most(values: Sequence[float]) -> float:
    """The largest of those that are numbers."""
    return max((value for value in values if not math.isnan(value)), default=math.nan)


ANSWERS: Mapping[str, Answer] = {
    "rate": _rate,
    "irate": _irate,
    "increase": _increase,
    "delta": _delta,
    "changes": _changes,
    "resets": _resets,
    "avg_over_time": _average,
    "min_over_time": _least,
    "max_over_time": _most,
    "sum_over_time": _sum,
    "count_over_time": lambda window: float(len(window.values)),
    "last_over_time": lambda window: window.values[-1],
    "present_over_time": lambda _: 1.0,
    "stddev_over_time": lambda window: math.sqrt(variance(window.values)),
    "stdvar_over_time": lambda window: variance(window.values),
}


def quantile_of(part: float) -> Answer:
    return lambda window: quantile(part, window.values)


def predicted(ahead_s: float) -> Answer:
    """Where the straight line through the values will be."""

    def answer(window: Window) -> float | None:
        if len(window.values) < 2:
            return None
        slope, height = _line(window)
        return slope * ahead_s + height

    return answer


def _line(window: Window) -> tuple[float, float]:
    """Slope per second, and height at the window's `now`."""
    values = window.values
    if all(value == values[0] for value in values):
        return (math.nan, math.nan) if math.isinf(values[0]) else (0.0, values[0])
    ages = [(time - window.now) / 1000 for time in window.times]
    count = float(len(values))
    sum_x, sum_y = sum(total(ages)), sum(total(values))
    sum_xy = sum(total(x * y for x, y in zip(ages, values, strict=True)))
    sum_x2 = sum(total(x * x for x in ages))
    together, spread = sum_xy - sum_x * sum_y / count, sum_x2 - sum_x * sum_x / count
    if not spread:
        return math.nan, math.nan
    slope = together / spread
    return slope, sum_y / count - slope * sum_x / count
