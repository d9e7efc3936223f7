"""Levels: where jobs stand by the service that they had, whatever they are expected to take."""

from functools import lru_cache

from muster.model.job import Job, JobSpec, JobState, TaskGroup
from muster.model.placement import Allocation
from muster.model.policy import PreemptPolicy
from muster.model.queue import JobClass, PreemptMode
from muster.model.value import Duration, Instant, Value

FIRST_BRACKET = Duration(10 * PreemptPolicy().restart_cost)
"""Jobs change their level after so long at the earliest: what a restart costs is little of it."""

BRACKETS = 24
SIZES = 13
"""Sizes are doublings of one GPU: smaller jobs count as one, larger ones than 4,096 as so many."""


HIGHEST_LEVEL = 40


class Levels(Value):
    """The level of a job by its size and by how long it has run; lower goes first.

    Brackets of time end after FIRST_BRACKET, and then each after twice as long as the one before:
    so a job changes its level a few times in all.
    """

    by_size: tuple[tuple[int, ...], ...]

    def level(self, spec: JobSpec, ran: int) -> int:
        """Where a job stands that asked for this and ran for so long."""
        return self.by_size[size_of(spec)][bracket_of(ran)]


NEWCOMER = 10
"""The level of a job with one GPU that has not run yet, while nothing was learned."""

PLAIN_LEVELS = Levels(
    by_size=tuple(
        tuple(
            min(HIGHEST_LEVEL, NEWCOMER + size + max(0, bracket - 1)) for bracket in range(BRACKETS)
        )
        for size in range(SIZES)
    )
)
"""Who had less GPU-time goes first. The second bracket is as long as the first, and counts so."""


def size_of(spec: JobSpec) -> int:
    """The size of a job: 0 for one GPU and less, 3 for five to eight."""
    return _size(spec.groups)


def bracket_of(ran: int) -> int:
    """In which bracket of time a job is that ran for so long."""
    return min(BRACKETS - 1, (ran // FIRST_BRACKET).bit_length())


def end_of(bracket: int) -> Duration:
    """How long jobs have run when they leave the bracket."""
    return Duration(FIRST_BRACKET << bracket)


def ran_by(job: Job, allocation: Allocation | None, now: Instant) -> Duration:
    """How long the job has run in all attempts; the time that it was suspended does not count."""
    if job.state is not JobState.RUNNING or allocation is None or allocation.started_at is None:
        return job.ran
    since = max(allocation.started_at, allocation.resumed_at or 0)
    return Duration(job.ran + max(0, now - since))


def has_saved(job: Job, job_class: JobClass | None) -> bool:
    """Does the job save when it is stopped, and was a checkpoint of it seen that was written?"""
    mode = job.spec.preempt_mode or (None if job_class is None else job_class.preempt_mode)
    return mode is PreemptMode.CHECKPOINT and job.checkpoint is not None


def has_its_due(job: Job, allocation: Allocation | None, now: Instant, percent: int) -> bool:
    """Has this attempt run for so much of the time that the job has waited?"""
    started_at = now if allocation is None else allocation.started_at or now
    return now - started_at >= waited_by(job, allocation, now) * percent // 100


def waited_by(job: Job, allocation: Allocation | None, now: Instant) -> Duration:
    """How long the job has not run since it could first begin."""
    since = max(job.submitted_at, job.begin_at or 0)
    return Duration(max(0, now - since - ran_by(job, allocation, now)))


@lru_cache(maxsize=4_096)
def _size(groups: tuple[TaskGroup, ...]) -> int:
    gpu_milli = sum(each.each.amount(None).gpu_milli * each.count for each in groups)
    return min(SIZES - 1, (max(0, gpu_milli - 1) // 1_000).bit_length())
