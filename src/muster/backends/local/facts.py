"""What the files of one attempt say, as events, each told once."""

from pathlib import Path

import msgspec

from muster.backends.local import spool
from muster.backends.local.step_facts import StepFacts
from muster.model.event import Event, JobCheckpointed, JobEnded, JobStarted, JobSuspended
from muster.model.history import Used
from muster.model.job import EndReason
from muster.model.value import Instant, JobId, Value


class _End(Value):
    at: Instant
    why: EndReason
    used: Used | None = None


class _Checkpointed(Value):
    at: Instant
    path: str


class Facts:
    """Remembers what was told of one attempt."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        job, _, attempt = folder.name.partition(".")
        self._job = JobId(int(job))
        self._attempt = int(attempt)
        self._is_started = False
        self._checkpoint: bytes = b""
        self._suspended: bytes = b""
        self._steps = StepFacts(folder, self._job, self._attempt)
        self.is_over = False

    def news(self) -> list[Event]:
        """What was not told yet, in the order in which it happened."""
        if self.is_over:
            return []
        # Read first, told last: what is written before the end is then never missed.
        end = self._read(spool.END)
        events = [
            *self._starts(),
            *self._checkpoints(),
            *(() if end else self._suspends()),
            *self._steps.news(),
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

    def _ends(self, written: bytes) -> Event:
        self.is_over = True
        end = msgspec.json.decode(written, type=_End)
        return JobEnded(at=end.at, job=self._job, attempt=self._attempt, why=end.why, used=end.used)

    def _read(self, name: str) -> bytes:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return b""
