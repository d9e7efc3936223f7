"""What mails follow from what is committed, and from time that passes; nothing is sent here."""

from collections.abc import Iterator, Mapping

from muster.controller.mail.progress import Arrays, Marks
from muster.controller.world.journal import KeepingStore
from muster.controller.world.record import Record
from muster.controller.world.transaction import Change, Transaction
from muster.lifecycle.notices import Notice, is_whole, lost_hope, notices_of
from muster.model.event import (
    CancelAsked,
    DeadlineMissForeseen,
    Event,
    JobEnded,
    JobRequeued,
    JobStarted,
)
from muster.model.history import Finished
from muster.model.job import Job
from muster.model.mail import Occasion
from muster.model.value import Instant, JobId, Value
from muster.stores.base import Batch, HistoryQuery

Reported = JobStarted | JobEnded | JobRequeued
"""What only the process that leads hears of."""


class ArrayOver(Value):
    """The last live part of an array has ended; how all of them did is in the history."""

    array: JobId


Outgoing = Notice | ArrayOver


class NoticeSource:
    """Each notice once, from the moment at which this process began to lead."""

    def __init__(self, record: Record, store: KeepingStore) -> None:
        self._record = record
        self._store = store
        self._marks = Marks()
        self._arrays = Arrays()

    def begin(self, transaction: Transaction) -> None:
        """Do not mail again about what may have been mailed already."""
        record = transaction.record
        self._marks, self._arrays = Marks(), Arrays()
        begun: dict[JobId, bool] = {}
        for job in record.jobs.values():
            self._arrays.count(None, job)
            self._marks.follow(job, record.allocations.get(job.id))
            if job.spec.array is not None and _mails_as_a_whole(job):
                array = job.spec.array.array
                begun[array] = begun.get(array, False) or job.attempt > 0
        self._marks.due(transaction.now)
        for array, has_begun in begun.items():
            if has_begun or self._store.ended(HistoryQuery(arrays=(array,), limit=1)).jobs:
                self._arrays.skip(array)

    def of(self, batch: Batch, changes: tuple[Change, ...]) -> Iterator[Outgoing]:
        """What follows from a commit; call it for each, in their order."""
        is_foreign = is_anothers(batch, self._record)
        reported = {} if is_foreign else _reported_by_job(batch)
        for change in changes:
            # All parts of an array are counted before it is asked whether any is left.
            self._arrays.count(change.before, change.after)
        for change in changes:
            yield from self._of_job(change, reported.get(change.after.id, []))
        for change in changes:
            yield from self._of_array(change.after, is_reported=change.after.id in reported)
        yield from self._too_late(batch)
        if not is_foreign:
            yield from self._hopeless(batch, changes)

    def due(self, now: Instant) -> Iterator[Notice]:
        """Which running jobs have used up a part of their time."""
        for job_id, on in self._marks.due(now):
            job, held = self._record.jobs.get(job_id), self._record.allocations.get(job_id)
            if job is not None and held is not None:
                notice = Notice(on=on, job=job, at=now, held=held)
                yield from (notice,) if self._is_news(notice) else ()

    def next_at(self) -> Instant | None:
        """When something will be due."""
        return self._marks.next_at()

    def _of_job(self, change: Change, reported: list[Event]) -> Iterator[Outgoing]:
        job = change.after
        self._marks.follow(job, change.holds)
        for notice in notices_of(job, change.held, reported):
            if self._is_news(notice):
                yield notice

    def _of_array(self, job: Job, *, is_reported: bool) -> Iterator[ArrayOver]:
        part = job.spec.array
        if part is not None and self._arrays.is_over(part.array):
            yield from (
                (ArrayOver(array=part.array),) if is_reported and _mails_as_a_whole(job) else ()
            )

    def _is_news(self, notice: Notice) -> bool:
        return not notice.is_of_array or self._arrays.is_news(notice)

    def _too_late(self, batch: Batch) -> Iterator[Notice]:
        """Jobs that are expected to miss their deadline, since now."""
        for event in batch.events:
            if not isinstance(event, DeadlineMissForeseen):
                continue
            job = self._record.jobs.get(event.job)
            if job is not None and Occasion.MISSES_DEADLINE in job.spec.mail.on:
                notice = Notice(on=Occasion.MISSES_DEADLINE, job=job, at=event.at)
                yield from (notice,) if self._is_news(notice) else ()

    def _hopeless(self, batch: Batch, changes: tuple[Change, ...]) -> Iterator[Notice]:
        """Jobs whose dependencies can never come true, since now."""
        after: Mapping[JobId, Finished] = self._record.finished
        ended = {each.job.id for each in batch.ended if each.job.id in after}
        asked = [change for change in changes if _waits_anew(change)]
        if not ended and not asked:
            return
        before = {job: each for job, each in after.items() if job not in ended}
        for change in asked:
            yield from self._lost(change.after, {}, before)
        for job in self._record.dependents(ended):
            if any(each.job in ended for each in job.spec.after):
                yield from self._lost(job, before, after)

    def _lost(
        self, job: Job, before: Mapping[JobId, Finished], after: Mapping[JobId, Finished]
    ) -> Iterator[Notice]:
        notice = lost_hope(job, before, after)
        if notice is not None and self._is_news(notice):
            yield notice


def is_anothers(batch: Batch, record: Record) -> bool:
    """Did a process write this that led? It tells what follows from it."""
    led = any(isinstance(event, Reported) for event in batch.events)
    return led and batch.version == record.foreign_version


def _mails_as_a_whole(job: Job) -> bool:
    return bool(job.spec.mail.on) and is_whole(job.spec)


def _waits_anew(change: Change) -> bool:
    """Does the job wait for others for which it did not wait before?"""
    after, old = change.after.spec.after, change.before
    return bool(after) and (old is None or old.spec.after != after)


def _reported_by_job(batch: Batch) -> dict[JobId, list[Event]]:
    """What became of each job's attempts, in order."""
    found: dict[JobId, list[Event]] = {}
    for event in batch.events:
        if isinstance(event, Reported | CancelAsked):
            found.setdefault(event.job, []).append(event)
    return found
