"""From a forecast to a range that holds as often as it says: by how earlier forecasts came out.

A forecast is compared with those before it that looked like it: as long a wait, courses that
differed as much, as many jobs waiting, as large a job, as many courses, the same queue and class.
What became of these says where the start will lie. So what is told early, from one course or from
a sketch, is as wide as such news must be. There are two ways to read them: by how many times longer
their waits were than foreseen, or by their waits alone. Where forecasts are worth nothing the
second is better; the way that was closer lately is taken.

The range is the shortest one that has enough of them in it. It is stretched a little with each
date that does not hold, and shrinks a little with each that does, in each queue and class: so it
holds as often as it says, whatever the forecasts are like.
"""

from collections.abc import Iterable
from math import ceil, exp, log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muster.model.dates import OF_TEN, Foreseen, KeptDate
from muster.model.value import Duration

Floats = npt.NDArray[np.float64]
Group = tuple[str, str]

LEAST_MS = 1_000
"""Added to every wait: seconds more or less do not matter."""

MOST_KEPT = 2_000
"""Of so many of the latest dates it is known what became of them."""

ALIKE = 30
"""So many that are most alike are looked at."""

FEWEST_ALIKE = 15
"""Below this, a guess by the forecast's own spread counts with them."""

LEAST_SPREAD = 0.5
GUESS = np.array([-1.64, -1.04, -0.67, -0.39, -0.13, 0.13, 0.39, 0.67, 1.04, 1.64])
"""Ten equal parts of a normal distribution."""

SCALES = np.array([1.0, 1.0, 1.0, 1.5, 0.5])
"""How far apart forecasts may be in wait, spread, waiting jobs, size and courses to be alike."""

OTHER_GROUP = 1.0
"""How far apart two forecasts are because they are of other queues or classes."""

BASE = 0.8
"""So many of those that are alike lie in the range before it is stretched."""

TARGET = OF_TEN / 10
STRETCH_STEP = 0.05
LEAST_WIDTH = 0.002
LEAST_STRETCH, MOST_STRETCH = -6.0, 3.0

ERROR_KEPT = 0.97
WORST_ERROR = 3.0
FIRST_ERROR = 0.5
BETTER = 0.9
"""Waits alone are read when they were closer than this part of the other error."""


class WaitRange(NamedTuple):
    """Until the start, in milliseconds."""

    early: Duration
    middle: Duration
    late: Duration


class Calibration:
    """What became of dates. One thread calls."""

    def __init__(self) -> None:
        self._seen: list[tuple[Floats, Group, float]] = []
        self._table: tuple[Floats, Floats, Floats] | None = None
        self._numbers: dict[Group, int] = {}
        self._stretch: dict[Group, float] = {}
        self._common_stretch = 0.0
        # By the ratio to the forecast, and by waits alone.
        self._errors = (FIRST_ERROR, FIRST_ERROR)

    def learn(self, kept: KeptDate) -> None:
        """A job that was told a date has started."""
        found, group = kept.foreseen, _group(kept.foreseen)
        waited = _measure(kept.started_at - kept.told_at)
        by_ratio, by_wait = (float(np.median(each)) for each in self._alike(found))
        self._errors = (
            _moved(self._errors[0], abs(by_ratio - waited)),
            _moved(self._errors[1], abs(by_wait - waited)),
        )
        missed = (0.0 if kept.held else 1.0) - (1 - TARGET)
        own = self._stretch.get(group, self._common_stretch)
        self._stretch[group] = _stretched(own, missed)
        self._common_stretch = _stretched(self._common_stretch, missed)
        self._seen.append((_features(found), group, waited))
        del self._seen[:-MOST_KEPT]
        self._table = None

    def learn_all(self, kept: Iterable[KeptDate]) -> None:
        """The oldest first."""
        for each in kept:
            self.learn(each)

    def range(self, foreseen: Foreseen) -> WaitRange:
        """When the job starts, as a range that holds eight of ten times."""
        by_ratio, by_wait = self._alike(foreseen)
        is_by_wait = self._errors[1] < BETTER * self._errors[0]
        measures = np.sort(by_wait if is_by_wait else by_ratio)
        low, high = _shortest(measures)
        middle = min(max(float(np.median(measures)), low), high)
        stretch = exp(self._stretch.get(_group(foreseen), self._common_stretch))
        return WaitRange(
            early=_ms(middle - (middle - low + LEAST_WIDTH) * stretch),
            middle=_ms(middle),
            late=_ms(middle + (high - middle + LEAST_WIDTH) * stretch),
        )

    def _alike(self, foreseen: Foreseen) -> tuple[Floats, Floats]:
        """Where the start would lie by each of those that are alike, read in both ways."""
        here, group = _features(foreseen), _group(foreseen)
        guess = here[0] + max(LEAST_SPREAD, float(here[1])) * GUESS
        if not self._seen:
            return guess, guess
        features, groups, waits = self._known()
        others = (groups != self._number(group)).astype(np.float64)
        apart = (np.abs(features - here) / SCALES).sum(axis=1) + others * OTHER_GROUP
        count = min(ALIKE, len(waits))
        nearest = np.argpartition(apart, count - 1)[:count]
        by_ratio = here[0] + waits[nearest] - features[nearest, 0]
        by_wait = waits[nearest]
        if count >= FEWEST_ALIKE:
            return by_ratio, by_wait
        return np.concatenate([by_ratio, guess]), np.concatenate([by_wait, guess])

    def _number(self, group: Group) -> int:
        """Numbers are compared all at once."""
        return self._numbers.setdefault(group, len(self._numbers))

    def _known(self) -> tuple[Floats, Floats, Floats]:
        if self._table is None:
            features = np.stack([each for each, _, _ in self._seen])
            groups = np.array([self._number(group) for _, group, _ in self._seen], dtype=np.float64)
            self._table = features, groups, np.array([waited for _, _, waited in self._seen])
        return self._table


def _features(found: Foreseen) -> Floats:
    return np.array(
        [
            _measure(found.wait),
            found.spread_milli / 1_000,
            log(1 + found.waiting),
            log(1 + found.gpu_milli / 1_000),
            log(1 + found.courses),
        ]
    )


def _group(found: Foreseen) -> Group:
    return found.queue, found.job_class


def _shortest(measures: Floats) -> tuple[float, float]:
    """The ends of the shortest stretch of time with enough of these in it."""
    count = len(measures)
    inside = min(count, ceil(BASE * (count + 1)))
    times = np.exp(measures)
    widths = times[inside - 1 :] - times[: count - inside + 1]
    first = int(np.argmin(widths))
    return float(measures[first]), float(measures[first + inside - 1])


def _measure(wait: int) -> float:
    return log(max(0, wait) + LEAST_MS)


def _ms(measure: float) -> Duration:
    return Duration(max(0, round(exp(min(measure, 40.0)) - LEAST_MS)))


def _moved(error: float, new: float) -> float:
    return ERROR_KEPT * error + (1 - ERROR_KEPT) * min(WORST_ERROR, new)


def _stretched(stretch: float, missed: float) -> float:
    return min(MOST_STRETCH, max(LEAST_STRETCH, stretch + STRETCH_STEP * missed))
