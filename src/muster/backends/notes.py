"""What we must know of an attempt beyond what its engine keeps of it, in a file each.

The engine's own record is the truth about what runs. The note has what was ordered, so that a
controller that was killed goes on as it was, and an end is told the same way twice.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from muster.backends.base import Run, Stop
from muster.backends.kept import SUFFIX, KeptJob, kept
from muster.model.event import JobCheckpointed, JobEnded
from muster.model.launch import Checkpointing, Warn
from muster.model.value import Duration, Instant, JobId, NodeId, UserName, Value

_SUFFIX = ".json"


class NotedPod(Value, gc=False):
    """A pod of the attempt, and the container that people mean when they name none.

    without_token: it was to have one, and has none.
    """

    container: str
    image: str = ""
    without_token: bool = False


class Note(Value, omit_defaults=True):
    """One attempt. handle: what the engine calls it, once that is known.

    parts: what it calls each task, where it knows them by themselves. names: how the tasks are
    named there, where that was not ours to choose.
    began_at: when it was sent to us; started_at: when it was seen to run. checkpoint: absolute.
    changed_limit: `ends_at` counts in the place of `limit`.
    pods: where its tasks are pods that we run; leader: the rank whose end is the job's;
    let_go: those that were told to end while the others go on.
    """

    job: JobId
    attempt: int
    user: UserName
    nodes: tuple[NodeId, ...]
    began_at: Instant
    limit: Duration | None = None
    grace: Duration = Duration(30_000)
    warn: Warn | None = None
    checkpoint: Checkpointing | None = None
    handle: str | None = None
    parts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    started_at: Instant | None = None
    changed_limit: bool = False
    ends_at: Instant | None = None
    stop: Stop | None = None
    stopped_at: Instant | None = None
    saved: JobCheckpointed | None = None
    ended: JobEnded | None = None
    pods: tuple[NotedPod, ...] = ()
    leader: int | None = None
    let_go: tuple[int, ...] = ()


class Notes:
    """The notes of one cluster, in a folder that only we can read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def kept(self) -> Iterator[Note]:
        """All of them; one that cannot be read is as if it were not there."""
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            with contextlib.suppress(OSError, msgspec.DecodeError):
                yield msgspec.json.decode(path.read_bytes(), type=Note)

    def keep(self, note: Note) -> None:
        """Write it whole, or leave the old one."""
        path = self._path(note.job, note.attempt)
        new = path.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(note))
        os.replace(new, path)

    def keep_job(self, run: Run) -> None:
        """Write down whose attempt it is, should the database be lost."""
        path = self._path(run.job.id, run.allocation.attempt)
        path.with_suffix(SUFFIX).write_bytes(kept(run))

    def job(self, job: JobId, attempt: int) -> KeptJob | None:
        """Whose attempt it is, as it was written down."""
        path = self._path(job, attempt).with_suffix(SUFFIX)
        with contextlib.suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(path.read_bytes(), type=KeptJob)
        return None

    def drop(self, job: JobId, attempt: int) -> None:
        path = self._path(job, attempt)
        path.unlink(missing_ok=True)
        path.with_suffix(SUFFIX).unlink(missing_ok=True)

    def _path(self, job: JobId, attempt: int) -> Path:
        return self._folder / f"{job}.{attempt}{_SUFFIX}"
