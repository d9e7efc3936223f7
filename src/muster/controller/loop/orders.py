"""The orders to a backend that follow from what was committed about a job."""

from collections.abc import Iterator, Mapping

from muster.backends.base import Action, Continue, Forget, Limit, Stop, Suspend
from muster.controller.world.reservations import current_window
from muster.controller.world.transaction import Change
from muster.model.job import Cancelled, EndReason, HeldBy, Job, JobState, Preempted
from muster.model.placement import Allocation
from muster.model.queue import JobClass, PreemptMode
from muster.model.site import Site
from muster.model.value import ClassName, Duration, Instant, UserName, Value

Classes = Mapping[ClassName, JobClass]

SYSTEM_USER = UserName("muster")
"""The user on whose behalf Muster itself stops a job."""

USUAL_GRACE = Duration(30_000)


class Begin(Value):
    """The attempt must be begun; what it runs is looked up when it is sent."""

    job: Job
    allocation: Allocation


class Refresh(Value):
    """What the attempt's containers may read may be another; it is looked up when it is sent."""

    job: Job
    allocation: Allocation


Order = Begin | Refresh | Action


def orders_after(change: Change, classes: Classes) -> Iterator[Order]:
    """What follows from one committed change of a job, in order."""
    held, holds = change.held, change.holds
    if held is not None and (holds is None or holds.attempt != held.attempt):
        yield Forget(job=held.job, attempt=held.attempt)
    if holds is None:
        return
    if held is None or held.attempt != holds.attempt:
        yield Begin(job=change.after, allocation=holds)
    yield from _moved(change, holds, classes)


def orders_again(job: Job, allocation: Allocation, classes: Classes) -> Iterator[Order]:
    """The orders after a restart, when it is not known what was sent: sending twice does no harm.

    An attempt that was seen to run is not begun again: if its backend lost it, it says so.
    """
    if allocation.started_at is None:
        yield Begin(job=job, allocation=allocation)
    match job.state:
        case JobState.STOPPING:
            yield _stop(job, allocation, classes)
        case JobState.SUSPENDED:
            yield Suspend(job=job.id, attempt=allocation.attempt)
            yield _limit(job, allocation)
            yield Refresh(job=job, allocation=allocation)
        case JobState.RUNNING:
            yield Continue(job=job.id, attempt=allocation.attempt)
            # Both may have been changed just before the restart.
            yield _limit(job, allocation)
            yield Refresh(job=job, allocation=allocation)
        case JobState.HELD | JobState.PENDING | JobState.STARTING:
            return
        case JobState.COMPLETED | JobState.FAILED | JobState.CANCELLED:
            return


def grace_of(job: Job, classes: Classes) -> Duration:
    """How long the job may take to stop."""
    job_class = classes.get(job.spec.job_class)
    return USUAL_GRACE if job_class is None else job_class.grace


def overdue(job: Job | None, allocation: Allocation, site: Site, now: Instant) -> Limit | None:
    """The order for an attempt to end now, because its reservation has ended; or None."""
    if job is None or job.spec.reservation is None or job.state is JobState.STOPPING:
        return None
    kept = next((each for each in site.reservations if each.name == job.spec.reservation), None)
    if kept is None or kept.flexible:
        return None
    ends_at = current_window(kept, allocation.placed_at).ends_at
    if ends_at > now:
        return None
    return Limit(job=job.id, attempt=allocation.attempt, ends_at=ends_at)


def _moved(change: Change, holds: Allocation, classes: Classes) -> Iterator[Order]:
    before, after = change.before, change.after
    was = None if before is None else before.state
    if after.state is JobState.STOPPING and (before is None or before.why != after.why):
        yield _stop(after, holds, classes)
    if after.state is JobState.SUSPENDED and was in {JobState.STARTING, JobState.RUNNING}:
        yield Suspend(job=after.id, attempt=holds.attempt)
    if after.state is JobState.RUNNING and was is JobState.SUSPENDED:
        yield Continue(job=after.id, attempt=holds.attempt)
    if before is not None and before.spec.time_limit != after.spec.time_limit:
        yield _limit(after, holds)


def _stop(job: Job, allocation: Allocation, classes: Classes) -> Stop | Suspend:
    why = job.why
    if isinstance(why, Preempted) and why.mode is PreemptMode.SUSPEND:
        return Suspend(job=job.id, attempt=allocation.attempt)
    return Stop(
        job=job.id,
        attempt=allocation.attempt,
        why=_reason(why),
        grace=grace_of(job, classes),
        checkpoint=isinstance(why, Preempted) and why.mode is PreemptMode.CHECKPOINT,
    )


def _reason(why: EndReason | HeldBy | None) -> EndReason:
    return Cancelled(by=SYSTEM_USER) if why is None or isinstance(why, HeldBy) else why


def _limit(job: Job, allocation: Allocation) -> Limit:
    """When the attempt must end; the time for which it was suspended does not count."""
    limit = job.spec.time_limit
    began = (allocation.started_at or allocation.placed_at) + allocation.stood
    ends_at = None if limit is None else Instant(began + limit)
    return Limit(job=job.id, attempt=allocation.attempt, ends_at=ends_at)
