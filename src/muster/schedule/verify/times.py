"""How long jobs may run, and when they may begin."""

from collections.abc import Container, Iterable, Iterator
from itertools import chain

from muster.model.job import FINAL, Dependency, DependencyKind, Job, JobState
from muster.model.placement import Placement
from muster.model.value import Duration, Instant, JobId, PoolName, UserName
from muster.schedule.verify.additions import FRESH, Addition, Kind
from muster.schedule.verify.case import Case
from muster.schedule.verify.violation import Violation


def time_limits_are_allowed(case: Case) -> Iterator[Violation]:
    """The time limit is at most the class's and the pool's `max_time`."""
    classes, pools = case.snapshot.classes, case.snapshot.pools
    for addition in case.fresh:
        job = addition.job
        job_class = classes.get(job.spec.job_class)
        for name in addition.pools:
            pool, limit = pools.get(name), _limit_in(case, job, name)
            for bounding in (job_class, pool):
                bound = None if bounding is None else bounding.max_time
                if bound is not None and (limit is None or limit > bound):
                    text = f"It may run {_words(limit)} in pool {name}, of at most {bound} ms."
                    yield Violation(rule="time limit", subject=f"job {job.id}", text=text)


def begins_late_enough(case: Case) -> Iterator[Violation]:
    """No Start or Clear before `begin_at`, which the user or a failed attempt has set."""
    now = case.snapshot.now
    for addition in case.fresh:
        job = addition.job
        for at in (job.spec.begin_at, job.not_before):
            if at is not None and at > now:
                text = f"It begins {at - now} ms too early."
                yield Violation(rule="begin", subject=f"job {job.id}", text=text)


def dependencies_are_met(case: Case) -> Iterator[Violation]:
    """No Start or Clear with unmet dependencies: all of them, or all of one way."""
    dependent = [each.job for each in case.glance.dependent if each.kind in FRESH]
    first = _first_unfinished(case, dependent)
    for job in dependent:
        is_first = first.get((job.spec.user, job.spec.name), job.id) >= job.id
        unmet = [
            each
            for each in job.spec.after
            if not (is_first if each.kind is DependencyKind.SINGLETON else _is_met(case, each))
        ]
        if {each.way for each in job.spec.after} - {each.way for each in unmet}:
            continue
        for each in unmet:
            other = "an earlier one" if each.job is None else f"job {each.job}"
            text = f"It depends on {other} ({each.kind}), which is not met."
            yield Violation(rule="dependency", subject=f"job {job.id}", text=text)


def deadlines_can_be_met(case: Case) -> Iterator[Violation]:
    """No Start or Clear when `now + limit` is past the deadline; a job without end always is."""
    now = case.snapshot.now
    for addition in case.fresh:
        deadline = addition.job.spec.deadline
        if deadline is None:
            continue
        limit = time_limit(case, addition.job, addition.placements)
        if limit is None or now + limit > deadline:
            text = f"It may run {_words(limit)}, and its deadline is in {deadline - now} ms."
            yield Violation(rule="deadline", subject=f"job {addition.job.id}", text=text)


def arrays_keep_their_width(case: Case) -> Iterator[Violation]:
    """No Start or Clear beyond the array's `at_once`."""
    wide = case.glance.arrays
    staying = _of_arrays(case.staying.in_arrays(wide), wide) if wide else []
    for moment in case.moments if wide else ():
        widths = dict(width for addition in moment.added for width in _width(addition))
        new = [each.job for each in moment.added if each.kind is not Kind.RESIZE]
        passing = [job for job, _ in moment.passing()]
        running: dict[JobId, set[JobId]] = {array: set() for array in widths}
        for array, job_id in chain(staying, _of_arrays(chain(passing, new), widths)):
            if array in running:
                running[array].add(job_id)
        for array, at_once in sorted(widths.items()):
            count = len(running[array])
            if count > at_once:
                text = f"{count} of its jobs would run, of at most {at_once}{moment.words}."
                yield Violation(rule="array", subject=f"array {array}", text=text)


def time_limit(case: Case, job: Job, placements: tuple[Placement, ...]) -> Duration | None:
    """How long the job may run: the longest that its pools give it; None is without end."""
    if job.spec.time_limit is not None:
        return job.spec.time_limit
    longest = Duration(0)
    for pool in {placement.pool for placement in placements}:
        limit = _limit_in(case, job, pool)
        if limit is None:
            return None
        longest = max(longest, limit)
    return longest


def _limit_in(case: Case, job: Job, name: PoolName) -> Duration | None:
    """The job's, else the pool's default, else the policy's, else without end."""
    if job.spec.time_limit is not None:
        return job.spec.time_limit
    pool = case.snapshot.pools.get(name)
    if pool is not None and pool.default_time is not None:
        return pool.default_time
    return case.plan.policy.default_time


def _words(limit: Duration | None) -> str:
    return "without end" if limit is None else f"for {limit} ms"


def _first_unfinished(case: Case, jobs: list[Job]) -> dict[tuple[UserName, str], JobId]:
    """The smallest id among unfinished jobs of one user and name, where a singleton asks for it."""
    first = {
        (job.spec.user, job.spec.name): job.id
        for job in jobs
        if any(each.kind is DependencyKind.SINGLETON for each in job.spec.after)
    }
    for job_id, job in case.snapshot.jobs.items() if first else ():
        key = (job.spec.user, job.spec.name)
        if key in first and job_id < first[key] and job.state not in FINAL:
            first[key] = job_id
    return first


def _is_met(case: Case, dependency: Dependency) -> bool:
    if dependency.job is None:
        return False
    state = _state(case, dependency.job)
    match dependency.kind:
        case DependencyKind.AFTER:
            began = _began(case, dependency.job)
            return began is not None and began + dependency.delay <= case.snapshot.now
        case DependencyKind.AFTER_OK:
            return state is JobState.COMPLETED
        case DependencyKind.AFTER_NOT_OK:
            return state is JobState.FAILED or state is JobState.CANCELLED
        case DependencyKind.AFTER_ANY:
            return state in FINAL
        case DependencyKind.SINGLETON:
            return False


def _state(case: Case, job_id: JobId) -> JobState | None:
    finished, job = case.snapshot.finished.get(job_id), case.snapshot.jobs.get(job_id)
    if finished is not None:
        return finished.state
    return None if job is None else job.state


def _began(case: Case, job_id: JobId) -> Instant | None:
    """When the job first started as far as is known, or ended without having started."""
    finished = case.snapshot.finished.get(job_id)
    if finished is not None:
        return finished.ended_at if finished.started_at is None else finished.started_at
    allocation = case.snapshot.allocations.get(job_id)
    if allocation is not None:
        return allocation.started_at
    job = case.snapshot.jobs.get(job_id)
    # It waits for another attempt; when the first one began is not recorded.
    return job.submitted_at if job is not None and job.attempt > 0 else None


def _width(addition: Addition) -> Iterator[tuple[JobId, int]]:
    part = addition.job.spec.array
    if part is None or part.at_once is None:
        return
    if addition.kind in FRESH:
        yield part.array, part.at_once


def _of_arrays(jobs: Iterable[Job], arrays: Container[JobId]) -> list[tuple[JobId, JobId]]:
    """Those of the jobs that are part of these arrays: which array, and which job."""
    return [
        (part.array, job.id)
        for job in jobs
        if (part := job.spec.array) is not None and part.array in arrays
    ]
