"""How long the store takes to write, and how often it refused."""

from threading import Lock

from muster.telemetry.family import Point
from muster.telemetry.histogram import WORK_S, Histogram


class WriteTimes:
    """Written by the thread that commits, read by any."""

    def __init__(self) -> None:
        self.errors = 0
        self._lock = Lock()
        self._histogram = Histogram(WORK_S)

    def wrote(self, seconds: float) -> None:
        with self._lock:
            self._histogram.observe(seconds)

    def points(self) -> tuple[Point, ...]:
        with self._lock:
            return tuple(self._histogram.points())
