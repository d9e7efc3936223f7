"""What is over, and what happened: from the store."""

from collections.abc import Callable

from muster.controller.messages import Caller
from muster.controller.queries.jobs import JobQueries
from muster.controller.queries.sight import masked_event
from muster.controller.rights import demand, demand_viewer
from muster.controller.world.journal import Journal, KeepingStore
from muster.controller.world.transaction import Change
from muster.model.history import Attempt, AuditEntry
from muster.model.job import Job
from muster.model.site import Role
from muster.model.steps import Step
from muster.model.value import Instant, JobId, replace
from muster.stores.base import Batch, EndedPage, EventQuery, HistoryQuery, Stored
from muster.stores.bodies import job_of


class HistoryQueries:
    """Ended jobs, past attempts, steps, events and the audit log."""

    def __init__(self, journal: Journal, jobs: JobQueries) -> None:
        self._jobs = jobs
        self._journal = journal
        self._record = journal.record
        self._store: KeepingStore = journal.store

    def jobs(self, caller: Caller, query: HistoryQuery) -> EndedPage:
        """Jobs that have ended."""
        demand_viewer(caller, self._record.site)
        page = self._store.ended(query)
        sight = self._jobs.sight(caller)
        if sight.is_clear:
            return page
        seen = (replace(each, job=sight.job(each.job)) for each in page.jobs)
        return replace(page, jobs=tuple(each for each in seen if _is_asked_for(each.job, query)))

    def attempts(self, caller: Caller, jobs: tuple[JobId, ...]) -> tuple[Attempt, ...]:
        """All attempts of these jobs that are over."""
        demand_viewer(caller, self._record.site)
        return self._store.attempts(jobs)

    def steps(self, caller: Caller, jobs: tuple[JobId, ...]) -> tuple[Step, ...]:
        """All steps of these jobs, running or over, by job, attempt and number."""
        demand_viewer(caller, self._record.site)
        return tuple(self._jobs.sight(caller).steps(self._store.steps(jobs), self._known(jobs)))

    def events(self, caller: Caller, query: EventQuery) -> tuple[Stored, ...]:
        """Facts from the log, without names that the caller may not see."""
        demand_viewer(caller, self._record.site)
        return self.seen(caller, self._store.events(query))

    def seen(self, caller: Caller, events: tuple[Stored, ...]) -> tuple[Stored, ...]:
        """The events as the caller sees them; those that show all are the same objects."""
        sight = self._jobs.sight(caller)
        if sight.is_clear:
            return events
        named = tuple({job for each in events if (job := job_of(each.event)) is not None})
        known = self._known(named)

        def shown(stored: Stored) -> Stored:
            job = job_of(stored.event)
            if job is None or (job in known and sight.sees(known[job])):
                return stored
            return replace(stored, event=masked_event(stored.event))

        return tuple(map(shown, events))

    def _known(self, jobs: tuple[JobId, ...]) -> dict[JobId, Job]:
        """These jobs, live or over."""
        live = {job: self._record.jobs[job] for job in jobs if job in self._record.jobs}
        gone = tuple(job for job in jobs if job not in live)
        if gone:
            page = self._store.ended(HistoryQuery(jobs=gone, limit=len(gone)))
            live |= {each.job.id: each.job for each in page.jobs}
        return live

    def follow(self, notify: Callable[[tuple[Stored, ...]], None]) -> Callable[[], None]:
        """Pass on each commit from now on, from another thread; calling the result ends it."""

        def pass_on(batch: Batch, _: tuple[Change, ...]) -> None:
            first = self._journal.last_event - len(batch.events) + 1
            notify(
                tuple(
                    Stored(number=first + at, event=event) for at, event in enumerate(batch.events)
                )
            )

        return self._journal.subscribers.add(pass_on)

    def audit(
        self, caller: Caller, *, before: Instant | None, limit: int
    ) -> tuple[AuditEntry, ...]:
        """Who changed what; for administrators."""
        demand(caller, self._record.site, Role.ADMIN, to="read the audit log")
        return self._store.audit(before=before, limit=limit)


def _is_asked_for(job: Job, query: HistoryQuery) -> bool:
    """The store chose among names that the caller may not see: what it must not have found goes."""
    return (not query.users or job.spec.user in query.users) and query.name in {
        None,
        job.spec.name,
    }
