"""Lines that wait for a sink: a bounded queue that loses the oldest, and counts them."""

from collections import deque
from collections.abc import Iterable

from muster.telemetry.sinks.lines import Line

MOST_LINES, MOST_BYTES = 10_000, 16 * 1_048_576
BATCH_BYTES = 1_048_576
"""So much goes into one request."""


class LineQueue:
    """Who uses it sees to it that nobody else does at the same time."""

    def __init__(self) -> None:
        self.lost = 0
        self._lines: deque[Line] = deque()
        self._size = 0

    def __len__(self) -> int:
        return len(self._lines)

    def put(self, lines: Iterable[Line]) -> None:
        for line in lines:
            self._lines.append(line)
            self._size += line.size
            while len(self._lines) > MOST_LINES or self._size > MOST_BYTES:
                self._size -= self._lines.popleft().size
                self.lost += 1

    @property
    def is_batch(self) -> bool:
        """Is there enough to send it at once?"""
        return self._size >= BATCH_BYTES

    def batch(self) -> tuple[Line, ...]:
        """What is sent next, the oldest first; at least one line where there is any."""
        taken: list[Line] = []
        size = 0
        while self._lines and (not taken or size + self._lines[0].size <= BATCH_BYTES):
            line = self._lines.popleft()
            size += line.size
            taken.append(line)
        self._size -= size
        return tuple(taken)
