"""What people do with jobs that exist: cancel, hold, release, requeue, suspend, resume, signal."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from muster.controller.asked import Caller, Outcome
from muster.controller.notes import note
from muster.controller.rights import has_role, may_change
from muster.controller.stage import Stage
from muster.model.event import (
    CancelAsked,
    Event,
    JobHeld,
    JobReleased,
    JobSuspended,
    RequeueAsked,
    SignalAsked,
)
from muster.model.gpu import Mig
from muster.model.job import HeldBy, Job, JobState, Requeued
from muster.model.placement import Allocation
from muster.model.site import Role
from muster.model.value import JobId, Value


class Move(StrEnum):
    """The verbs."""

    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"
    REQUEUE = "requeue"
    SUSPEND = "suspend"
    RESUME = "resume"
    SIGNAL = "signal"


class Wish(Value):
    """Who wants what done; for `Move.SIGNAL` the signal, and the step if it is for one.

    for_owner: hold as if the job's own user did, who may then release it.
    """

    caller: Caller
    move: Move
    signal: int = 0
    step: int | None = None
    for_owner: bool = False


RUNS = frozenset({JobState.RUNNING, JobState.STARTING})

SUITS: Mapping[Move, frozenset[JobState]] = {
    Move.CANCEL: frozenset(JobState),
    Move.HOLD: frozenset({JobState.PENDING, JobState.HELD, JobState.SUSPENDED}),
    Move.RELEASE: frozenset({JobState.HELD, JobState.SUSPENDED, JobState.PENDING}),
    Move.REQUEUE: RUNS | {JobState.SUSPENDED},
    Move.SUSPEND: frozenset({JobState.RUNNING}),
    Move.RESUME: frozenset({JobState.SUSPENDED}),
    Move.SIGNAL: RUNS | {JobState.SUSPENDED},
}
"""In which states a verb makes sense."""


def moved(wish: Wish, jobs: Iterable[JobId], stage: Stage) -> Outcome:
    """The command: do it to each job that it can be done to, and say why not to the others."""
    done: list[JobId] = []
    failed: dict[JobId, str] = {}
    for job_id in jobs:
        job = stage.job(job_id)
        reason = _reason_against(wish, job, job_id, stage)
        if job is None or reason is not None:
            failed[job_id] = reason or ""
            continue
        stage.tell_all(tuple(_events(wish, job, stage)))
        note(stage, wish.caller, wish.move, f"job {job_id}")
        done.append(job_id)
    return Outcome(done=tuple(done), failed=failed)


def _reason_against(wish: Wish, job: Job | None, job_id: JobId, stage: Stage) -> str | None:
    if job is None:
        return f"there is no job {job_id}, or it has ended"
    if not may_change(wish.caller, stage.site, job):
        return (
            f"job {job_id} belongs to {job.spec.user}; "
            f"they or a queue_admin of {job.spec.queue} can {wish.move} it"
        )
    if job.state not in SUITS[wish.move] and not _comes_back(wish, job):
        return f"job {job_id} is {job.state}; a job can be told to {wish.move} only while " + (
            " or ".join(sorted(SUITS[wish.move]))
        )
    if wish.move is Move.RELEASE and not _may_release(wish.caller, job, stage):
        return f"job {job_id} is held by an administrator, who can release it"
    if wish.move is Move.SUSPEND and _has_instances(stage.allocation(job_id)):
        return f"job {job_id} has MIG instances, which a standing job cannot keep; requeue it"
    return None


def _comes_back(wish: Wish, job: Job) -> bool:
    """Who was just sent back can be held before it is there."""
    is_sent_back = job.state is JobState.STOPPING and isinstance(job.why, Requeued)
    return wish.move is Move.HOLD and is_sent_back


def _may_release(caller: Caller, job: Job, stage: Stage) -> bool:
    """What an administrator holds, only administrators release."""
    if not isinstance(job.why, HeldBy) or job.why.user in {job.spec.user, caller.user}:
        return True
    return has_role(caller, stage.site, Role.QUEUE_ADMIN, job.spec.queue)


def _has_instances(allocation: Allocation | None) -> bool:
    return allocation is not None and any(
        isinstance(share.slice, Mig) for placed in allocation.placements for share in placed.devices
    )


def _events(wish: Wish, job: Job, stage: Stage) -> Iterator[Event]:
    at, by = stage.now, wish.caller.user
    match wish.move:
        case Move.CANCEL:
            yield CancelAsked(at=at, job=job.id, by=by)
        case Move.HOLD:
            holder = job.spec.user if wish.for_owner else by
            as_admin = wish.caller.root and not wish.for_owner
            yield JobHeld(at=at, job=job.id, by=holder, as_admin=as_admin)
        case Move.RELEASE | Move.RESUME:
            yield JobReleased(at=at, job=job.id, by=by)
        case Move.REQUEUE:
            yield RequeueAsked(at=at, job=job.id, by=by)
        case Move.SUSPEND:
            # Held as well, or the next plan would let it go on.
            yield JobSuspended(at=at, job=job.id, attempt=job.attempt)
            yield JobHeld(at=at, job=job.id, by=by)
        case Move.SIGNAL:
            yield SignalAsked(at=at, job=job.id, by=by, signal=wish.signal, step=wish.step)
