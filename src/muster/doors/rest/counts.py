"""How many requests were answered, how and how fast: by operation, never by path."""

from collections import Counter
from collections.abc import Iterator
from threading import Lock

from muster.model.value import Instant
from muster.telemetry import names
from muster.telemetry.family import Family, Point
from muster.telemetry.histogram import WORK_S, Histogram

_Kind = tuple[str, str, str]


class DoorCounts:
    """Counts what one process answers."""

    def __init__(self) -> None:
        self._answers: Counter[_Kind] = Counter()
        self._times: dict[tuple[str, str], Histogram] = {}
        self._lock = Lock()

    def answered(self, door: str, operation: str, status: int, seconds: float) -> None:
        """door: through which somebody asked, such as `cli`."""
        with self._lock:
            self._answers[door, operation, str(status)] += 1
            times = self._times.get((door, operation))
            if times is None:
                times = self._times[door, operation] = Histogram(WORK_S)
            times.observe(seconds)

    def __call__(self, _: Instant) -> Iterator[Family]:
        with self._lock:
            answers = sorted(self._answers.items())
            times = [
                point
                for (door, operation), histogram in sorted(self._times.items())
                for point in histogram.points((("door", door), ("operation", operation)))
            ]
        yield names.DOOR_REQUESTS.family(
            Point((("door", door), ("operation", operation), ("code", code)), count)
            for (door, operation, code), count in answers
        )
        yield names.DOOR_SECONDS.family(times)
