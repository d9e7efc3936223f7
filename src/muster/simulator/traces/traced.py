"""What every trace comes down to: jobs that came, and the nodes that were there."""

from enum import StrEnum

from muster.model.gpu import WHOLE_GPU_MILLI
from muster.model.value import Duration, GpuModel, Instant, Value


class Outcome(StrEnum):
    """How a traced job came out; traces that do not say have COMPLETED."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TracedJob(Value, gc=False):
    """One job of a trace.

    Amounts are for each of its `tasks`; `gpu_milli` is of each of the `gpus` of a task.
    duration: how long it ran, None where the trace does not say. started_at: when it began there.
    models: the GPU models that it accepts, none for any. limit: the time that it asked for.
    """

    name: str
    submitted_at: Instant
    duration: Duration | None = None
    tasks: int = 1
    cpu_milli: int = 0
    memory_mib: int = 0
    gpus: int = 0
    gpu_milli: int = WHOLE_GPU_MILLI
    models: tuple[GpuModel, ...] = ()
    user: str = ""
    queue: str = ""
    outcome: Outcome = Outcome.COMPLETED
    started_at: Instant | None = None
    limit: Duration | None = None


class TracedNode(Value, gc=False):
    """One node of a trace; `model` is empty where it has no GPUs."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: GpuModel
