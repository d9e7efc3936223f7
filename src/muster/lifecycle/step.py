"""How a job moves: the table of states, and what each event makes of a job.

People ask, the planner decides, backends report. What people ask and backends report may come
late or twice, and then changes nothing. What the planner decides was checked against the snapshot
it was committed with, so in the wrong state it is a bug of ours and raises.

Everything about an attempt is keyed by it. Holding and releasing, suspending and resuming go to and
fro: they apply in the order in which they arrive, and the same event twice in a row applies once.
"""

from collections.abc import Mapping

from muster.lifecycle.retry import JobOver, Retry, after_end
from muster.model.errors import ImpossibleMoveError
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
    JobSubmitted,
    JobSuspended,
    JobUpdated,
    RequeueAsked,
    SignalAsked,
)
from muster.model.job import (
    FINAL,
    Cancelled,
    DeadlinePassed,
    EndReason,
    Exited,
    HeldBy,
    Job,
    JobState,
    LaunchFailed,
    NodeFailed,
    OutOfMemory,
    Preempted,
    Requeued,
    Signaled,
    TimedOut,
)
from muster.model.queue import PreemptMode
from muster.model.value import Instant, replace

NEXT: Mapping[JobState, frozenset[JobState]] = {
    # A job may miss its deadline without having started: then it fails where it waits.
    JobState.HELD: frozenset({JobState.PENDING, JobState.FAILED, JobState.CANCELLED}),
    JobState.PENDING: frozenset(
        {JobState.HELD, JobState.STARTING, JobState.FAILED, JobState.CANCELLED}
    ),
    # Backends are polled, so a short attempt can be over before anybody saw it run.
    JobState.STARTING: frozenset(
        {JobState.RUNNING, JobState.SUSPENDED, JobState.STOPPING, JobState.PENDING} | FINAL
    ),
    JobState.RUNNING: frozenset({JobState.SUSPENDED, JobState.STOPPING, JobState.PENDING} | FINAL),
    JobState.SUSPENDED: frozenset({JobState.RUNNING, JobState.STOPPING, JobState.PENDING} | FINAL),
    JobState.STOPPING: frozenset({JobState.SUSPENDED, JobState.PENDING, JobState.HELD} | FINAL),
    JobState.COMPLETED: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.CANCELLED: frozenset(),
}
"""Every move there is; PENDING after STARTING means another attempt."""

UNSTARTED = frozenset({JobState.HELD, JobState.PENDING})
"""States between attempts: nothing is held, nothing can be reported."""

Asked = JobHeld | JobReleased | CancelAsked | RequeueAsked | JobUpdated
Planned = JobClaimed | ClaimDropped | JobPlaced
Ordered = JobResized | JobResumed | JobPreempted
Reported = JobStarted | JobCheckpointed | JobSuspended | JobEnded | JobRequeued


def submitted(event: JobSubmitted) -> Job:
    """The job as it begins."""
    return Job(
        id=event.job,
        spec=event.spec,
        state=JobState.HELD if event.held else JobState.PENDING,
        why=HeldBy(user=event.spec.user) if event.held else None,
        submitted_at=event.at,
    )


def step(job: Job, event: JobEvent) -> Job:
    """The job after the event: the same job when the event is late, repeated or of an old attempt.

    Raises ImpossibleMoveError for what cannot happen, however late an event comes.
    """
    after = _after(job, event)
    if after.state is not job.state and after.state not in NEXT[job.state]:
        raise _impossible(job, event)
    return after


def _after(job: Job, event: JobEvent) -> Job:
    if event.job != job.id:
        raise _impossible(job, event)
    match event:
        case JobPlaced() | JobClaimed() | ClaimDropped():
            return _planned(job, event)
        case JobEnded(why=DeadlinePassed() as why) if _never_starts(job, event):
            return replace(job, state=JobState.FAILED, why=why, claim=None)
        case JobStarted() | JobEnded() | JobCheckpointed() | JobSuspended() | JobRequeued():
            return _reported(job, event) if _is_current(job, event) else job
        case JobHeld() | JobReleased() | CancelAsked() | RequeueAsked() | JobUpdated():
            return _asked(job, event)
        case JobResized() | JobResumed() | JobPreempted():
            return _ordered(job, event) if _is_current(job, event) else job
        case SignalAsked() | DeadlineMissForeseen():
            return job


def _is_current(job: Job, event: Ordered | Reported) -> bool:
    """Is the event about the attempt that goes on now?"""
    if event.attempt > job.attempt:
        raise _impossible(job, event)
    is_over = job.state in UNSTARTED or job.state in FINAL
    return event.attempt == job.attempt and not is_over


def _never_starts(job: Job, event: JobEnded) -> bool:
    return event.attempt == job.attempt and job.state in UNSTARTED


def _asked(job: Job, event: Asked) -> Job:
    match event:
        case JobHeld(by=by, as_admin=as_admin):
            return _held(job, HeldBy(user=by, as_admin=as_admin))
        case JobReleased():
            return _released(job)
        case CancelAsked(by=by):
            return _cancelled(job, Cancelled(by=by))
        case RequeueAsked(by=by):
            runs = {JobState.STARTING, JobState.RUNNING, JobState.SUSPENDED}
            why = Requeued(by=by)
            return replace(job, state=JobState.STOPPING, why=why) if job.state in runs else job
        case JobUpdated(spec=spec):
            return job if job.state in FINAL else replace(job, spec=spec)


