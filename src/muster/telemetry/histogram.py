"""How long things took, counted in steps."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

from muster.telemetry.family import Labels, Point

WAITS_S = (1, 10, 60, 300, 900, 3_600, 14_400, 43_200, 86_400, 259_200)
"""For what takes people's time: from a second to three days."""

WORK_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""For what takes a machine's time."""


class Histogram:
    """One of these for each set of labels; who changes it sees to it that nobody else does."""

    __slots__ = ("_buckets", "_counts", "_sum")

    def __init__(self, buckets: tuple[float, ...]) -> None:
        self._buckets = buckets
        self._counts = [0] * (len(buckets) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        # A clock that was set back must not make a sum smaller.
        seconds = max(0.0, seconds)
        self._counts[bisect_left(self._buckets, seconds)] += 1
        self._sum += seconds

    def add(self, other: "Histogram") -> None:
        """Count what another one of the same buckets counted."""
        self._counts = [a + b for a, b in zip(self._counts, other._counts, strict=True)]
        self._sum += other._sum

    def points(self, labels: Labels = ()) -> Iterator[Point]:
        """Its series, as Prometheus wants them."""
        counts = tuple(accumulate(self._counts))
        bounds = (*(f"{bucket:g}" for bucket in self._buckets), "+Inf")
        for bound, count in zip(bounds, counts, strict=True):
            yield Point((*labels, ("le", bound)), count, "_bucket")
        yield Point(labels, self._sum, "_sum")
        yield Point(labels, counts[-1], "_count")
