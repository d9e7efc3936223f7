"""The port to what is kept of telemetry.

Nothing here decides anything, so that little is asked of it: a crash may lose the last seconds, and
what is gone is begun again. Jobs never wait for it (`controller/watching/keeping.py`).
"""

from typing import Protocol

from muster.model.efficiency import FleetUse, JobReport
from muster.model.holding import Holding
from muster.model.minutes import MinuteBlock
from muster.model.value import DeviceId, Instant, JobId, QueuePath, UserName, Value

FORMAT = 2
"""What was kept in another one is set aside, or dropped: it is no loss."""


class PastQuery(Value):
    """Which attempts that are over: all that are given must hold; the latest first."""

    queue: QueuePath | None = None
    user: UserName | None = None
    since: Instant | None = None
    limit: int = 1_000


class Settled(Value):
    """What a look has settled for good, to be kept.

    reports: of attempts that are over. uses: what became of GPUs' time since the look before.
    holdings: those that ended. minutes: blocks that replace what is kept of the same hour.
    """

    reports: tuple[JobReport, ...] = ()
    uses: tuple[FleetUse, ...] = ()
    holdings: tuple[Holding, ...] = ()
    minutes: tuple[MinuteBlock, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.reports or self.uses or self.holdings or self.minutes)


class MeasuredStore(Protocol):
    """What is kept of telemetry. Any method may raise: who asks goes on without it."""

    def keep(self, settled: Settled) -> None:
        """All of these at once; what is kept already of the same attempt is replaced."""
        ...

    def report(self, job: JobId, attempt: int | None = None) -> JobReport | None:
        """Of one attempt, the last one unless it is named."""
        ...

    def reports(self, query: PastQuery) -> tuple[JobReport, ...]: ...

    def uses(self, since: Instant) -> tuple[FleetUse, ...]:
        """What became of GPUs from this hour on: one for each row and hour."""
        ...

    def holdings(
        self, since: Instant, until: Instant, device: DeviceId | None = None
    ) -> tuple[Holding, ...]:
        """Who had the device, or any, in this stretch; the earliest first."""
        ...

    def minutes(self, job: JobId, attempt: int) -> tuple[MinuteBlock, ...]:
        """What an attempt did minute by minute, by hour, node and device."""
        ...

    def forget(self, before: Instant, minutes_before: Instant) -> None:
        """Drop what was over before, and minutes that are older than those."""
        ...

    def close(self) -> None: ...
