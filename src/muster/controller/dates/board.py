"""The dates as doors show them: asked for whenever something changed, kept, and judged.

The first date that a job is told is remembered until it starts; then both are kept in the store.
From these the forecaster learns how far its ranges must reach, and people see how many held.
"""

import logging
import time
from collections.abc import Iterable, Mapping
from threading import Condition, Event, Lock, Thread

from muster.controller.dates.client import Forecasts, RuledSnapshot, SupposedDates
from muster.controller.dates.dated import is_too_late
from muster.controller.dates.protocol import JobDate, Lessons
from muster.controller.loop.controller import LastPlan
from muster.controller.world.journal import Clock, Commit, Journal
from muster.controller.world.transaction import Change, Transaction
from muster.model.dates import KeptDate, StartDate
from muster.model.errors import MusterError
from muster.model.event import DeadlineMissForeseen, JobStarted
from muster.model.history import Ended
from muster.model.job import JobState
from muster.model.value import Instant, JobId, Value
from muster.stores.base import Batch

log = logging.getLogger("muster.dates")

PATIENCE_S = 1.0
"""So often it is looked whether there is a new plan."""

LEAST_PAUSE_S, REST = 0.5, 3
"""Between two forecasts it rests so long at least, and so many times as long as one took."""

STALE_MS = 60_000
"""Time alone makes dates old: they are made again after so long, though nothing changed."""

AFTER_FAILURE_S = 5.0

LOOK_AGAIN_S = 0.05
"""Who waits for a date sees so soon that the job has started instead."""

MOST_WRITTEN = 500
"""So many outcomes share a transaction."""

MOST_TOLD = 200_000
MOST_ENDED = 20_000
"""So many first dates wait for their start, and so many ended jobs for the next forecast."""

NO_LESSONS = Lessons()


class _First(Value, gc=False):
    """The first date that a job was told, and when."""

    at: Instant
    told: JobDate


