"""How a job of Slurm's stands, as a look at an attempt. Pure."""

from muster.backends.attempts import Look, Phase
from muster.backends.notes import Note
from muster.backends.slurm.listing import QueuedJob
from muster.model.job import (
    Cancelled,
    EndReason,
    Exited,
    LaunchFailed,
    NodeFailed,
    OutOfMemory,
    Requeued,
    Signaled,
    TimedOut,
)
from muster.model.value import Duration, Instant, NodeId, UserName

SLURM = UserName("slurm")
"""On whose behalf Slurm itself ends a job, or an administrator with its commands."""

_NOT_SET_UP = 53
"""Not a signal: so slurmstepd ends where it cannot open what a job would write to."""


def look_of(job: QueuedJob, note: Note) -> Look:
    """What Slurm says of the attempt. It tells the second."""
    # Cancelled while it waited: Slurm says that it started when it was cancelled.
    never_began = job.started_s is None or (job.phase is Phase.OVER and not job.nodes)
    return Look(
        phase=job.phase,
        started_at=None if never_began else Instant(1_000 * (job.started_s or 0)),
        ended_at=None if job.ended_s is None else Instant(1_000 * job.ended_s),
        why=_why(job, note) if job.phase is Phase.OVER else None,
    )


def _why(job: QueuedJob, note: Note) -> EndReason:
    node = note.nodes[0] if note.nodes else NodeId("slurm")
    match job.state:
        case "NODE_FAIL" | "BOOT_FAIL":
            return NodeFailed(node=node)
        case "OUT_OF_MEMORY":
            return OutOfMemory(node=node)
        case "TIMEOUT" | "DEADLINE":
            return TimedOut(limit=note.limit or Duration(0))
        case "CANCELLED":
            return Cancelled(by=SLURM)
        case "PREEMPTED" | "REVOKED":
            return Requeued(by=SLURM)
        case _:
            number = job.status & 0x7F
            if number == _NOT_SET_UP:
                text = "Slurm could not open the files of its output: are their folders there?"
                return LaunchFailed(text=text)
            return Signaled(signal=number) if number else Exited(code=job.status >> 8)
