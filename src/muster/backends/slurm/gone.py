"""Attempts that are over and forgotten, the newest of them: Slurm may come back with one.

A slurmctld that was killed forgets its last seconds, and runs again what had ended in them. That
is ended once more. Anything else with our mark is left alone: we do not know whose it is.
"""

import contextlib
from pathlib import Path

from muster.backends.slurm.listing import QueuedJob
from muster.model.value import JobId

AttemptId = tuple[JobId, int]

_MOST = 10_000


class Gone:
    """What Slurm called each, in a file to which lines are added.

    Where that is not known, because no answer came: whose it was, as `uid:1000`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handles: dict[AttemptId, str] = {}
        with contextlib.suppress(OSError):
            for line in path.read_text(encoding="ascii").splitlines()[-_MOST:]:
                with contextlib.suppress(ValueError):
                    job, attempt, handle = line.split()
                    self._handles[JobId(int(job)), int(attempt)] = handle
        self._compact()

    def add(self, key: AttemptId, handle: str | None, uid: int | None) -> None:
        """It is over and forgotten."""
        called = handle or f"uid:{uid}"
        self._handles[key] = called
        with self._path.open("a", encoding="ascii") as file:
            file.write(_line(key, called))
        if len(self._handles) > 2 * _MOST:
            self._compact()

    def has(self, job: QueuedJob) -> bool:
        """Is it one of them? Marks are seen by all, and can be copied."""
        if job.key is None:
            return False
        handle = self._handles.get((JobId(job.key.job), job.key.attempt))
        return handle in (job.id, job.whole, f"uid:{job.uid}")

    def _compact(self) -> None:
        self._handles = dict(list(self._handles.items())[-_MOST:])
        new = self._path.with_suffix(".new")
        new.write_text("".join(_line(*each) for each in self._handles.items()), encoding="ascii")
        new.replace(self._path)


def _line(key: AttemptId, handle: str) -> str:
    return f"{key[0]} {key[1]} {handle}\n"
