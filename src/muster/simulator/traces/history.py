"""Our own past, from any store: what came, and how it went.

A job is asked for again as it was, but by itself: the array that it was of and the jobs that it
waited for are not part of the past that is read.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from muster.backends.simulated.attempt import Behaviour
from muster.model.gpu import WHOLE_GPU_MILLI, GpuAsk
from muster.model.history import Attempt, Ended
from muster.model.job import Exited, HeldBy, JobState, TaskGroup, gpu_milli
from muster.model.value import Duration, JobId, replace
from muster.simulator.run import Arrival
from muster.simulator.traces.traced import Outcome, TracedJob
from muster.stores.base import History, HistoryQuery

EVERYTHING = HistoryQuery(limit=1_000)
_OUTCOMES = {JobState.FAILED: Outcome.FAILED, JobState.CANCELLED: Outcome.CANCELLED}


class PastJob(NamedTuple):
    """A job that is over, and its attempts."""

    ended: Ended
    attempts: tuple[Attempt, ...]

    @property
    def arrival(self) -> Arrival:
        """The same request again."""
        spec = replace(self.ended.job.spec, array=None, after=())
        return Arrival(at=self.ended.job.submitted_at, spec=spec)

    @property
    def work(self) -> Duration | None:
        """What it computed and did not lose; None if it never ran."""
        run = [each for each in self.attempts if each.started_at is not None]
        if not run:
            return None
        saved = sum(_saved_ms(each) for each in run[:-1])
        last = run[-1]
        return Duration(saved + last.ended_at - (last.started_at or last.ended_at))

    @property
    def behaviour(self) -> Behaviour | None:
        """How it goes if nothing disturbs it; None if it never ran."""
        why = self.ended.job.why
        end = Exited(code=0) if why is None or isinstance(why, HeldBy) else why
        return None if self.work is None else Behaviour(work=self.work, end=end)


def past(history: History, query: HistoryQuery = EVERYTHING) -> Iterator[PastJob]:
    """All that ended, oldest first."""
    found: list[PastJob] = []
    while True:
        page = history.ended(query)
        ids = tuple(ended.job.id for ended in page.jobs)
        attempts = _by_job(history.attempts(ids))
        found += [PastJob(ended, tuple(attempts.get(ended.job.id, ()))) for ended in page.jobs]
        if page.next is None:
            break
        query = replace(query, after=page.next)
    yield from sorted(found, key=lambda each: (each.ended.job.submitted_at, each.ended.job.id))


def jobs(history: History, query: HistoryQuery = EVERYTHING) -> Iterator[TracedJob]:
    """The past like any other trace. Of several groups of tasks the one with most GPU counts."""
    return map(_traced, past(history, query))


def _by_job(attempts: tuple[Attempt, ...]) -> Mapping[JobId, list[Attempt]]:
    found: dict[JobId, list[Attempt]] = {}
    for attempt in attempts:
        found.setdefault(attempt.job, []).append(attempt)
    return found


def _saved_ms(attempt: Attempt) -> int:
    """The work up to its last checkpoint, which a later attempt went on from."""
    if attempt.checkpointed_at is None or attempt.started_at is None:
        return 0
    return max(0, attempt.checkpointed_at - attempt.started_at)


def _traced(each: PastJob) -> TracedJob:
    job = each.ended.job
    group = max(job.spec.groups, key=_size)
    gpus = group.each.gpus
    return TracedJob(
        name=str(job.id),
        submitted_at=job.submitted_at,
        duration=each.work,
        tasks=group.count,
        cpu_milli=group.each.cpu_milli,
        memory_mib=group.each.memory_mib,
        gpus=0 if gpus is None else gpus.count,
        gpu_milli=_each_milli(gpus),
        models=() if gpus is None else gpus.models,
        user=job.spec.user,
        queue=job.spec.queue,
        outcome=_OUTCOMES.get(job.state, Outcome.COMPLETED),
        started_at=each.ended.started_at,
        limit=job.spec.time_limit,
    )


def _size(group: TaskGroup) -> tuple[int, int]:
    return gpu_milli(group.each.gpus, None) * group.count, group.each.cpu_milli * group.count


def _each_milli(gpus: GpuAsk | None) -> int:
    if gpus is None or not gpus.count:
        return WHOLE_GPU_MILLI
    return gpu_milli(gpus, next(iter(gpus.models), None)) // gpus.count
