"""What was measured lately, by series: an hour of it, in columns.

    window = Window(HOUR, every=15 * SECOND)
    window.add(at, {("gpu0", "busy"): 0.93})
    window.values(("gpu0", "busy"), since=at - MINUTE)     # [(at, 0.93)]

A key is anything that can be hashed. A series that no longer comes ends where it did, and is
forgotten when its last value has left the window. Any thread may ask; one adds.
"""

import math
from array import array
from collections.abc import Hashable, Iterator, Mapping
from threading import Lock
from typing import Generic, TypeVar

from muster.model.value import MINUTE, Duration, Instant

K = TypeVar("K", bound=Hashable)

_SMALL_STEP = MINUTE
"""A clock that was set back by less is waited for; by more, what was kept is forgotten."""


class _Column:
    """The values of one series, at the places of their ticks."""

    __slots__ = ("last", "values")

    def __init__(self, places: int) -> None:
        self.values = array("d", [math.nan]) * places
        self.last = -1

    def put(self, tick: int, value: float) -> None:
        """Ticks that were left out hold nothing, not what stood there a round ago."""
        places = len(self.values)
        for each in range(max(self.last + 1, tick - places + 1), tick):
            self.values[each % places] = math.nan
        self.values[tick % places] = value
        self.last = tick


class Window(Generic[K]):
    """Values of the last `span`, which come about `every` so often."""

    def __init__(self, span: Duration, every: Duration) -> None:
        self.span = span
        self._places = span // every + 1
        self._lock = Lock()
        self._forget()

    def add(self, at: Instant, values: Mapping[K, float]) -> None:
        """Everything that was measured at this instant."""
        with self._lock:
            if self._tick >= 0 and at <= self._at(self._tick):
                if self._at(self._tick) - at < _SMALL_STEP:
                    return
                self._forget()
            self._tick += 1
            self._times[self._tick % self._places] = at
            for key, value in values.items():
                column = self._columns.get(key)
                if column is None:
                    column = self._columns[key] = _Column(self._places)
                column.put(self._tick, value)
            if self._tick % self._places == 0:
                self._drop_ended()

    def values(self, key: K, since: Instant | None = None) -> list[tuple[Instant, float]]:
        """What the series held since then, the oldest first; nothing where it held nothing."""
        with self._lock:
            column = self._columns.get(key)
            if column is None:
                return []
            return [
                (at, value)
                for tick, at in self._ticks(since)
                if tick <= column.last
                and not math.isnan(value := column.values[tick % self._places])
            ]

    def latest(self, key: K) -> tuple[Instant, float] | None:
        """What the series held at the last instant that anything was added; None if nothing."""
        with self._lock:
            column = self._columns.get(key)
            if column is None or column.last != self._tick:
                return None
            return self._at(self._tick), column.values[self._tick % self._places]

    def keys(self) -> tuple[K, ...]:
        """All series of which anything is left."""
        with self._lock:
            return tuple(self._columns)

    def _ticks(self, since: Instant | None) -> Iterator[tuple[int, Instant]]:
        newest = self._at(self._tick) if self._tick >= 0 else Instant(0)
        oldest = max(newest - self.span, since if since is not None else 0)
        for tick in range(max(0, self._tick - self._places + 1), self._tick + 1):
            at = self._at(tick)
            if at >= oldest:
                yield tick, at

    def _at(self, tick: int) -> Instant:
        return Instant(self._times[tick % self._places])

    def _drop_ended(self) -> None:
        oldest = self._tick - self._places
        self._columns = {
            key: column for key, column in self._columns.items() if column.last > oldest
        }

    def _forget(self) -> None:
        self._tick = -1
        self._times = array("q", [0]) * self._places
        self._columns: dict[K, _Column] = {}
