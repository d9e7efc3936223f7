"""When to plan next although nothing happened: what is due at a certain time."""

import heapq
from collections.abc import Iterable, Iterator

from muster.controller.stage import Change
from muster.model.event import JobStarted
from muster.model.job import Job, JobState
from muster.model.site import Site
from muster.model.value import Instant


class Alarms:
    """The instants at which a waiting job may become able to start, or a promise begins or ends."""

    def __init__(self) -> None:
        self._due: list[Instant] = []
        self._site: Site | None = None

    def note_job(self, job: Job, now: Instant) -> None:
        """Remember when something about this job falls due."""
        if job.state is not JobState.PENDING:
            return
        for at in _due_for(job):
            if at > now:
                heapq.heappush(self._due, at)

    def note(self, changes: tuple[Change, ...], site: Site, now: Instant) -> None:
        """Remember what falls due because of what was committed."""
        for change in changes:
            self.note_job(change.after, now)
        if site is not self._site:
            self._site = site
            for each in site.reservations:
                heapq.heappush(self._due, each.begins_at)
                heapq.heappush(self._due, each.ends_at)

    def note_started(self, event: JobStarted, jobs: Iterable[Job]) -> None:
        """Others may wait for some time after this start."""
        for job in tuple(jobs):
            for each in job.spec.after:
                if each.job == event.job and each.delay:
                    heapq.heappush(self._due, Instant(event.at + each.delay))

    def ring(self, now: Instant) -> bool:
        """Is something due by now? It is due once."""
        rang = False
        while self._due and self._due[0] <= now:
            heapq.heappop(self._due)
            rang = True
        return rang

    def next_at(self) -> Instant | None:
        return self._due[0] if self._due else None


def _due_for(job: Job) -> Iterator[Instant]:
    if job.begin_at is not None:
        yield job.begin_at
    if job.claim is not None:
        yield job.claim.until
    if job.spec.deadline is not None:
        yield Instant(job.spec.deadline - (job.spec.time_limit or 0) + 1)
