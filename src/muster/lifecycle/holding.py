"""What an attempt holds, from placed to ended."""

from muster.model.event import (
    CancelAsked,
    ClaimDropped,
    DeadlineMissForeseen,
    JobCheckpointed,
    JobClaimed,
    JobEnded,
    JobEvent,
    JobHeld,
    JobPlaced,
    JobPreempted,
    JobReleased,
    JobRequeued,
    JobResized,
    JobResumed,
    JobStarted,
    JobSuspended,
    JobUpdated,
    RequeueAsked,
    SignalAsked,
)
from muster.model.job import HOLDING, Job, JobState
from muster.model.placement import Allocation
from muster.model.value import Duration, Instant, replace

ATTEMPTING = HOLDING | {JobState.SUSPENDED}
"""States in which an attempt goes on. A suspended job's allocation says where it goes on."""


def allocation_after(allocation: Allocation | None, event: JobEvent, job: Job) -> Allocation | None:
    """What the attempt holds after the event; `job` is the job as `step` left it.

    There is an allocation exactly while an attempt goes on. The job is needed for that: a repeated
    JobPlaced must not bring back what an attempt held that is over.
    """
    if job.state not in ATTEMPTING:
        return None
    match event:
        case JobPlaced():
            return _placed(allocation, event)
        case JobStarted() | JobCheckpointed() | JobResized() | JobSuspended() | JobResumed():
            is_meant = allocation is not None and allocation.attempt == event.attempt
            if allocation is None or not is_meant or _is_late(event, job):
                return allocation
            return _changed(allocation, event)
        case JobHeld() | JobReleased() | JobClaimed() | ClaimDropped() | JobPreempted():
            return allocation
        case CancelAsked() | RequeueAsked() | SignalAsked() | JobUpdated() | JobEnded():
            return allocation
        case JobRequeued() | DeadlineMissForeseen():
            return allocation


def _is_late(event: JobEvent, job: Job) -> bool:
    """Was the job suspended, as is reported now, before it went on?"""
    return isinstance(event, JobSuspended) and job.state is not JobState.SUSPENDED


def _placed(allocation: Allocation | None, event: JobPlaced) -> Allocation:
    if allocation is not None and allocation.attempt >= event.attempt:
        return allocation
    return Allocation(
        job=event.job,
        attempt=event.attempt,
        cluster=event.cluster,
        placements=event.placements,
        placed_at=event.at,
    )


Changing = JobStarted | JobCheckpointed | JobResized | JobSuspended | JobResumed


def _changed(held: Allocation, event: Changing) -> Allocation:
    match event:
        case JobSuspended(at=at):
            return held if held.stands_since is not None else replace(held, stands_since=at)
        case JobResumed(at=at):
            return _gone_on(held, at)
        case JobStarted(at=at, handle=handle):
            return replace(
                held,
                started_at=at if held.started_at is None else held.started_at,
                handle=handle if held.handle is None else held.handle,
            )
        case JobCheckpointed(at=at):
            return replace(held, checkpointed_at=max(at, held.checkpointed_at or at))
        case JobResized(placements=placements):
            known = {(placed.group, placed.index) for placed in held.placements}
            new = tuple(each for each in placements if (each.group, each.index) not in known)
            return replace(held, placements=held.placements + new)


def _gone_on(held: Allocation, at: Instant) -> Allocation:
    """Reported twice, it happened once."""
    if held.stands_since is None:
        return held if held.resumed_at == at else replace(held, resumed_at=at)
    stood = Duration(held.stood + max(0, at - held.stands_since))
    return replace(held, resumed_at=at, stands_since=None, stood=stood)
