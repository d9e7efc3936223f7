"""Which running jobs take longer than they should, without looking at all of them each time."""

from collections import Counter
from heapq import heappop, heappush

from muster.controller.world.record import Record
from muster.model.job import Job, JobState
from muster.model.placement import Allocation
from muster.model.value import Instant, JobId, QueuePath

FAR_TOO_LONG = 2
"""A job is late that has run for so many times what was expected."""

NEAR_LIMIT_PERCENT = 90
"""Or for this much of its limit, without a checkpoint."""


class LateJobs:
    """Those who count jobs tell what runs; whoever asks is told what of it is late by then."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._due: list[tuple[Instant, JobId]] = []
        self._late: set[JobId] = set()

    def follow(self, job: Job, allocation: Allocation | None) -> None:
        """It may run now, or under other terms."""
        at = _late_at(job, allocation)
        if at is not None:
            heappush(self._due, (at, job.id))

    def by_queue(self, now: Instant) -> Counter[QueuePath]:
        """How many are late."""
        while self._due and self._due[0][0] < now:
            self._late.add(heappop(self._due)[1])
        found: Counter[QueuePath] = Counter()
        for job_id in tuple(self._late):
            job = self._record.jobs.get(job_id)
            at = None if job is None else _late_at(job, self._record.allocations.get(job_id))
            if job is None or at is None or at >= now:
                # It is over, or has more time than it had: then it is looked at again.
                self._late.discard(job_id)
                if at is not None:
                    heappush(self._due, (at, job_id))
            else:
                found[job.spec.queue] += 1
        return found

    def forget(self) -> None:
        self._due.clear()
        self._late.clear()


def _late_at(job: Job, allocation: Allocation | None) -> Instant | None:
    """When it is late, if it runs on; None if it does not run, or may take its time."""
    if job.state is not JobState.RUNNING or allocation is None or allocation.started_at is None:
        return None
    spans: list[int] = []
    if job.expected is not None:
        spans.append(FAR_TOO_LONG * job.expected)
    if job.spec.time_limit is not None and not allocation.checkpointed_at:
        spans.append(job.spec.time_limit * NEAR_LIMIT_PERCENT // 100)
    return Instant(allocation.started_at + min(spans)) if spans else None
