"""A number over time, kept as means over equal spans however long the time gets."""

from muster.model.value import Duration, Instant, Value

MOST_SPANS = 512
"""So many spans are kept; when there would be more, each two become one."""

FIRST_SPAN_MS = 1_000


class Series(Value):
    """Means over equal spans of time, the first of which begins at `begins_at`."""

    begins_at: Instant
    every: Duration
    means: tuple[float, ...]

    def points(self) -> list[tuple[int, float]]:
        """The middle of each span, and its mean."""
        half = self.every // 2
        return [
            (self.begins_at + place * self.every + half, mean)
            for place, mean in enumerate(self.means)
        ]


class Curve:
    """What a number was at every instant so far, as integrals over spans.

    Curves that begin and end together have the same spans, so that they can be compared.
    """

    __slots__ = ("_begin", "_last", "_sums", "_total", "_width", "value")

    def __init__(self, begin: Instant, value: float = 0) -> None:
        self.value = value
        self._begin: int = begin
        self._last: int = begin
        self._width = FIRST_SPAN_MS
        self._sums: list[float] = [0.0]
        self._total = 0.0

    def set(self, at: int, value: float) -> None:
        """From this instant on it is so much."""
        self.reach(at)
        self.value = value

    def add(self, at: int, more: float) -> None:
        """From this instant on it is so much more."""
        self.reach(at)
        self.value += more

    def reach(self, at: int) -> None:
        """Up to this instant it stays as it is."""
        last = self._last
        if at <= last:
            return
        self._last = at
        if not self.value:
            return
        self._total += self.value * (at - last)
        while at - self._begin > self._width * MOST_SPANS:
            self._fold()
        self._spread(last - self._begin, at - self._begin)

    def mean(self) -> float:
        """Over all the time so far."""
        lasted = self._last - self._begin
        return self._total / lasted if lasted else self.value

    def integral(self) -> float:
        """Value times milliseconds."""
        return self._total

    def series(self) -> Series:
        """The means so far; the last span ends with the curve."""
        lasted = self._last - self._begin
        while lasted > self._width * MOST_SPANS:
            self._fold()
        count = max(1, -(-lasted // self._width))
        sums = self._sums + [0.0] * (count - len(self._sums))
        widths = [self._width] * (count - 1) + [max(1, lasted - (count - 1) * self._width)]
        means = tuple(total / width for total, width in zip(sums, widths, strict=False))
        return Series(
            begins_at=Instant(self._begin), every=Duration(self._width), means=means[:count]
        )

    def _fold(self) -> None:
        sums = self._sums
        if len(sums) % 2:
            sums.append(0.0)
        self._sums = [sums[place] + sums[place + 1] for place in range(0, len(sums), 2)]
        self._width *= 2

    def _spread(self, begin: int, end: int) -> None:
        """Give each span from `begin` to `end` its part."""
        width, sums, value = self._width, self._sums, self.value
        first, last = begin // width, (end - 1) // width
        if last >= len(sums):
            sums.extend([0.0] * (last + 1 - len(sums)))
        if first == last:
            sums[first] += value * (end - begin)
            return
        sums[first] += value * ((first + 1) * width - begin)
        for place in range(first + 1, last):
            sums[place] += value * width
        sums[last] += value * (end - last * width)
