"""Jobs of lists as JSON, kept: nearly all of a long list waits, and stays as it was."""

from collections.abc import Callable, Container
from typing import Final

import msgspec

from muster.controller.messages import JobView
from muster.doors.rest.show_jobs import job_document
from muster.doors.rest.words import is_told_by_the_clock
from muster.model.job import Job
from muster.model.plan import Wait
from muster.model.value import Instant, JobId, Value

FEWEST_KEPT = 10_000
"""So many may lie there before anybody looks which of them are over."""

Kept = tuple[Job, Wait | None, msgspec.Raw]

encode: Final = msgspec.json.Encoder().encode


class WrittenPage(Value):
    """A `JobPage` whose jobs are already written."""

    jobs: tuple[msgspec.Raw, ...]
    next: str | None = None


class WrittenLines(Value):
    """A `LinePage` whose lines are already written."""

    lines: tuple[msgspec.Raw, ...]
    next: str | None = None


class Written:
    """The JSON of jobs that wait, as long as neither they nor their waits are others.

    Values are frozen, so that the same object means the same text. Not for several threads.
    show: what is written of a job.
    """

    def __init__(self, show: Callable[[JobView, Instant], Value] = job_document) -> None:
        self._show = show
        self._kept: dict[JobId, Kept] = {}
        self._most = FEWEST_KEPT

    def of(self, view: JobView, now: Instant) -> msgspec.Raw:
        """The job as it is shown."""
        job, wait = view.job, view.wait
        kept = self._kept.get(job.id)
        if kept is not None and kept[0] is job and kept[1] is wait and view.allocation is None:
            return kept[2]
        text = msgspec.Raw(encode(self._show(view, now)))
        if view.allocation is None and not (wait and is_told_by_the_clock(wait.why)):
            self._kept[job.id] = (job, wait, text)
        return text

    def tidy(self, live: Callable[[], Container[JobId]]) -> None:
        """Forget jobs that are over, if many are kept."""
        if len(self._kept) <= self._most:
            return
        living = live()
        self._kept = {job: kept for job, kept in self._kept.items() if job in living}
        self._most = max(FEWEST_KEPT, 2 * len(self._kept))
