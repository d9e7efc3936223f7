"""A store in tables: what SQLite and PostgreSQL do in the same words."""

import time
from collections.abc import Callable
from typing import TypeVar

from muster.model.dates import KeptDate
from muster.model.errors import StoreError
from muster.model.history import Attempt, AuditEntry, Finished
from muster.model.launch import Launch
from muster.model.steps import Step
from muster.model.value import Instant, JobId
from muster.stores.appending import appending
from muster.stores.base import (
    Batch,
    EndedPage,
    EventQuery,
    HistoryQuery,
    LiveState,
    Stored,
)
from muster.stores.finding import (
    finding_attempts,
    finding_audit,
    finding_dates,
    finding_ended,
    finding_events,
    finding_finished,
    finding_steps,
)
from muster.stores.forgetting import PIECE, forgetting
from muster.stores.loading import following, launching, loading
from muster.stores.talking import Database, Talk

T = TypeVar("T")

BREATH_S = 0.002
"""Between two pieces of forgetting, so that who waits to write gets its turn."""


class TableStore:
    """`Store` and `History` over a database; what differs is the database's."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self) -> LiveState:
        return self._database.read(loading)

    def append(self, batch: Batch) -> None:
        self._write(lambda: appending(batch))

    def since(self, version: int) -> tuple[Batch, ...]:
        return self._database.read(lambda: following(version))

    def launch(self, job: JobId) -> Launch | None:
        return self.launches((job,)).get(job)

    def launches(self, jobs: tuple[JobId, ...]) -> dict[JobId, Launch]:
        return self._database.read(lambda: launching(jobs))

    def close(self) -> None:
        self._database.close()

    def ended(self, query: HistoryQuery) -> EndedPage:
        return self._database.read(lambda: finding_ended(query))

    def finished(self, jobs: tuple[JobId, ...]) -> dict[JobId, Finished]:
        return self._database.read(lambda: finding_finished(jobs))

    def attempts(self, jobs: tuple[JobId, ...]) -> tuple[Attempt, ...]:
        return self._database.read(lambda: finding_attempts(jobs))

    def steps(self, jobs: tuple[JobId, ...]) -> tuple[Step, ...]:
        return self._database.read(lambda: finding_steps(jobs))

    def events(self, query: EventQuery) -> tuple[Stored, ...]:
        return self._database.read(lambda: finding_events(query))

    def audit(self, *, before: Instant | None, limit: int) -> tuple[AuditEntry, ...]:
        return self._database.read(lambda: finding_audit(before, limit))

    def dates(self, *, since: Instant, limit: int) -> tuple[KeptDate, ...]:
        return self._database.read(lambda: finding_dates(since, limit))

    def forget(self, before: Instant, *, limit: int) -> int:
        forgotten = 0
        while forgotten < limit:
            piece = min(PIECE, limit - forgotten)
            count = self._write(_forgetting(before, piece))
            forgotten += count
            if count < piece:
                break
            time.sleep(BREATH_S)
        return forgotten

    def _write(self, talk: Callable[[], Talk[T]]) -> T:
        try:
            return self._database.write(talk)
        except (UnicodeError, OverflowError) as error:
            text = f"this cannot be stored ({error}); nothing was written"
            raise StoreError(text) from error


def _forgetting(before: Instant, piece: int) -> Callable[[], Talk[int]]:
    return lambda: forgetting(before, piece)
