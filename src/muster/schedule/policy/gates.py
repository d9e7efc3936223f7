"""What keeps a job beside room and quota: other jobs, the clock, its array."""

from collections.abc import Mapping
from itertools import filterfalse

from muster.model.history import Finished
from muster.model.job import Dependency, DependencyKind, Job, JobState, ways
from muster.model.placement import Allocation
from muster.model.reason import ArrayFull, DependsOn, NotBefore, WaitReason
from muster.model.snapshot import Snapshot
from muster.model.value import Instant, JobId, UserName, replace


class Singletons:
    """For each user and job name, which unfinished job came first."""

    def __init__(self, jobs: Mapping[JobId, Job]) -> None:
        self._jobs = jobs
        self._first: dict[tuple[UserName, str], JobId] | None = None

    def before(self, job: Job) -> JobId | None:
        """An earlier unfinished job of the same user and name."""
        if self._first is None:
            self._first = {}
            for each in self._jobs.values():
                key = (each.spec.user, each.spec.name)
                self._first[key] = min(each.id, self._first.get(key, each.id))
        first = self._first[job.spec.user, job.spec.name]
        return first if first < job.id else None


def gate(job: Job, snapshot: Snapshot, in_array: int, singletons: Singletons) -> WaitReason | None:
    """What the job has to wait for before room matters, or None.

    in_array counts the other jobs of its array that run.
    """
    spec = job.spec
    if job.begin_at is not None and job.begin_at > snapshot.now:
        return NotBefore(at=job.begin_at)
    why = _others(job, snapshot, singletons) if spec.after else None
    if why is not None:
        return why
    part = spec.array
    if part is not None and part.at_once is not None and in_array >= part.at_once:
        return ArrayFull(array=part.array, at_once=part.at_once)
    return None


def _others(job: Job, snapshot: Snapshot, singletons: Singletons) -> DependsOn | NotBefore | None:
    """What the first way that can still come true waits for; None where one has come true."""
    found: list[DependsOn | NotBefore] = []
    for way in ways(job.spec.after):
        whys = [why for each in way if (why := _unmet(each, job, snapshot, singletons)) is not None]
        if not whys:
            return None
        found.append(next(filter(_is_hopeless, whys), whys[0]))
    why = next(filterfalse(_is_hopeless, found), found[0])
    return replace(why, ways=len(found)) if isinstance(why, DependsOn) else why


def _is_hopeless(why: DependsOn | NotBefore) -> bool:
    return isinstance(why, DependsOn) and why.never


def _unmet(
    dependency: Dependency, job: Job, snapshot: Snapshot, singletons: Singletons
) -> DependsOn | NotBefore | None:
    if dependency.kind is not DependencyKind.SINGLETON:
        return _not_come(dependency, snapshot)
    before = singletons.before(job)
    return None if before is None else DependsOn(job=before, kind=dependency.kind)


def _not_come(dependency: Dependency, snapshot: Snapshot) -> DependsOn | NotBefore | None:
    other = dependency.job
    waits = DependsOn(job=other, kind=dependency.kind)
    never = DependsOn(job=other, kind=dependency.kind, never=True)
    if other is None:
        return never
    finished = snapshot.finished.get(other)
    if dependency.kind is DependencyKind.AFTER:
        return _not_started(dependency, other, snapshot)
    if finished is None:
        # A job that is neither there nor on record can come to nothing any more.
        return waits if other in snapshot.jobs else never
    if not _is_met(dependency.kind, finished):
        return never
    return _too_early(dependency, finished.ended_at, snapshot.now)


def _is_met(kind: DependencyKind, finished: Finished) -> bool:
    match kind:
        case DependencyKind.AFTER_OK:
            return finished.state is JobState.COMPLETED
        case DependencyKind.AFTER_NOT_OK:
            return finished.state is not JobState.COMPLETED
        case DependencyKind.AFTER_ANY | DependencyKind.AFTER | DependencyKind.SINGLETON:
            return True


def _not_started(
    dependency: Dependency, other: JobId, snapshot: Snapshot
) -> DependsOn | NotBefore | None:
    """`after` asks only that the other job began, so long ago."""
    finished = snapshot.finished.get(other)
    if finished is not None:
        began_at = finished.ended_at if finished.started_at is None else finished.started_at
        return _too_early(dependency, began_at, snapshot.now)
    if other not in snapshot.jobs:
        return DependsOn(job=other, kind=dependency.kind, never=True)
    began_at = _began_at(snapshot.jobs[other], snapshot.allocations.get(other))
    if began_at is None:
        return DependsOn(job=other, kind=dependency.kind)
    return _too_early(dependency, began_at, snapshot.now)


def _began_at(job: Job, allocation: Allocation | None) -> Instant | None:
    """When the job first began, as far as anybody knows."""
    if allocation is not None and allocation.started_at is not None:
        return allocation.started_at
    # One that waits for another attempt has begun before; when is not remembered.
    has_begun = job.attempt > (0 if allocation is None else 1)
    return job.submitted_at if has_begun else None


def _too_early(dependency: Dependency, since: Instant, now: Instant) -> NotBefore | None:
    due = Instant(since + dependency.delay)
    return NotBefore(at=due) if dependency.delay and due > now else None
