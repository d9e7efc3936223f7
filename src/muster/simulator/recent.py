"""Requests as they lately came: what forecasts let come again, day by day as it was."""

from bisect import bisect_left
from collections.abc import Iterator

from muster.model.job import Job, JobSpec
from muster.model.launch import NO_LAUNCH
from muster.model.value import DAY, Duration, Instant, JobId, replace
from muster.simulator.chance import chance
from muster.simulator.run import Arrival

DAYS_KEPT = 7
MOST_KEPT = 20_000
LEAST_SEEN = Duration(3_600_000)
"""What was seen for less than this says nothing about how much comes."""


class RecentArrivals:
    """The requests of the last days, in the order of their coming."""

    def __init__(self) -> None:
        self._came: list[tuple[Instant, JobId, JobSpec]] = []
        self._known: set[JobId] = set()
        self._since: Instant | None = None

    def note(self, job: Job) -> None:
        """A job was submitted, now or some time ago; to say so again does no harm."""
        if job.id in self._known:
            return
        self._known.add(job.id)
        entry = (job.submitted_at, job.id, _again(job.spec))
        if self._came and entry[:2] < self._came[-1][:2]:
            self._came.insert(bisect_left(self._came, entry[:2], key=lambda each: each[:2]), entry)
        else:
            self._came.append(entry)
        if self._since is None or job.submitted_at < self._since:
            self._since = job.submitted_at
        if len(self._came) > 2 * MOST_KEPT:
            self._forget()

    def coming(self, now: Instant, draw: int) -> Iterator[Arrival]:
        """What may come after now: each day is one of the last days, drawn by chance.

        Where less than a day is known, that is what comes again and again.
        """
        if self._since is None or now - self._since < LEAST_SEEN:
            return
        known = min(now - self._since, DAYS_KEPT * DAY)
        span, days = (DAY, known // DAY) if known >= DAY else (known, 1)
        for day in range(10_000):
            back = 1 + int(chance(draw, day) * days)
            shift = (day + back) * span
            begin = now + day * span
            yield from self._between(begin - shift, begin - shift + span, shift)

    def _between(self, begin: int, end: int, shift: int) -> Iterator[Arrival]:
        place = bisect_left(self._came, begin, key=lambda each: each[0])
        while place < len(self._came) and self._came[place][0] < end:
            at, _, spec = self._came[place]
            yield Arrival(at=Instant(at + shift), spec=spec)
            place += 1

    def _forget(self) -> None:
        oldest = self._came[-1][0] - DAYS_KEPT * DAY
        self._came = [each for each in self._came[-MOST_KEPT:] if each[0] >= oldest]
        self._known = {job for _, job, _ in self._came}
        self._since = self._came[0][0]


def _again(spec: JobSpec) -> JobSpec:
    """The request as it could come again: not bound to dates, to other jobs or to an array."""
    return replace(
        spec,
        begin_at=None,
        deadline=None,
        after=(),
        array=None,
        launch=NO_LAUNCH,
    )
