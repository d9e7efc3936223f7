"""What becomes of a job when an attempt is over: another attempt, or the end."""

from muster.model.job import (
    Cancelled,
    DeadlinePassed,
    EndReason,
    Exited,
    Job,
    JobState,
    LaunchFailed,
    NodeFailed,
    OutOfMemory,
    Preempted,
    Requeued,
    RetryPolicy,
    Signaled,
    TimedOut,
)
from muster.model.queue import PreemptMode
from muster.model.value import Duration, Value


class Retry(Value, gc=False):
    """The job waits again, at least for `pause`; `used_up` if that cost it one of its attempts."""

    pause: Duration
    used_up: bool


class JobOver(Value, gc=False):
    """The job is over, in this state."""

    state: JobState


def after_end(job: Job, end: EndReason) -> Retry | JobOver:
    """Does an attempt that ended like this deserve another one?

    Only what the job does itself uses up attempts. Its time, its deadline and its owner's word are
    final: trying again would end the same way.
    """
    match end:
        case Exited(code=0):
            return JobOver(state=JobState.COMPLETED)
        case Exited() | Signaled() | OutOfMemory() | LaunchFailed():
            return _after_failure(job)
        case NodeFailed():
            return _after_lost_node(job)
        case Preempted(mode=mode):
            return _after_preemption(job, mode)
        case Requeued():
            return Retry(pause=Duration(0), used_up=False)
        case TimedOut() | DeadlinePassed():
            return JobOver(state=JobState.FAILED)
        case Cancelled():
            return JobOver(state=JobState.CANCELLED)


def pause(policy: RetryPolicy, nth: int) -> Duration:
    """How long to wait after the nth failure, counted from 1."""
    # Beyond this power every cap is reached, and the number would only grow long.
    power = min(nth - 1, 64)
    return Duration(min(policy.cap, policy.base * policy.factor**power))


def _after_failure(job: Job) -> Retry | JobOver:
    failures = job.failures + 1
    if failures >= job.spec.max_attempts:
        return JobOver(state=JobState.FAILED)
    return Retry(pause=pause(job.spec.retry, failures), used_up=True)


def _after_lost_node(job: Job) -> Retry | JobOver:
    if not job.spec.retry.requeue:
        return JobOver(state=JobState.FAILED)
    # It waits longer each time: a job that takes its nodes down with it
    # must not go through the fleet at full speed.
    return Retry(pause=pause(job.spec.retry, max(job.attempt, 1)), used_up=False)


def _after_preemption(job: Job, mode: PreemptMode) -> Retry | JobOver:
    if mode is PreemptMode.CANCEL or not job.spec.retry.requeue:
        return JobOver(state=JobState.CANCELLED)
    # No pause: whether there is room for it again is the planner's question.
    return Retry(pause=Duration(0), used_up=False)
