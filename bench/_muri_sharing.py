"""Two jobs on one GPU, as far as what they use complements: what to ask for, and how fast they are.

An iteration reads and prepares data, then computes on the GPU and exchanges results. While one job
does the first, another may do the second. How long a cycle of two takes is the authors' own model:
each first stage beside the other's later ones. How long stages take is measured while a job runs.
"""

from collections.abc import Mapping

from bench._muri_trace import SLOWER, TraceJob
from muster.backends.simulated.sharing import Pace
from muster.model.gpu import GpuAsk, MpsShare
from muster.model.job import Ask
from muster.model.value import JobId

CPU_MILLI_PER_GPU = 12_000
MOST, LEAST = 660, 335
"""Thousandths of what a job uses more, and of what it uses less: alike ones do not fit together,
others do, and three never."""


def ask(job: TraceJob, gpus: int) -> Ask:
    """What a task with so many GPUs asks for, by what the job was seen to use."""
    before, later = _halves(job)
    prepares = before > later
    return Ask(
        cpu_milli=CPU_MILLI_PER_GPU * (MOST if prepares else LEAST) * gpus // 1_000,
        gpus=GpuAsk(count=gpus, slice=MpsShare(milli=LEAST if prepares else MOST)),
    )


def pace_of(jobs: Mapping[JobId, TraceJob]) -> Pace:
    """How fast a job is beside another."""

    def pace(job: JobId, beside: frozenset[JobId]) -> int:
        return min((_together(jobs[job], jobs[other]) for other in beside), default=1_000)

    return pace


def _together(job: TraceJob, other: TraceJob) -> int:
    """Each does one iteration in a cycle."""
    mine, theirs = _halves(job), _halves(other)
    cycle_s = max(mine[0], theirs[1]) + max(theirs[0], mine[1])
    return max(1, min(1_000, round(1_000 * job.iteration_s / SLOWER / cycle_s)))


def _halves(job: TraceJob) -> tuple[float, float]:
    before, *later = job.stages_s
    return before, sum(later)
