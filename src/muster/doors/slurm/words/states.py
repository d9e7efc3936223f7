"""Our states and reasons in Slurm's words. Pure."""

import signal
from enum import Enum

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
from muster.model.reason import WaitReason
from muster.model.value import UserName


class State(Enum):
    """Slurm's states, in the order in which it numbers them, with their short forms."""

    PENDING = "PD"
    RUNNING = "R"
    SUSPENDED = "S"
    COMPLETED = "CD"
    CANCELLED = "CA"
    FAILED = "F"
    TIMEOUT = "TO"
    NODE_FAIL = "NF"
    PREEMPTED = "PR"
    BOOT_FAIL = "BF"
    DEADLINE = "DL"
    OUT_OF_MEMORY = "OOM"
    COMPLETING = "CG"
    CONFIGURING = "CF"
    RESIZING = "RS"
    RESV_DEL_HOLD = "RD"
    REQUEUED = "RQ"
    REQUEUE_FED = "RF"
    REQUEUE_HOLD = "RH"
    REVOKED = "RV"
    SIGNALING = "SI"
    SPECIAL_EXIT = "SE"
    STAGE_OUT = "SO"
    STOPPED = "ST"


ORDER = {state: place for place, state in enumerate(State)}
WORDS = {state.name.lower(): state for state in State} | {
    state.value.lower(): state for state in State
}
LIVE = frozenset(
    {State.PENDING, State.RUNNING, State.SUSPENDED, State.COMPLETING, State.CONFIGURING}
)
"""What squeue shows unless told."""

_LIVE_STATES = {
    JobState.HELD: State.PENDING,
    JobState.PENDING: State.PENDING,
    JobState.STARTING: State.CONFIGURING,
    JobState.RUNNING: State.RUNNING,
    JobState.SUSPENDED: State.SUSPENDED,
    JobState.STOPPING: State.COMPLETING,
    JobState.COMPLETED: State.COMPLETED,
    JobState.FAILED: State.FAILED,
    JobState.CANCELLED: State.CANCELLED,
}


def state_of(job: Job) -> State:
    """Where a job stands."""
    if job.state in FINAL and job.why is not None and not isinstance(job.why, HeldBy):
        return ended_as(job.why)
    return _LIVE_STATES[job.state]


def ended_as(why: EndReason) -> State:
    """What an attempt that ended for this reason came to."""
    if isinstance(why, Exited):
        return State.FAILED if why.code else State.COMPLETED
    return _ENDS[type(why)]


def exit_code(job: Job) -> str:
    """`3:0` after an exit, `0:11` after a signal, `0:15` for what was cancelled while it ran."""
    match job.why:
        case Exited(code=code):
            return f"{code}:0"
        case Signaled(signal=number):
            return f"0:{number}"
        case OutOfMemory():
            return "0:125"
        case LaunchFailed():
            return "1:0"
        case Cancelled() if job.attempt:
            # It was told so while it ran.
            return f"0:{signal.SIGTERM}"
        case _:
            return "0:0"


def exit_status(job: Job) -> int:
    """As the kernel has it: the code in the upper half, the signal in the lower."""
    code, _, number = exit_code(job).partition(":")
    return int(code) * 256 + int(number)


def reason(job: Job, wait: WaitReason | None) -> str:
    """Why it waits, or how it ended; `None` when there is nothing to say."""
    if job.state in FINAL:
        return _end_word(job)
    if isinstance(job.why, HeldBy) and job.state is JobState.HELD:
        return wait_word(job.why, job.spec.user)
    if job.state in {JobState.PENDING, JobState.HELD} and wait is not None:
        return wait_word(wait, job.spec.user)
    return "None"


def wait_word(why: WaitReason, owner: UserName) -> str:
    """A reason to wait."""
    if isinstance(why, HeldBy) and why.user != owner:
        return "JobHeldAdmin"
    return why.facts.slurm


def _end_word(job: Job) -> str:
    match job.why:
        case Exited(code=code) if code:
            return "NonZeroExitCode"
        case TimedOut():
            return "TimeLimit"
        case OutOfMemory():
            return "OutOfMemory"
        case NodeFailed():
            return "NodeDown"
        case LaunchFailed() | Signaled():
            return "JobLaunchFailure"
        case DeadlinePassed():
            return "DeadLine"
        case _:
            return "None"


_ENDS: dict[type, State] = {
    Signaled: State.FAILED,
    LaunchFailed: State.FAILED,
    TimedOut: State.TIMEOUT,
    OutOfMemory: State.OUT_OF_MEMORY,
    NodeFailed: State.NODE_FAIL,
    Preempted: State.PREEMPTED,
    Cancelled: State.CANCELLED,
    Requeued: State.REQUEUED,
    DeadlinePassed: State.DEADLINE,
}
