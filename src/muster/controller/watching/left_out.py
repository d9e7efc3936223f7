"""What was left out of metrics because there is too much of it: nobody shall miss it unaware."""

from collections import Counter
from collections.abc import Iterator
from threading import Lock

from muster.model.value import Instant
from muster.telemetry import names
from muster.telemetry.family import Family, Point

KINDS = (
    "devices",
    "device_jobs",
    "node_troubles",
    "gpu_health",
    "findings",
    "measured",
    "job_news",
)


class LeftOut:
    """Counts it, by kind."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
        self._lock = Lock()

    def count(self, what: str, number: int) -> None:
        with self._lock:
            self._counts[what] += number

    def __call__(self, _: Instant) -> Iterator[Family]:
        with self._lock:
            counts = sorted(self._counts.items())
        yield names.LEFT_OUT.family(Point((("what", what),), count) for what, count in counts)
