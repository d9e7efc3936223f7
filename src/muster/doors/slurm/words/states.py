"""Our states and reasons in Slurm's words. Pure."""

import signal
from enum import Enum

from muster.model.job import FINAL, Cancelled, EndReason, HeldBy, Job, JobState, exit_of
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
"""What squeue shows by default."""

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
    if job.state in FINAL and job.ended_for is not None:
        return ended_as(job.ended_for)
    return _LIVE_STATES[job.state]


def ended_as(why: EndReason) -> State:
    """What an attempt that ended for this reason came to."""
    return State[why.facts.slurm_state]


def exit_code(job: Job) -> str:
    """`3:0` after an exit, `0:11` after a signal, `0:15` for what was cancelled while it ran."""
    # What waits is cancelled without a signal.
    is_stopped = isinstance(job.why, Cancelled) and job.attempt > 0
    code, number = exit_of(job.why) or (0, int(signal.SIGTERM) if is_stopped else 0)
    return f"{code}:{number}"


def exit_status(job: Job) -> int:
    """As the kernel has it: the code in the upper half, the signal in the lower."""
    code, _, number = exit_code(job).partition(":")
    return int(code) * 256 + int(number)


def reason(job: Job, wait: WaitReason | None) -> str:
    """Why it waits, or how it ended; `None` when there is nothing to say."""
    if job.state in FINAL:
        return "None" if job.ended_for is None else job.ended_for.facts.slurm
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
