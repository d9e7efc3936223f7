"""The one way in which the world changes: prepare, write, apply, answer; in that order.

A command is a function of the transaction: it looks, raises if it must, and only then applies
events. Commands that arrive while a batch is being written share the next one, and its fsync.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from enum import Enum
from queue import Empty, SimpleQueue
from threading import Thread, current_thread
from typing import Any, Generic, Protocol, TypeVar

from muster.controller.world.record import Record, dependencies_of
from muster.controller.world.request_keys import latest_requests
from muster.controller.world.transaction import Change, Transaction
from muster.controller.world.write_times import WriteTimes
from muster.model.errors import MusterError, StaleSnapshotError, StoreError
from muster.model.event import JobClaimed, JobPlaced, JobResized, JobResumed
from muster.model.history import Ended, Finished
from muster.model.job import Job
from muster.model.kept_object import RemovedObject, object_version
from muster.model.value import Instant, JobId, replace
from muster.stores.base import Batch, History, LiveState, Store

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Command = Callable[[Transaction], T]
Clock = Callable[[], Instant]
QueuedCommand = tuple[Command[Any], "Future[Any]"]

log = logging.getLogger("muster.journal")

LARGEST_GROUP = 1_000
"""So many commands at most share a transaction: the first of them waits for the last."""

TRIES = 200
"""So often others may write first, one after the other, before we give up on a group.
A process to which its machine gives little time loses often."""


Listener = Callable[[Batch, tuple[Change, ...]], None]


class Answer(Protocol[T_co]):
    """What became of a command."""

    def result(self) -> T_co:
        """The answer once it is durable; raises what it was refused with."""
        ...


Write = Callable[[Command[Any]], "Future[Any]"]
Commit = Callable[[Command[Any]], Answer[Any]]


class KnownAnswer(Generic[T]):
    """An answer that is there already."""

    __slots__ = ("_answer",)

    def __init__(self, answer: T | BaseException) -> None:
        self._answer = answer

    def result(self) -> T:
        """The answer, or what it was refused with."""
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer


class KeepingStore(Store, History, Protocol):
    """A store with its history."""


class Subscribers:
    """Those who follow the commits, called in their order; each must return quickly."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def add(self, listener: Listener) -> Callable[[], None]:
        """Call this one from now on; the function that is returned ends the subscription."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def notify(self, batch: Batch, changes: tuple[Change, ...]) -> None:
        for listener in tuple(self._listeners):
            listener(batch, changes)


class Journal:
    """Commits groups of commands. Not for several threads: that is what `Writer` is for."""

    def __init__(self, store: KeepingStore, record: Record, clock: Clock) -> None:
        self.store = store
        self.record = record
        self.subscribers = Subscribers()
        self.last_event = record.last_event
        self.times = WriteTimes()
        self._clock = clock

    def transaction(self) -> Transaction:
        """The world as of now, before anything is changed."""
        return Transaction(self.record, self._clock(), self.store.finished)

    def write(self, command: Command[T]) -> KnownAnswer[T]:
        """One command, now."""
        return KnownAnswer(self._answers([command])[0])

    def commit(self, queued: list[QueuedCommand]) -> None:
        """All of these as one transaction, each with its own answer."""
        _answer(queued, self._answers([command for command, _ in queued]))

    def catch_up(self) -> None:
        """Learn what other processes wrote."""
        try:
            missed = self.store.since(self.record.version)
        except StaleSnapshotError:
            # Too far behind to follow step by step.
            missed = (self._everything(),)
        for batch in missed:
            self.record.foreign_version = batch.version
            if _gives_out(batch):
                self.record.foreign_placement_at = batch.version
            self._apply(batch, _changes(self.record, batch), {})

    def _everything(self) -> Batch:
        """What leads from the record to the store, as if it were one batch."""
        state = self.store.load()
        live = {job.id for job in state.jobs}
        gone = tuple(job for job in self.record.jobs.values() if job.id not in live)
        came_out = self.store.finished(tuple(job.id for job in gone))
        batch = _difference(self.record, state, tuple(_over(job, came_out) for job in gone))
        return replace(batch, audit=latest_requests(self.store))

    def _answers(self, commands: list[Command[Any]]) -> list[Any]:
        for _ in range(TRIES):
            try:
                return self._commit(commands)
            except StaleSnapshotError:
                self.catch_up()
            except StoreError as error:
                self.times.errors += 1
                log.warning("nothing written: %s", error)
                return [error] * len(commands)
        return [StaleSnapshotError(expected=self.record.version, found=-1)] * len(commands)

    def _commit(self, commands: list[Command[Any]]) -> list[object]:
        transaction = self.transaction()
        answers = [_outcome(command, transaction) for command in commands]
        if transaction.is_empty:
            return answers
        batch, changes = transaction.batch(), transaction.changes()
        began = time.perf_counter()
        self.store.append(batch)
        self.times.wrote(time.perf_counter() - began)
        self._apply(batch, changes, transaction.found)
        return answers

    def _apply(
        self, batch: Batch, changes: tuple[Change, ...], found: Mapping[JobId, Finished]
    ) -> None:
        self._learn(batch, found)
        self.record.apply(batch)
        self.last_event += len(batch.events)
        self.subscribers.notify(batch, changes)

    def _learn(self, batch: Batch, found: Mapping[JobId, Finished]) -> None:
        """How jobs came out that ended before any job depended on them.

        found: what a command asked for. What is written must not wait for another read.
        """
        named = {each for job in batch.jobs if job.spec.after for each in dependencies_of(job)}
        if not named:
            return
        known = (self.record.jobs, self.record.finished)
        unknown = {each for each in named if not any(each in some for some in known)}
        asked = {each: found[each] for each in unknown & found.keys()}
        rest = tuple(sorted(unknown - asked.keys()))
        if unknown:
            self.record.learn_finished({**asked, **(self.store.finished(rest) if rest else {})})


class WriterSignal(Enum):
    """What the writer does between groups."""

    CATCH_UP = "catch up"
    CLOSE = "close"


class Writer:
    """The thread that owns the journal, and the queue before it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._queue: SimpleQueue[QueuedCommand | WriterSignal] = SimpleQueue()
        self._thread = Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def write(self, command: Command[T]) -> "Future[T]":
        """Queue a command; the future is done when it is durable or refused."""
        future: Future[T] = Future()
        self._queue.put((command, future))
        return future

    def catch_up(self) -> None:
        """Something was written: learn of it soon, if it was by another process."""
        if current_thread() is not self._thread:
            self._queue.put(WriterSignal.CATCH_UP)

    @property
    def waiting(self) -> int:
        """How many commands wait for their turn."""
        return self._queue.qsize()

    def close(self) -> None:
        """Write what is queued, then stop."""
        self._queue.put(WriterSignal.CLOSE)
        self._thread.join()

    def _run(self) -> None:
        signal: WriterSignal | None = None
        while signal is not WriterSignal.CLOSE:
            queued, signal = self._next_group()
            if queued:
                self._commit(queued)
            if signal is WriterSignal.CATCH_UP:
                self._catch_up()

    def _commit(self, queued: list[QueuedCommand]) -> None:
        try:
            self._journal.commit(queued)
        except Exception as error:
            # Nobody may wait for ever, and whoever comes next is served.
            log.exception("a group was not written")
            unanswered = [each for each in queued if not each[1].done()]
            _answer(unanswered, [error] * len(unanswered))

    def _next_group(self) -> tuple[list[QueuedCommand], "WriterSignal | None"]:
        """What is queued, up to the next signal."""
        group: list[QueuedCommand] = []
        while len(group) < LARGEST_GROUP:
            try:
                following = self._queue.get(block=not group)
            except Empty:
                break
            if isinstance(following, WriterSignal):
                return group, following
            group.append(following)
        return group, None

    def _catch_up(self) -> None:
        try:
            self._journal.catch_up()
        except StoreError as error:
            log.warning("cannot see what others wrote: %s", error)


