"""What is over, and what happened: from the store."""

from collections.abc import Callable

from muster.controller.messages import Caller
from muster.controller.rights import demand, demand_viewer
from muster.controller.world.journal import Journal, KeepingStore
from muster.controller.world.transaction import Change
from muster.model.history import Attempt, AuditEntry
from muster.model.site import Role
from muster.model.steps import Step
from muster.model.value import Instant, JobId
from muster.stores.base import Batch, EndedPage, EventQuery, HistoryQuery, Stored


class HistoryQueries:
    """Ended jobs, past attempts, steps, events and the audit log."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._record = journal.record
        self._store: KeepingStore = journal.store

    def jobs(self, caller: Caller, query: HistoryQuery) -> EndedPage:
        """Jobs that have ended."""
        demand_viewer(caller, self._record.site)
        return self._store.ended(query)

    def attempts(self, caller: Caller, jobs: tuple[JobId, ...]) -> tuple[Attempt, ...]:
        """All attempts of these jobs that are over."""
        demand_viewer(caller, self._record.site)
        return self._store.attempts(jobs)

    def steps(self, caller: Caller, jobs: tuple[JobId, ...]) -> tuple[Step, ...]:
        """All steps of these jobs, running or over, by job, attempt and number."""
        demand_viewer(caller, self._record.site)
        return self._store.steps(jobs)

    def events(self, caller: Caller, query: EventQuery) -> tuple[Stored, ...]:
        """Facts from the log."""
        demand_viewer(caller, self._record.site)
        return self._store.events(query)

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
