"""What doors wrote of waiting jobs, kept from one listing to the next.

A long queue is listed again and again, and hardly any of its jobs has changed since.
"""

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

from muster.controller.messages import JobView
from muster.model.job import WAITING, Job
from muster.model.plan import Wait
from muster.model.value import JobId

T = TypeVar("T")

FEWEST_KEPT = 10_000
"""A cache with fewer lines is not searched for jobs that have ended."""

MOST_FORMS = 8
"""The cache of a form that was not used for longest makes room for another form."""


class LineCache(Generic[T]):
    """Lines of waiting jobs in one form: text, or a document that is already encoded.

    A line is valid while the job, its wait, and `also` stay the same. Values are
    frozen, so that the same job object has the same line.
    """

    def __init__(self) -> None:
        self._kept: dict[JobId, tuple[Job, Wait | None, object, T]] = {}
        self._most = FEWEST_KEPT

    def get(self, view: JobView, also: object = None) -> T | None:
        """The line, if it is known and valid. also: what else the line shows."""
        job = view.job
        kept = self._kept.get(job.id)
        if kept is None:
            return None
        known, wait, other, line = kept
        if known is not job or view.allocation is not None:
            return None
        # Most often they are the same objects; comparing values takes longer.
        if wait is not view.wait and wait != view.wait:
            return None
        return line if other is also or other == also else None

    def put(self, view: JobView, line: T, also: object = None) -> T:
        """Keep a line of a job that waits; lines of others change with the clock. The line."""
        job = view.job
        if view.allocation is None and job.state in WAITING:
            self._kept[job.id] = (job, view.wait, also, line)
        return line

    def forget_ended(self, is_live: Callable[[JobId], bool]) -> None:
        """Drop lines of jobs that have ended, if many lines are kept."""
        if len(self._kept) <= self._most:
            return
        # A copy: another thread may keep a line meanwhile.
        kept = self._kept.copy()
        self._kept = {job: line for job, line in kept.items() if is_live(job)}
        self._most = max(FEWEST_KEPT, 2 * len(self._kept))


class LineCaches(Generic[T]):
    """One cache for each form in which jobs are listed."""

    def __init__(self) -> None:
        self._of: dict[Hashable, LineCache[T]] = {}
        self._lock = Lock()

    def of(self, form: Hashable) -> LineCache[T]:
        """The lines in this form."""
        with self._lock:
            found = self._of[form] = self._of.pop(form, None) or LineCache()
            if len(self._of) > MOST_FORMS:
                del self._of[next(iter(self._of))]
            return found
