"""Minutes that were judged, gathered into blocks of an hour to be kept (pure).

blocks.add(minute, judged)
blocks.settled(now, over)           # blocks that are to be kept now, some of them again
blocks.of(job, attempt)             # what is not let go yet
"""

from collections.abc import Collection, Sequence

from muster.model.minutes import CAUSES, HIGHEST, MINUTES, NOT_KNOWN, MinuteBlock
from muster.model.value import HOUR, MINUTE, Duration, Instant, JobId
from muster.telemetry.diagnosis.gathering import Attempt, Minute
from muster.telemetry.diagnosis.judging import Judged, Part
from muster.telemetry.diagnosis.signals import Signals

KEPT_SIGNALS = (
    "busy", "sm", "tensor", "dram", "memory", "power", "clock", "link", "cpu", "io",
    "host_memory", "temperature",
)  # fmt: skip

KEPT_EVERY = Duration(5 * MINUTE)
"""So much may be lost with this process."""

STILL_JUDGED = Duration(2 * MINUTE)
"""Minutes of an hour that is over may come for so long."""

MOST_BLOCKS = 4_000
"""So many parts of devices are followed minute by minute; of more, reports alone are kept."""

_PLACE_OF = {cause: place for place, cause in enumerate(CAUSES)}

_Key = tuple[Attempt, Part, int]


class _Open:
    """One block that is being written."""

    __slots__ = ("causes", "columns", "is_new")

    def __init__(self) -> None:
        self.causes = bytearray([NOT_KNOWN]) * MINUTES
        self.columns: dict[str, bytearray] = {}
        self.is_new = False

    def put(self, minute: int, cause: int, signals: Signals) -> None:
        self.causes[minute] = cause
        self.is_new = True
        for name in KEPT_SIGNALS:
            value: float = getattr(signals, name)
            # Not so where it is missing.
            if value >= 0:
                column = self.columns.get(name)
                if column is None:
                    column = self.columns[name] = bytearray([NOT_KNOWN]) * MINUTES
                column[minute] = min(HIGHEST, round(value / _SCALE.get(name, 10)))


_SCALE = {"temperature": 1_000}


class Blocks:
    """Of all attempts that hold a device. One thread."""

    def __init__(self) -> None:
        self._open: dict[_Key, _Open] = {}
        self._kept_at = Instant(0)

    def add(self, minute: Minute, judged: Sequence[Judged]) -> None:
        """One minute, with the causes of its parts."""
        place, hour = minute.at % HOUR // MINUTE, minute.at - minute.at % HOUR
        for each in judged:
            key = (minute.attempt, each.member.part, hour)
            block = self._open.get(key)
            if block is None:
                if len(self._open) >= MOST_BLOCKS:
                    continue
                block = self._open[key] = _Open()
            block.put(place, _PLACE_OF[each.cause], each.member.signals)

    def settled(self, now: Instant, over: Collection[Attempt]) -> tuple[MinuteBlock, ...]:
        """What has changed, every few minutes; and at once what is over, which is let go."""
        is_time = now - self._kept_at >= KEPT_EVERY
        if is_time:
            self._kept_at = now
        gone = [key for key in self._open if key[0] in over or key[2] + HOUR + STILL_JUDGED <= now]
        kept = [key for key in (self._open if is_time else gone) if self._open[key].is_new]
        found = tuple(_block(key, self._open[key]) for key in sorted(kept, key=_order))
        for key in kept:
            self._open[key].is_new = False
        for key in gone:
            del self._open[key]
        return found

    def of(self, job: JobId, attempt: int) -> tuple[MinuteBlock, ...]:
        """What is known here of one attempt."""
        keys = [key for key in self._open if key[0] == (job, attempt)]
        return tuple(_block(key, self._open[key]) for key in sorted(keys, key=_order))


def _block(key: _Key, block: _Open) -> MinuteBlock:
    (job, attempt), part, hour = key
    return MinuteBlock(
        job=job,
        attempt=attempt,
        node=part.node,
        device=part.device,
        start=part.start,
        hour=Instant(hour),
        causes=bytes(block.causes),
        columns={name: bytes(column) for name, column in block.columns.items()},
    )


def _order(key: _Key) -> tuple[Attempt, int, str, str, int]:
    attempt, part, hour = key
    return attempt, hour, part.node, part.device, part.start or 0
