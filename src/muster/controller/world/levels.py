"""The levels of jobs, as they are learned while jobs run and end.

Like what jobs are expected to take, levels are estimates, not facts: there are no events for them,
and after a restart they are learned again from the history and from the jobs that are there.
"""

from collections.abc import Iterable, Iterator, Mapping

from muster.lifecycle.levels import Lifetimes, levels_from
from muster.model.history import Ended
from muster.model.job import Job
from muster.model.levels import Levels, ran_by, size_of
from muster.model.placement import Allocation
from muster.model.policy import Aim
from muster.model.value import Instant, JobId

REVIEW_PART = 8
"""The levels are looked at again when so much of what was known came to it: an eighth."""


class LearnedLevels:
    """What was learned of lifetimes, and the levels that follow from it."""

    def __init__(self) -> None:
        self._known = Lifetimes()
        self._levels: Levels | None = None
        self._review_at = 0
        self._aim = Aim.COMPLETION

    def aim_at(self, aim: Aim) -> None:
        """What the levels are for; if that is new, they are found from scratch."""
        if aim is not self._aim:
            self._aim, self._levels = aim, None

    def learn(self, ended: Ended) -> None:
        """A job is over; one that never ran teaches nothing."""
        if ended.started_at is not None:
            self._known.end(size_of(ended.job.spec), ended.job.ran)

    def relearn(self, past: Iterable[Ended]) -> None:
        """What ended before this process began."""
        for ended in past:
            self.learn(ended)

    def levels(
        self,
        jobs: Mapping[JobId, Job],
        allocations: Mapping[JobId, Allocation],
        now: Instant,
    ) -> Levels:
        """The levels now: the same object until much more is known."""
        if self._levels is not None and self._known.seen < self._review_at:
            return self._levels
        self._review_at = self._known.seen + 1 + self._known.seen // REVIEW_PART
        known = self._known.with_live(_live(jobs, allocations, now))
        new = levels_from(known, self._levels, self._aim)
        if self._levels is None or new != self._levels:
            self._levels = new
        return self._levels


def _live(
    jobs: Mapping[JobId, Job], allocations: Mapping[JobId, Allocation], now: Instant
) -> Iterator[tuple[int, int]]:
    for job in jobs.values():
        if job.attempt:
            yield size_of(job.spec), ran_by(job, allocations.get(job.id), now)