def _held(job: Job, why: HeldBy) -> Job:
    """Who holds a job already goes on doing so, unless an administrator takes it over."""
    if job.state is JobState.PENDING:
        # Room must not be kept for a job that may not start.
        return replace(job, state=JobState.HELD, why=why, claim=None)
    if job.state is JobState.STOPPING and isinstance(job.why, Requeued):
        return replace(job, why=replace(job.why, held=why))
    if job.state not in {JobState.HELD, JobState.SUSPENDED}:
        return job
    return replace(job, why=why) if why.as_admin or not isinstance(job.why, HeldBy) else job


def _released(job: Job) -> Job:
    if job.state is JobState.HELD:
        return replace(job, state=JobState.PENDING, why=None)
    is_kept = job.state is JobState.SUSPENDED and isinstance(job.why, HeldBy)
    return replace(job, why=None) if is_kept else job


def _cancelled(job: Job, why: Cancelled) -> Job:
    """A job that holds nothing ends at once; any other must stop first, and will not come back."""
    if job.state in FINAL or isinstance(job.why, Cancelled):
        return job
    if job.state in UNSTARTED:
        return replace(job, state=JobState.CANCELLED, why=why, claim=None)
    return replace(job, state=JobState.STOPPING, why=why)


def _planned(job: Job, event: Planned) -> Job:
    match event:
        case ClaimDropped():
            return replace(job, claim=None)
        case JobPlaced(attempt=attempt) if attempt <= job.attempt:
            return job
        case JobClaimed(claim=claim) if job.state is JobState.PENDING:
            return replace(job, claim=claim)
        case JobPlaced() if job.state is JobState.PENDING and event.attempt == job.attempt + 1:
            return replace(
                job,
                state=JobState.STARTING,
                attempt=event.attempt,
                why=None,
                claim=None,
                not_before=None,
            )
        case JobClaimed() | JobPlaced():
            raise _impossible(job, event)


def _ordered(job: Job, event: Ordered) -> Job:
    match event:
        case JobResized() | JobResumed() if job.state is JobState.STARTING:
            raise _impossible(job, event)
        case JobResumed() if job.state is JobState.SUSPENDED:
            return replace(job, state=JobState.RUNNING, why=None)
        case JobPreempted(by=by, mode=mode) if job.state in {JobState.STARTING, JobState.RUNNING}:
            return replace(job, state=JobState.STOPPING, why=Preempted(by=by, mode=mode))
        case JobResized() | JobResumed() | JobPreempted():
            return job


def _reported(job: Job, event: Reported) -> Job:
    match event:
        case JobStarted() if job.state is JobState.STARTING:
            return replace(job, state=JobState.RUNNING)
        case JobSuspended():
            return _suspended(job)
        case JobEnded(at=at, why=why):
            return _ended(job, _true_end(job, why), at)
        case JobRequeued(at=at) if isinstance(job.why, Preempted | Requeued | Cancelled):
            return _ended(job, job.why, at)
        case JobRequeued():
            return replace(job, state=JobState.PENDING, why=None)
        case JobCheckpointed(path=str(path)):
            return replace(job, checkpoint=path)
        case JobStarted() | JobCheckpointed():
            return job


def _suspended(job: Job) -> Job:
    if job.state in {JobState.STARTING, JobState.RUNNING}:
        return replace(job, state=JobState.SUSPENDED, why=None)
    why = job.why
    makes_room = isinstance(why, Preempted) and why.mode is PreemptMode.SUSPEND
    is_told = job.state is JobState.STOPPING and makes_room
    return replace(job, state=JobState.SUSPENDED) if is_told else job


def _true_end(job: Job, reported: EndReason) -> EndReason:
    """Why the attempt ended, seeing that we may have been stopping it.

    A clean exit counts even then: it came before the signal, or the backend would not say so.
    So does what would end the job anyway. Anything else is the way in which it obeyed.
    """
    why = job.why
    if job.state is not JobState.STOPPING or not isinstance(why, Preempted | Requeued | Cancelled):
        return reported
    match reported:
        case Exited(code=0):
            return reported
        case TimedOut() | DeadlinePassed() | Cancelled():
            return why if isinstance(why, Cancelled) else reported
        case Exited() | Signaled() | OutOfMemory() | NodeFailed() | LaunchFailed():
            return why
        case Preempted() | Requeued():
            return why


def _ended(job: Job, why: EndReason, at: Instant) -> Job:
    match after_end(job, why):
        case JobOver(state=state):
            return replace(job, state=state, why=why)
        case Retry() if isinstance(why, Requeued) and why.held is not None:
            return replace(job, state=JobState.HELD, why=why.held)
        case Retry(pause=pause, used_up=used_up):
            return replace(
                job,
                state=JobState.PENDING,
                why=why,
                failures=job.failures + used_up,
                not_before=Instant(at + pause) if pause else None,
            )


def _impossible(job: Job, event: JobEvent) -> ImpossibleMoveError:
    return ImpossibleMoveError(job.id, job.state, type(event).__name__)
