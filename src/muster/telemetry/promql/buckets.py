"""Quantiles of histograms with buckets."""

import math
from bisect import bisect_left
from collections.abc import Iterable
from itertools import groupby

_TOLERANCE = 1e-12


def bucket_quantile(part: float, buckets: Iterable[tuple[float, float]]) -> float:
    """Where this part of the observations ends. buckets: upper bounds and counts up to them."""
    if math.isnan(part):
        return math.nan
    if not 0 <= part <= 1:
        return math.copysign(math.inf, part)
    merged = [
        (bound, sum(count for _, count in same))
        for bound, same in groupby(sorted(buckets), key=lambda each: each[0])
    ]
    if len(merged) < 2 or merged[-1][0] != math.inf:
        return math.nan
    bounds = [bound for bound, _ in merged]
    counts = _rising([count for _, count in merged])
    if counts[-1] == 0 or math.isnan(counts[-1]):
        return math.nan
    return _within(part * counts[-1], bounds, counts)


def _rising(counts: list[float]) -> list[float]:
    """Counts that never fall: buckets may have been read at different moments."""
    found = [counts[0]]
    for count in counts[1:]:
        before = found[-1]
        is_same = _almost_equal(before, count)
        found.append(before if is_same or count < before else count)
    return found


def _almost_equal(a: float, b: float) -> bool:
    if a == b or (math.isnan(a) and math.isnan(b)):
        return True
    sizes = abs(a) + abs(b)
    if a == 0 or b == 0 or sizes < 2.3e-308:
        return abs(a - b) < _TOLERANCE * 2.3e-308
    return abs(a - b) / min(sizes, 1.7976931348623157e308) < _TOLERANCE


def _within(rank: float, bounds: list[float], counts: list[float]) -> float:
    found = bisect_left(counts, rank, hi=len(counts) - 1)
    if found == len(bounds) - 1:
        return bounds[-2]
    if found == 0 and bounds[0] <= 0:
        return bounds[0]
    start = bounds[found - 1] if found else 0.0
    below = counts[found - 1] if found else 0.0
    inside = counts[found] - below
    if not inside:
        return math.nan
    return start + (bounds[found] - start) * ((rank - below) / inside)
