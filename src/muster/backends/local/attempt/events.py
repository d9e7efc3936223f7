"""What the files of one attempt say, as events, each reported once."""

import os
from pathlib import Path

import msgspec

from muster.backends.local.attempt import spool
from muster.model.event import (
    Event,
    JobCheckpointed,
    JobEnded,
    JobStarted,
    JobSuspended,
    PodSeen,
    StepBegan,
    StepEnded,
)
from muster.model.history import Used
from muster.model.job import EndReason
from muster.model.pod import PodStatus
from muster.model.resources import Resources
from muster.model.steps import Step, StepPart
from muster.model.value import Instant, JobId, NodeId, Value, replace


class _Begun(Value):
    at: Instant
    name: str
    command: str
    tasks: int
    nodes: tuple[NodeId, ...]
    amount: Resources
    parts: tuple[StepPart, ...] = ()


class _OverPart(Value):
    code: int
    signal: int
    used: Used


class _Over(Value):
    at: Instant
    code: int
    signal: int
    used: Used
    parts: tuple[_OverPart, ...] = ()


class StepEvents:
    """Remembers what was reported of the steps. They begin in the order of their numbers."""

    def __init__(self, folder: Path, job: JobId, attempt: int) -> None:
        self._folder = folder
        self._job = job
        self._attempt = attempt
        self._count = 0
        self._going: dict[int, Step] = {}

    def news(self) -> list[Event]:
        """What was not reported yet; a step begins before it ends."""
        events: list[Event] = []
        while written := self._read(spool.step_name(self._count)):
            found = msgspec.json.decode(written, type=_Begun)
            step = Step(
                job=self._job,
                attempt=self._attempt,
                number=self._count,
                name=found.name,
                command=found.command,
                tasks=found.tasks,
                nodes=found.nodes,
                amount=found.amount,
                began_at=found.at,
                parts=found.parts,
            )
            self._going[step.number] = step
            self._count += 1
            events.append(StepBegan(at=step.began_at, step=step))
        for number in sorted(self._going):
            if written := self._read(spool.step_end_name(number)):
                over = msgspec.json.decode(written, type=_Over)
                step = _ended(self._going.pop(number), over)
                events.append(StepEnded(at=over.at, step=step))
        return events

    def _read(self, name: str) -> bytes:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return b""


def _ended(step: Step, over: _Over) -> Step:
    parts = tuple(
        replace(part, code=end.code, signal=end.signal, used=end.used)
        for part, end in zip(step.parts, over.parts, strict=False)
    )
    whole = replace(step, ended_at=over.at, code=over.code, signal=over.signal, used=over.used)
    return replace(whole, parts=parts)


class _End(Value):
    at: Instant
    why: EndReason
    used: Used | None = None


class _Checkpointed(Value):
    at: Instant
    path: str


class _Pod(Value):
    at: Instant
    status: PodStatus


class AttemptEvents:
    """Remembers what was reported of one attempt."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        job, _, attempt = folder.name.partition(".")
        self._job = JobId(int(job))
        self._attempt = int(attempt)
        self._is_started = False
        self._checkpoint: bytes = b""
        self._suspended: bytes = b""
        self._pod_texts: dict[int, bytes] = {}
        self._steps = StepEvents(folder, self._job, self._attempt)
        self.is_over = False

    def news(self) -> list[Event]:
        """What was not reported yet, in the order in which it happened."""
        if self.is_over:
            return []
        # Read first, reported last: what is written before the end is then never missed.
        end = self._read(spool.END)
        events = [
            *self._starts(),
            *self._checkpoints(),
            *(() if end else self._suspends()),
            *self._steps.news(),
            *self._pods(),
        ]
        if end:
            events.append(self._ends(end))
        return events

    def _starts(self) -> list[Event]:
        if self._is_started:
            return []
        started = self._read(spool.STARTED)
        if not started:
            return []
        self._is_started = True
        at: Instant = msgspec.json.decode(started)["at"]
        handle = self._folder.name
        return [JobStarted(at=at, job=self._job, attempt=self._attempt, handle=handle)]

    def _checkpoints(self) -> list[Event]:
        written = self._read(spool.CHECKPOINT)
        if not written or written == self._checkpoint:
            return []
        self._checkpoint = written
        found = msgspec.json.decode(written, type=_Checkpointed)
        return [JobCheckpointed(at=found.at, job=self._job, attempt=self._attempt, path=found.path)]

    def _suspends(self) -> list[Event]:
        written = self._read(spool.SUSPENDED)
        if written == self._suspended:
            return []
        self._suspended = written
        if not written:
            return []
        at: Instant = msgspec.json.decode(written)["at"]
        return [JobSuspended(at=at, job=self._job, attempt=self._attempt)]

    def _pods(self) -> list[Event]:
        """Of each task of a gang; the first is written at once, so that others are looked for."""
        if not self._read(spool.POD):
            return []
        ranks = (spool.task_of(spool.POD, name) for name in os.listdir(self._folder))
        found = (
            self._pod_seen(rank) for rank in sorted(each for each in ranks if each is not None)
        )
        return [each for each in found if each is not None]

    def _pod_seen(self, rank: int) -> PodSeen | None:
        written = self._read(spool.of_task(spool.POD, rank))
        if not written or written == self._pod_texts.get(rank):
            return None
        self._pod_texts[rank] = written
        found = msgspec.json.decode(written, type=_Pod)
        return PodSeen(
            at=found.at,
            job=self._job,
            attempt=self._attempt,
            status=found.status,
            task=rank,
        )

    def _ends(self, written: bytes) -> Event:
        self.is_over = True
        end = msgspec.json.decode(written, type=_End)
        return JobEnded(at=end.at, job=self._job, attempt=self._attempt, why=end.why, used=end.used)

    def _read(self, name: str) -> bytes:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return b""
