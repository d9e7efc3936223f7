"""How long plans take, and what becomes of them."""

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from threading import Lock

from muster.telemetry.family import Point
from muster.telemetry.histogram import WORK_S, Histogram


class PlanOutcome(StrEnum):
    """What became of a plan. stale: something else was committed first; it is made again."""

    COMMITTED = "committed"
    STALE = "stale"
    REFUSED = "refused"


class PlanTimes:
    """Written by the planning thread, read by any."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._histogram = Histogram(WORK_S)
        self._outcomes = Counter(dict.fromkeys(PlanOutcome, 0))

    def made(self, outcome: PlanOutcome, seconds: float) -> None:
        with self._lock:
            self._outcomes[outcome] += 1
            self._histogram.observe(seconds)

    def points(self) -> tuple[Point, ...]:
        with self._lock:
            return tuple(self._histogram.points())

    def outcomes(self) -> Mapping[str, int]:
        with self._lock:
            return {str(outcome): count for outcome, count in self._outcomes.items()}
