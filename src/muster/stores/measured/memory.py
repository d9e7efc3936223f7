"""What was measured, as long as the process lasts."""

from threading import Lock

from muster.model.efficiency import FleetUse, JobReport
from muster.model.holding import Holding
from muster.model.minutes import MinuteBlock
from muster.model.queue import is_within
from muster.model.value import HOUR, DeviceId, Instant, JobId, replace
from muster.stores.measured import rows
from muster.stores.measured.base import PastQuery, Settled

_USE_KEY = 7


class MemoryMeasured:
    """For tests, and for a Muster that keeps nothing."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._reports: dict[tuple[JobId, int], JobReport] = {}
        self._uses: dict[rows.Row, FleetUse] = {}
        self._holdings: dict[rows.Row, Holding] = {}
        self._minutes: dict[rows.Row, MinuteBlock] = {}

    def keep(self, settled: Settled) -> None:
        with self._lock:
            self._reports.update({(each.job, each.attempt): each for each in settled.reports})
            self._holdings.update({rows.holding_row(each)[:5]: each for each in settled.holdings})
            self._minutes.update({rows.minutes_row(each)[:6]: each for each in settled.minutes})
            for each in settled.uses:
                self._add(each)

    def report(self, job: JobId, attempt: int | None = None) -> JobReport | None:
        with self._lock:
            found = [key for key in self._reports if key[0] == job and attempt in {None, key[1]}]
            return self._reports[max(found)] if found else None

    def reports(self, query: PastQuery) -> tuple[JobReport, ...]:
        with self._lock:
            every = sorted(self._reports.values(), key=lambda each: (-each.until, each.job))
        found = [
            each
            for each in every
            if each.until >= (query.since or 0)
            and query.user in {None, each.user}
            and (query.queue is None or is_within(each.queue, query.queue))
        ]
        return tuple(found[: query.limit])

    def uses(self, since: Instant) -> tuple[FleetUse, ...]:
        with self._lock:
            kept = [self._uses[key] for key in sorted(self._uses)]
        return tuple(each for each in kept if each.at >= since - since % HOUR)

    def holdings(
        self, since: Instant, until: Instant, device: DeviceId | None = None
    ) -> tuple[Holding, ...]:
        with self._lock:
            every = list(self._holdings.values())
        found = [
            each
            for each in every
            if device in {None, each.device}
            and each.since < until
            and (each.until is not None and each.until > since)
        ]
        return tuple(sorted(found, key=lambda each: (each.since, each.job, each.device)))

    def minutes(self, job: JobId, attempt: int) -> tuple[MinuteBlock, ...]:
        with self._lock:
            return tuple(
                self._minutes[key]
                for key in sorted(self._minutes, key=lambda key: key[2:])
                if key[:2] == (job, attempt)
            )

    def forget(self, before: Instant, minutes_before: Instant) -> None:
        hour, minutes_hour = before // HOUR, minutes_before // HOUR
        with self._lock:
            self._reports = {k: v for k, v in self._reports.items() if v.until >= before}
            self._holdings = {
                k: v for k, v in self._holdings.items() if v.until is None or v.until >= before
            }
            self._uses = {k: v for k, v in self._uses.items() if k[0] >= hour}
            self._minutes = {k: v for k, v in self._minutes.items() if k[2] >= minutes_hour}

    def close(self) -> None:
        """Nothing is left open."""

    def _add(self, use: FleetUse) -> None:
        key = rows.use_row(use)[:_USE_KEY]
        before = self._uses.get(key)
        into = replace(use, at=Instant(use.at - use.at % HOUR))
        if before is not None:
            into = replace(
                into,
                milli_ms=before.milli_ms + use.milli_ms,
                wasted=before.wasted + use.wasted,
            )
        self._uses[key] = into