class DateBoard:
    """Asks for dates in a thread of its own, and keeps the latest of each waiting job.

    What became of them is written down by the process that leads.
    """

    def __init__(
        self,
        journal: Journal,
        last_plan: LastPlan,
        forecasts: Forecasts,
        clock: Clock,
        write: Commit,
    ) -> None:
        self._dates: Mapping[JobId, StartDate] = {}
        self._published = Condition()
        # Somebody waits for the date of a job that just came.
        self._hurry = Event()
        # Jobs that were said to be too late for their deadlines.
        self._too_late: set[JobId] = set()
        self._record = journal.record
        self._last_plan = last_plan
        self._forecasts = forecasts
        self._clock = clock
        self._write = write
        self._leads = False
        self._lock = Lock()
        self._first: dict[JobId, _First] = {}
        self._ended: list[Ended] = []
        self._unlearned: list[KeptDate] = []
        self._unwritten: list[KeptDate] = []
        # What the dates were made for: the plan and the instant.
        self._number = 0
        self._asked_at = Instant(0)
        self._closing = Event()
        self._thread = Thread(target=self._run, name="dates", daemon=True)
        journal.subscribers.add(self._note)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._hurry.set()
        self._forecasts.close()
        if self._thread.ident is not None:
            self._thread.join()
            # It may just have begun to ask again.
            self._forecasts.close()

    def begin(self, transaction: Transaction) -> None:
        """This process leads: what becomes of dates is its to write down."""
        del transaction
        self._leads = True

    def rest(self) -> None:
        """Another process leads."""
        self._leads = False

    def latest(self) -> Mapping[JobId, StartDate]:
        """Those that are known now."""
        return self._dates

    def soon(self, job: JobId, patience_s: float) -> StartDate | None:
        """The date of a job that just came, as soon as there is one; None if it does not wait."""
        self._hurry.set()
        deadline_s = time.monotonic() + patience_s
        with self._published:
            while self._is_waiting(job) and (left_s := deadline_s - time.monotonic()) > 0:
                if job in self._dates:
                    break
                self._published.wait(min(left_s, LOOK_AGAIN_S))
        return self._dates.get(job)

    def suppose(
        self, usual: RuledSnapshot, changed: RuledSnapshot, job: JobId | None
    ) -> SupposedDates:
        """What would be different; nothing is known when the forecaster does not answer."""
        try:
            return self._forecasts.suppose(usual, changed, job)
        except MusterError as error:
            log.warning("no outlook: %s", error)
            return SupposedDates()

    def look(self) -> bool:
        """Ask for dates if there is a reason; was there one?"""
        self._keep()
        number, now = self._last_plan.number, self._clock()
        if number == self._number and now - self._asked_at < STALE_MS:
            return False
        self._number, self._asked_at = number, now
        if not self._last_plan.waits:
            self._show({})
            return False
        news = self._news()
        snapshot = self._record.snapshot(now)
        told_so_far: dict[JobId, StartDate] = {
            job: date for job, date in self._dates.items() if job in snapshot.jobs
        }
        for told in self._forecasts.dates(snapshot, self._record.site, news):
            told_so_far.update({each.job: each.date for each in told})
            self._publish(told, told_so_far)
        self._foresee_misses()
        return True

    def _run(self) -> None:
        self._forecasts.start()
        while not self._closing.is_set():
            began_s = time.monotonic()
            try:
                asked = self.look()
            except MusterError as error:
                if not self._closing.is_set():
                    log.warning("no dates: %s", error)
                self._closing.wait(AFTER_FAILURE_S)
            except Exception:
                # Dates are a comfort: nothing else may end because they cannot be had.
                log.exception("a mistake in asking for dates")
                self._closing.wait(AFTER_FAILURE_S)
            else:
                if asked:
                    took_s = time.monotonic() - began_s
                    self._hurry.wait(max(LEAST_PAUSE_S, REST * took_s))
                    self._hurry.clear()
                else:
                    self._await_plan()

    def _await_plan(self) -> None:
        number = self._number
        self._last_plan.wait_until(
            lambda: self._last_plan.number != number or self._closing.is_set(), PATIENCE_S
        )

    def _publish(self, told: Iterable[JobDate], so_far: dict[JobId, StartDate]) -> None:
        """Show these, and remember what jobs were told first."""
        now, jobs = self._clock(), self._record.jobs
        with self._lock:
            for each in told:
                job = jobs.get(each.job)
                is_waiting = job is not None and job.state is JobState.PENDING and not job.attempt
                if is_waiting and each.job not in self._first and len(self._first) < MOST_TOLD:
                    self._first[each.job] = _First(at=now, told=each)
        self._show(dict(so_far))

    def _show(self, dates: Mapping[JobId, StartDate]) -> None:
        with self._published:
            self._dates = dates
            self._published.notify_all()

    def _is_waiting(self, job_id: JobId) -> bool:
        job = self._record.jobs.get(job_id)
        return job is not None and job.state is JobState.PENDING

    def _foresee_misses(self) -> None:
        """Write down which jobs are now expected to be too late for their deadlines."""
        now, jobs = self._clock(), self._record.jobs
        late = {
            job_id: job
            for job_id, date in self._dates.items()
            if (job := jobs.get(job_id)) is not None and is_too_late(date, job.spec)
        }
        new = [job_id for job_id in late if job_id not in self._too_late]
        self._too_late = set(late)
        if not new or not self._leads:
            return
        events = [
            DeadlineMissForeseen(
                at=now,
                job=job_id,
                deadline=late[job_id].spec.deadline or now,
                starts_at=self._dates[job_id].middle,
            )
            for job_id in sorted(new)
        ]
        self._write(lambda transaction: transaction.apply_all(events)).result()

    def _note(self, batch: Batch, _: tuple[Change, ...]) -> None:
        """Something was committed; called in the order of commits."""
        with self._lock:
            for event in batch.events:
                if isinstance(event, JobStarted) and event.job in self._first:
                    first = self._first.pop(event.job)
                    kept = kept_date(first.at, first.told, event)
                    self._unlearned.append(kept)
                    self._unwritten.append(kept)
            if batch.ended:
                self._ended += batch.ended
                del self._ended[:-MOST_ENDED]
                for ended in batch.ended:
                    self._first.pop(ended.job.id, None)

    def _news(self) -> Lessons:
        with self._lock:
            ended, self._ended = self._ended, []
            kept, self._unlearned = self._unlearned, []
        return Lessons(ended=tuple(ended), kept=tuple(kept))

    def _keep(self) -> None:
        """Write down what became of dates, a few at a time."""
        with self._lock:
            unwritten, self._unwritten = self._unwritten, []
        if not self._leads:
            return
        for at in range(0, len(unwritten), MOST_WRITTEN):
            some = unwritten[at : at + MOST_WRITTEN]
            self._write(lambda transaction, dates=some: transaction.dates.extend(dates)).result()


def kept_date(told_at: Instant, told: JobDate, event: JobStarted) -> KeptDate:
    """A date, now that it is known when its job started."""
    date = told.date
    return KeptDate(
        job=event.job,
        told_at=told_at,
        early=date.early,
        middle=date.middle,
        late=date.late,
        foreseen=told.foreseen,
        started_at=event.at,
    )
