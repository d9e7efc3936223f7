"""Which notices follow from events: what users asked to be notified of by mail."""

from collections.abc import Iterator, Mapping, Sequence

from muster.lifecycle.cautions import CANNOT_FOLLOW
from muster.model.event import Event, JobEnded, JobRequeued, JobStarted
from muster.model.history import Ended, Finished
from muster.model.job import (
    FINAL,
    Dependency,
    EndReason,
    HeldBy,
    Job,
    JobSpec,
    JobState,
    NodeFailed,
    Preempted,
    TimedOut,
    exit_of,
    ways,
)
from muster.model.mail import Occasion
from muster.model.placement import Allocation
from muster.model.value import Duration, Instant, JobId, Value, replace

SHARES = {Occasion.TIME_LIMIT_50: 50, Occasion.TIME_LIMIT_80: 80, Occasion.TIME_LIMIT_90: 90}
"""Of the time limit, in hundredths."""

ONCE = frozenset(
    {
        Occasion.BEGIN,
        Occasion.INVALID_DEPEND,
        Occasion.MISSES_DEADLINE,
        *SHARES,
        Occasion.TIME_LIMIT,
    }
)
"""An array as a whole has these as soon as the first of its parts has; the others at its end."""

_UNFINISHED = 9
"""The status of a part that did not end by itself: as if we had killed it."""


class ArrayResult(Value):
    """How the parts of an array ended.

    least, most: the statuses, as `wait` reports them: 256 times the exit code, or the signal.
    """

    least: int
    most: int
    requeued: bool = False


class Notice(Value):
    """Something happened to a job that its user wants to know.

    job: as it was then, or right after. held: what the attempt had, if one went on.
    spread: of an array as a whole that is over; the job is the last of its parts.
    """

    on: Occasion
    job: Job
    at: Instant
    held: Allocation | None = None
    spread: ArrayResult | None = None

    @property
    def is_of_array(self) -> bool:
        """Is it about an array as a whole?"""
        return is_whole(self.job.spec)

    @property
    def ran(self) -> Duration:
        """How long the attempt ran, without the time that it was suspended."""
        if self.held is None or self.held.started_at is None:
            return Duration(0)
        stands = 0 if self.held.stands_since is None else self.at - self.held.stands_since
        return Duration(max(0, self.at - self.held.started_at - self.held.stood - stands))


def notices_of(job: Job, held: Allocation | None, events: Sequence[Event]) -> tuple[Notice, ...]:
    """What its user wants to know of these events, which made of the job what it is now.

    held: what it held before them.
    """
    if not job.spec.mail.on or not events:
        return ()
    found: list[Notice] = []
    for event in events:
        # A controller that takes over sees once more that it runs.
        if isinstance(event, JobStarted) and held is not None and held.started_at is None:
            held = replace(held, started_at=event.at)
            found.append(Notice(on=Occasion.BEGIN, job=job, at=event.at, held=held))
    at = events[-1].at
    found += [Notice(on=each, job=job, at=at, held=held) for each in _endings(job, events)]
    return tuple(each for each in found if each.on in job.spec.mail.on)


def notices_of_array(parts: Sequence[Ended]) -> tuple[Notice, ...]:
    """What its user wants to know of an array whose parts are all over."""
    last = max(parts, key=lambda part: (part.ended_at, part.job.id))
    newest = max(parts, key=lambda part: (_index(part.job), part.job.id)).job
    spread = spread_of(parts)
    mail = last.job.spec.mail
    job = replace(newest, spec=replace(newest.spec, mail=mail))
    return tuple(
        Notice(on=each, job=job, at=last.ended_at, spread=spread)
        for each in _endings_of_array(spread, mail.on)
        if each in mail.on
    )


def spread_of(parts: Sequence[Ended]) -> ArrayResult:
    """How the parts ended."""
    statuses = [_status_of_part(part.job) for part in parts]
    requeued = any(part.job.attempt > 1 for part in parts)
    return ArrayResult(least=min(statuses), most=max(statuses), requeued=requeued)


def status_of(why: EndReason | HeldBy | None) -> int:
    """How it ended, as `wait` would tell it; 0 if it did not end by itself."""
    code, signal = exit_of(why) or (0, 0)
    return code << 8 | signal


def marks_of(job: Job, held: Allocation | None) -> dict[Occasion, Instant]:
    """When parts of its time will be over that its user wants to know of, while it runs."""
    wanted = [each for each in job.spec.mail.on if each in SHARES]
    limit = job.spec.time_limit
    if not wanted or limit is None or held is None or held.started_at is None:
        return {}
    if job.state is not JobState.RUNNING:
        return {}
    began = held.started_at + held.stood
    return {each: Instant(began + limit * SHARES[each] // 100) for each in wanted}


def lost_hope(
    job: Job, before: Mapping[JobId, Finished], after: Mapping[JobId, Finished]
) -> Notice | None:
    """Can what the job waits for never happen, since others came out so? Once it is news."""
    spec = job.spec
    if Occasion.INVALID_DEPEND not in spec.mail.on:
        return None
    if is_hopeless(spec, before) or not is_hopeless(spec, after):
        return None
    at = max(each.ended_at for each in after.values())
    return Notice(on=Occasion.INVALID_DEPEND, job=job, at=at)


def is_hopeless(spec: JobSpec, finished: Mapping[JobId, Finished]) -> bool:
    """Does it wait for something that can never happen, whichever way it takes?"""
    found = ways(spec.after)
    return bool(found) and all(
        any(_cannot_come(each, finished) for each in conditions) for conditions in found
    )


def is_whole(spec: JobSpec) -> bool:
    """Is the mail of this job about the array that it is a part of?"""
    return spec.array is not None and not spec.mail.each_part


def _cannot_come(dependency: Dependency, finished: Mapping[JobId, Finished]) -> bool:
    other = None if dependency.job is None else finished.get(dependency.job)
    return other is not None and other.state in CANNOT_FOLLOW.get(dependency.kind, frozenset())


def _endings(job: Job, events: Sequence[Event]) -> Iterator[Occasion]:
    if job.state in FINAL:
        if isinstance(job.why, TimedOut):
            yield Occasion.TIME_LIMIT
        is_failed = job.state is JobState.FAILED or isinstance(job.why, Preempted)
        yield Occasion.FAIL if is_failed else Occasion.END
    elif any(isinstance(event, JobEnded | JobRequeued) for event in events):
        if isinstance(job.why, NodeFailed):
            yield Occasion.FAIL
        yield Occasion.REQUEUE


def _endings_of_array(spread: ArrayResult, wanted: tuple[Occasion, ...]) -> Iterator[Occasion]:
    """One mail says how it ended: that it failed, if any part exited so and that is wanted."""
    if spread.requeued:
        yield Occasion.REQUEUE
    is_failed = not spread.most & 0x7F and spread.most > 0
    yield Occasion.FAIL if is_failed and Occasion.FAIL in wanted else Occasion.END


def _status_of_part(job: Job) -> int:
    return status_of(job.why) or (0 if job.state is JobState.COMPLETED else _UNFINISHED)


def _index(job: Job) -> int:
    return -1 if job.spec.array is None else job.spec.array.index
