"""Actions on jobs that exist: cancel, hold, release, requeue, suspend, resume, signal."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from muster.controller.messages import (
    Caller,
    HasInstances,
    HeldByAdmin,
    JobGone,
    NotDoneReason,
    Outcome,
    WrongState,
)
from muster.controller.rights import has_role, may_change, not_yours
from muster.controller.use_cases.audit import audit
from muster.controller.world.transaction import Transaction
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


class JobAction(StrEnum):
    """The verbs."""

    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"
    REQUEUE = "requeue"
    SUSPEND = "suspend"
    RESUME = "resume"
    SIGNAL = "signal"


class JobActionRequest(Value):
    """Who asks for which action; for `Move.SIGNAL` the signal, and the step or task it is for.

    for_owner: hold as if the job's own user had asked, who may then release it.
    """

    caller: Caller
    action: JobAction
    signal: int = 0
    step: int | None = None
    task: int | None = None
    for_owner: bool = False


RUNS = frozenset({JobState.RUNNING, JobState.STARTING})

STATES_FOR: Mapping[JobAction, frozenset[JobState]] = {
    JobAction.CANCEL: frozenset(JobState),
    JobAction.HOLD: frozenset({JobState.PENDING, JobState.HELD, JobState.SUSPENDED}),
    JobAction.RELEASE: frozenset({JobState.HELD, JobState.SUSPENDED, JobState.PENDING}),
    JobAction.REQUEUE: RUNS | {JobState.SUSPENDED},
    JobAction.SUSPEND: frozenset({JobState.RUNNING}),
    JobAction.RESUME: frozenset({JobState.SUSPENDED}),
    JobAction.SIGNAL: RUNS | {JobState.SUSPENDED},
}
"""The states in which each action is possible."""


def act_on_jobs(
    request: JobActionRequest, jobs: Iterable[JobId], transaction: Transaction
) -> Outcome:
    """The command: do it to each job that it can be done to, and say why not to the others."""
    done: list[JobId] = []
    failed: dict[JobId, NotDoneReason] = {}
    for job_id in jobs:
        job = transaction.job(job_id)
        if job is None:
            failed[job_id] = JobGone(job=job_id)
            continue
        reason = _reason_against(request, job, transaction)
        if reason is not None:
            failed[job_id] = reason
            continue
        written = len(transaction.events)
        transaction.apply_all(tuple(_events(request, job, transaction)))
        if len(transaction.events) > written:
            audit(transaction, request.caller, request.action, f"job {job.label}")
        done.append(job_id)
    return Outcome(done=tuple(done), failed=failed)


def _reason_against(
    request: JobActionRequest, job: Job, transaction: Transaction
) -> NotDoneReason | None:
    action = request.action
    if not may_change(request.caller, transaction.site, job):
        return not_yours(request.caller, transaction.site, job, f"{action} it")
    if job.state not in STATES_FOR[action] and not _comes_back(request, job):
        works_in = tuple(sorted(STATES_FOR[action]))
        return WrongState(job=job.label, state=job.state, action=action, works_in=works_in)
    if action is JobAction.RELEASE and not _may_release(request.caller, job, transaction):
        return HeldByAdmin(job=job.label)
    if action is JobAction.SUSPEND and _has_instances(transaction.allocation(job.id)):
        return HasInstances(job=job.label)
    return None


def _comes_back(request: JobActionRequest, job: Job) -> bool:
    """Who was just sent back can be held before it is there."""
    is_sent_back = job.state is JobState.STOPPING and isinstance(job.why, Requeued)
    return request.action is JobAction.HOLD and is_sent_back


def _may_release(caller: Caller, job: Job, transaction: Transaction) -> bool:
    """What an administrator holds, only administrators release."""
    if not isinstance(job.why, HeldBy) or job.why.user in {job.spec.user, caller.user}:
        return True
    return has_role(caller, transaction.site, Role.QUEUE_ADMIN, job.spec.queue)


def _has_instances(allocation: Allocation | None) -> bool:
    return allocation is not None and any(
        isinstance(share.slice, Mig) for placed in allocation.placements for share in placed.devices
    )


def _events(request: JobActionRequest, job: Job, transaction: Transaction) -> Iterator[Event]:
    at, by = transaction.now, request.caller.user
    match request.action:
        case JobAction.CANCEL:
            yield CancelAsked(at=at, job=job.id, by=by)
        case JobAction.HOLD:
            holder = job.spec.user if request.for_owner else by
            as_admin = request.caller.root and not request.for_owner
            yield JobHeld(at=at, job=job.id, by=holder, as_admin=as_admin)
        case JobAction.RELEASE | JobAction.RESUME:
            yield JobReleased(at=at, job=job.id, by=by)
        case JobAction.REQUEUE:
            yield RequeueAsked(at=at, job=job.id, by=by)
        case JobAction.SUSPEND:
            # Held as well, or the next plan would let it go on.
            yield JobSuspended(at=at, job=job.id, attempt=job.attempt)
            yield JobHeld(at=at, job=job.id, by=by)
        case JobAction.SIGNAL:
            yield SignalAsked(
                at=at,
                job=job.id,
                by=by,
                signal=request.signal,
                step=request.step,
                task=request.task,
            )
