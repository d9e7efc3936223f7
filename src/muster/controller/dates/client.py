"""What the controller asks a forecaster for: dates, in a process of its own or in this thread."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from muster.controller.dates.protocol import DatesReply, ForecastRequest, JobDate, Lessons, Supposed
from muster.controller.planner.protocol import snapshot_delta
from muster.model.dates import Moved, StartDate
from muster.model.site import Site
from muster.model.snapshot import Snapshot
from muster.model.value import Instant, JobId, Value, replace

NOTHING_YET = Snapshot(now=Instant(0))


class RuledSnapshot(Value):
    """A snapshot and its rules."""

    snapshot: Snapshot
    site: Site


class SupposedDates(Value):
    """What a forecast says of a supposed world: the date of a job, or which jobs move."""

    date: StartDate | None = None
    moved: tuple[Moved, ...] = ()


Past = Callable[[], Lessons]
"""What was learned before: for a forecaster that begins."""


class Forecasts(Protocol):
    """Where dates are made."""

    def dates(self, snapshot: Snapshot, site: Site, news: Lessons) -> Iterator[tuple[JobDate, ...]]:
        """Dates of those who wait, the first in line first; later ones take their place.

        news: what happened since the last time. Raises a MusterError when there are none now.
        """
        ...

    def suppose(
        self, usual: RuledSnapshot, changed: RuledSnapshot, job: JobId | None
    ) -> SupposedDates:
        """What would be different in a changed world: the date of this job, or who moves."""
        ...

    def start(self) -> None:
        """Be ready: to start a process takes longer than to answer."""
        ...

    def close(self) -> None: ...


class Correspondence:
    """What one forecaster was sent so far."""

    def __init__(self, past: Past) -> None:
        self._past = past
        self._sent = NOTHING_YET
        self._site: Site | None = None

    def request(self, snapshot: Snapshot, site: Site, news: Lessons) -> ForecastRequest:
        """What it does not know yet; the first time, everything."""
        is_first = self._site is None
        request = ForecastRequest(
            delta=snapshot_delta(self._sent, snapshot),
            site=None if site is self._site else site,
            lessons=self._past() if is_first else news,
        )
        self._sent, self._site = snapshot, site
        return request

    def supposing(
        self, usual: RuledSnapshot, changed: RuledSnapshot, job: JobId | None
    ) -> ForecastRequest:
        """The same of the usual world, and how the changed one differs."""
        request = self.request(usual.snapshot, usual.site, Lessons())
        delta = snapshot_delta(usual.snapshot, changed.snapshot)
        return replace(request, supposed=Supposed(delta=delta, site=changed.site, job=job))


def supposed_dates(replies: Iterable[DatesReply]) -> SupposedDates:
    """What the frames of an answer say together."""
    date, moved = None, list[Moved]()
    for reply in replies:
        moved += reply.moved
        date = reply.told[-1].date if reply.told else date
    return SupposedDates(date=date, moved=tuple(moved))
