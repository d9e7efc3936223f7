"""Which jobs have waited for so long that somebody is told, without looking at all of them."""

from collections.abc import Collection, Iterable, Iterator
from heapq import heappop, heappush

from muster.model.job import Job, JobState
from muster.model.value import Duration, Instant, JobId

_Due = tuple[Instant, JobId, Instant, Duration]


class LongWaits:
    """Time counts from when a job began to wait: again after each attempt, not while it is held."""

    def __init__(self) -> None:
        self._spans: tuple[Duration, ...] = ()
        self._since: dict[JobId, Instant] = {}
        self._due: list[_Due] = []

    def use(self, spans: Collection[Duration], jobs: Iterable[Job], now: Instant) -> None:
        """Tell after these. jobs: those that are there, if they were not followed so far."""
        if not self._spans:
            self._since = {
                job.id: now if job.attempt else job.submitted_at
                for job in jobs
                if job.state is JobState.PENDING
            }
        self._spans = tuple(sorted(spans))
        if not self._spans:
            self._since = {}
        self._due = []
        for job_id, since in self._since.items():
            self._push(job_id, since)

    def follow(self, job: Job, now: Instant) -> None:
        """It is so now."""
        if not self._spans:
            return
        if job.state is not JobState.PENDING:
            self._since.pop(job.id, None)
        elif job.id not in self._since:
            self._since[job.id] = now
            self._push(job.id, now)

    def due(self, now: Instant) -> Iterator[tuple[JobId, Duration]]:
        """Who has waited for how long by now; each is told once."""
        while self._due and self._due[0][0] <= now:
            _, job_id, since, span = heappop(self._due)
            if self._since.get(job_id) == since:
                yield job_id, span

    def next_at(self) -> Instant | None:
        return self._due[0][0] if self._due else None

    def _push(self, job_id: JobId, since: Instant) -> None:
        for span in self._spans:
            heappush(self._due, (Instant(since + span), job_id, since, span))