def _outcome(command: Command[Any], transaction: Transaction) -> object:
    try:
        return command(transaction)
    except MusterError as error:
        return error
    except Exception as error:
        # One command's bug must not end the journal.
        log.exception("a command failed")
        return error


def _answer(queued: list[QueuedCommand], answers: Sequence[object]) -> None:
    for (_, future), answer in zip(queued, answers, strict=True):
        if not future.set_running_or_notify_cancel():
            # Whoever queued has gone away; what they queued for is done all the same.
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)


def _gives_out(batch: Batch) -> bool:
    """May room have been taken by this? Where nobody says what happened, anything may have."""
    taking = JobPlaced | JobResumed | JobResized | JobClaimed
    return not batch.events or any(isinstance(event, taking) for event in batch.events)


def _over(job: Job, came_out: Mapping[JobId, Finished]) -> Ended:
    """A job that is gone from the store; of one that is forgotten there, only that it is over."""
    outcome = came_out.get(job.id)
    if outcome is None:
        return Ended(job=job, started_at=None, ended_at=job.submitted_at)
    return Ended(
        job=replace(job, state=outcome.state),
        started_at=outcome.started_at,
        ended_at=outcome.ended_at,
    )


def _difference(record: Record, state: LiveState, ended: tuple[Ended, ...]) -> Batch:
    held = {each.job for each in state.allocations}
    nodes = {node.id for node in state.nodes}
    objects = {each.key for each in state.objects}
    left = (key for key in record.objects if key not in objects)
    return Batch(
        version=state.version,
        next_job=state.next_job,
        jobs=state.jobs,
        ended=ended,
        allocations=state.allocations,
        freed=tuple(job for job in record.allocations if job not in held),
        steps=state.steps,
        clusters=state.clusters,
        nodes=state.nodes,
        gone=tuple(name for name in record.nodes if name not in nodes),
        site=state.site,
        used=state.used,
        tokens=state.tokens,
        objects=state.objects,
        removed=tuple(
            RemovedObject(key=key, version=object_version(state.version, place))
            for place, key in enumerate(left)
        ),
    )


def _changes(record: Record, batch: Batch) -> tuple[Change, ...]:
    """What a batch of another process makes of our jobs."""
    holds = {each.job: each for each in batch.allocations}
    freed = set(batch.freed)
    jobs: list[Job] = [*batch.jobs, *(ended.job for ended in batch.ended)]
    return tuple(
        Change(
            before=record.jobs.get(job.id),
            after=job,
            held=record.allocations.get(job.id),
            holds=holds.get(job.id, None if job.id in freed else record.allocations.get(job.id)),
        )
        for job in jobs
    )
