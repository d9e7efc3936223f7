"""What was measured lately, as far back as rules ask.

A series that is missing from one look has ended: nothing repeats its last value.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Final

from muster.model.value import Instant
from muster.telemetry.promql.labels import NAME, Sample, SeriesName, Vector, series_name
from muster.telemetry.promql.matching import fits
from muster.telemetry.promql.syntax import Expression, Selector, selectors

LOOKBACK_MS: Final = 300_000
"""How old a value may be that still counts as the present one."""


class Series:
    """One series' values in order. ended: when it was missing for the first time."""

    __slots__ = ("ended", "name", "times", "values")

    def __init__(self, name: SeriesName) -> None:
        self.name = name
        self.times = array("q")
        self.values = array("d")
        self.ended = array("q")

    def at(self, now: int) -> float | None:
        """The value at this instant; None where there is none, or none any more."""
        found = bisect_right(self.times, now) - 1
        if found < 0 or self.times[found] <= now - LOOKBACK_MS:
            return None
        last_end = bisect_right(self.ended, now) - 1
        if last_end >= 0 and self.ended[last_end] > self.times[found]:
            return None
        return self.values[found]

    def within(self, after: int, until: int) -> "tuple[array[int], array[float]]":
        """Times and values later than one instant and not later than another."""
        first, last = bisect_right(self.times, after), bisect_right(self.times, until)
        return self.times[first:last], self.values[first:last]

    def forget(self, before: int) -> None:
        gone = bisect_right(self.times, before)
        # What is in front is deleted in large parts, because the rest is moved each time.
        if gone > 64 or gone == len(self.times):
            del self.times[:gone]
            del self.values[:gone]
        del self.ended[: bisect_right(self.ended, before)]


class Metric:
    """All series of one name, and what is present now."""

    def __init__(self, keep_ms: int) -> None:
        self.keep_ms = keep_ms
        self.series: dict[SeriesName, Series] = {}
        self.present: frozenset[SeriesName] = frozenset()
        self.found: dict[Selector, list[Series]] = {}

    def append(self, now: int, points: Iterable[tuple[SeriesName, float]]) -> None:
        seen: set[SeriesName] = set()
        for name, value in points:
            self.add(now, name, value)
            seen.add(name)
        for gone in self.present - seen:
            self.series[gone].ended.append(now)
        self.present = frozenset(seen)

    def add(self, now: int, name: SeriesName, value: float) -> None:
        series = self.series.get(name)
        if series is None:
            series = self.series[name] = Series(name)
            self.found.clear()
        # The same series twice at one instant: the first counts.
        if not series.times or series.times[-1] != now:
            series.times.append(now)
            series.values.append(value)

    def forget(self, now: int) -> None:
        for name, series in tuple(self.series.items()):
            series.forget(now - self.keep_ms)
            if not series.times and name not in self.present:
                del self.series[name]
                self.found.clear()

    def matching(self, selector: Selector) -> list[Series]:
        key = Selector(name=selector.name, matchers=selector.matchers)
        if key not in self.found:
            fit = fits(selector.matchers)
            every = sorted(self.series.values(), key=lambda each: each.name)
            self.found[key] = [each for each in every if fit(dict(each.name))]
        return self.found[key]


class History:
    """The values of the metrics that are asked for. Others are not kept."""

    def __init__(self, keep_ms: Mapping[str, int]) -> None:
        self._metrics = {name: Metric(span) for name, span in keep_ms.items()}
        self._last = 0

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._metrics)

    @property
    def values(self) -> int:
        """How many are kept."""
        return sum(
            len(series.times)
            for metric in self._metrics.values()
            for series in metric.series.values()
        )

    def take_over(self, before: "History") -> None:
        """Go on with the series of another, where both keep their metric."""
        self._last = before._last
        for name, metric in self._metrics.items():
            kept = before._metrics.get(name)
            if kept is not None:
                metric.series, metric.present = kept.series, kept.present

    def begin(self, now: Instant) -> None:
        """A look begins. A clock that went back makes everything before it unusable."""
        if now < self._last:
            self._metrics = {name: Metric(each.keep_ms) for name, each in self._metrics.items()}
        self._last = now
        for metric in self._metrics.values():
            metric.forget(now)

    def append(
        self, now: Instant, name: str, points: Iterable[tuple[Mapping[str, str], float]]
    ) -> None:
        """Everything that this metric has now. What it had before and has no more ends here."""
        metric = self._metrics.get(name)
        if metric is not None:
            named = ((series_name({**labels, NAME: name}), value) for labels, value in points)
            metric.append(now, named)

    def end(self, now: Instant, name: str, labels: Mapping[str, str]) -> None:
        """This series ends here, whatever becomes of the others."""
        metric = self._metrics.get(name)
        series = None if metric is None else metric.series.get(series_name({**labels, NAME: name}))
        if series is not None:
            series.ended.append(now)

    def add(self, now: Instant, name: str, labels: Mapping[str, str], value: float) -> None:
        """One value of one series; the others are left as they are."""
        self._metrics[name].add(now, series_name({**labels, NAME: name}), value)

    def instant(self, selector: Selector, now: int) -> Vector:
        at = now - selector.offset_ms
        found = ((each.name, each.at(at)) for each in self._matching(selector))
        return [Sample(name, value) for name, value in found if value is not None]

    def ranges(
        self, selector: Selector, now: int
    ) -> "Iterable[tuple[SeriesName, array[int], array[float]]]":
        """Each series with its times and values; none that has no value in the range."""
        until = now - selector.offset_ms
        after = until - (selector.range_ms or 0)
        for series in self._matching(selector):
            times, values = series.within(after, until)
            if times:
                yield series.name, times, values

    def _matching(self, selector: Selector) -> list[Series]:
        metric = self._metrics.get(selector.name)
        return [] if metric is None else metric.matching(selector)


def kept_spans(expressions: Iterable[Expression]) -> dict[str, int]:
    """The metrics that are asked for, and for how long each must be kept."""
    spans: dict[str, int] = {}
    for expression in expressions:
        for selector in selectors(expression):
            span = (selector.range_ms or LOOKBACK_MS) + max(0, selector.offset_ms)
            spans[selector.name] = max(spans.get(selector.name, 0), span)
    return spans
