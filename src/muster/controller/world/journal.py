"""The one way in which the world changes: prepare, write, apply, answer; in that order.

A command is a function of the transaction: it looks, raises if it must, and only then applies
events. Commands that arrive while a batch is being written share the next one, and its fsync.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from enum import Enum
from queue import Empty, SimpleQueue
from threading import Thread, current_thread
from typing import Any, Generic, Protocol, TypeVar

from muster.controller.world.record import Record, dependencies_of
from muster.controller.world.transaction import Change, Transaction
from muster.model.errors import MusterError, StaleSnapshotError, StoreError
from muster.model.event import JobClaimed, JobPlaced, JobResized, JobResumed
from muster.model.history import Ended
from muster.model.job import Job
from muster.model.value import Instant
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
        self._clock = clock

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
            missed = (_everything(self.record, self.store.load()),)
        for batch in missed:
            self.record.foreign_version = batch.version
            if _gives_out(batch):
                self.record.foreign_placement_at = batch.version
            self._apply(batch, _changes(self.record, batch))

    def _answers(self, commands: list[Command[Any]]) -> list[Any]:
        for _ in range(TRIES):
            try:
                return self._commit(commands)
            except StaleSnapshotError:
                self.catch_up()
            except StoreError as error:
                log.warning("nothing written: %s", error)
                return [error] * len(commands)
        return [StaleSnapshotError(expected=self.record.version, found=-1)] * len(commands)

    def _commit(self, commands: list[Command[Any]]) -> list[object]:
        transaction = Transaction(self.record, self._clock())
        answers = [_outcome(command, transaction) for command in commands]
        if transaction.is_empty:
            return answers
        batch, changes = transaction.batch(), transaction.changes()
        self.store.append(batch)
        self._apply(batch, changes)
        return answers

    def _apply(self, batch: Batch, changes: tuple[Change, ...]) -> None:
        self._learn(batch)
        self.record.apply(batch)
        self.last_event += len(batch.events)
        self.subscribers.notify(batch, changes)

    def _learn(self, batch: Batch) -> None:
        """Find out how jobs came out that ended before anybody depended on them."""
        named = {each for job in batch.jobs if job.spec.after for each in dependencies_of(job)}
        if not named:
            return
        known = (self.record.jobs, self.record.finished)
        unknown = {each for each in named if not any(each in some for some in known)}
        if unknown:
            self.record.learn_finished(self.store.finished(tuple(sorted(unknown))))


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


def _everything(record: Record, state: LiveState) -> Batch:
    """What leads from the record to the state, as if it were one batch.

    How jobs ended that are gone meanwhile is in the history; here they are over, and no more.
    """
    live = {job.id for job in state.jobs}
    held = {each.job for each in state.allocations}
    nodes = {node.id for node in state.nodes}
    gone = [job for job in record.jobs.values() if job.id not in live]
    return Batch(
        version=state.version,
        next_job=state.next_job,
        jobs=state.jobs,
        ended=tuple(Ended(job=job, started_at=None, ended_at=job.submitted_at) for job in gone),
        allocations=state.allocations,
        freed=tuple(job for job in record.allocations if job not in held),
        steps=state.steps,
        clusters=state.clusters,
        nodes=state.nodes,
        gone=tuple(name for name in record.nodes if name not in nodes),
        site=state.site,
        used=state.used,
        tokens=state.tokens,
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
