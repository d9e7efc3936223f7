"""What an attempt did on its devices, minute by minute, as it is kept."""

from collections.abc import Iterator, Mapping

from muster.model.finding import Cause
from muster.model.value import MINUTE, DeviceId, Instant, JobId, NodeId, Value

MINUTES = 60
NOT_KNOWN = 255
"""No measure and no cause has this byte."""

HIGHEST = 254

CAUSES: tuple[Cause, ...] = tuple(Cause)
"""A cause is kept as its place here; another order is another format of the store."""


class MinuteBlock(Value):
    """One part of a device in one hour: columns of a byte for each minute.

    hour: when it begins. start: the memory slice at which a MIG instance begins.
    causes: places in `CAUSES`. columns: signals in hundredths of their whole, and degrees for
    `temperature`; a minute that is not known is `NOT_KNOWN`.
    """

    job: JobId
    attempt: int
    node: NodeId
    device: DeviceId
    hour: Instant
    causes: bytes
    columns: Mapping[str, bytes]
    start: int | None = None

    def held_minutes(self) -> Iterator[tuple[Instant, Cause, Mapping[str, int]]]:
        """Each minute in which it was held: its cause, and what is known of it."""
        for minute, cause in enumerate(self.causes):
            if cause != NOT_KNOWN:
                known = {
                    name: column[minute]
                    for name, column in self.columns.items()
                    if column[minute] != NOT_KNOWN
                }
                yield Instant(self.hour + minute * MINUTE), CAUSES[cause], known
