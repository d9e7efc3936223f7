"""Steps: parts of a running attempt that its user starts one by one and that share its room."""

from muster.model.history import Used
from muster.model.resources import Resources
from muster.model.value import Instant, JobId, NodeId, Value


class StepPart(Value):
    """What a step is in one component of its job, and how its tasks there ended.

    In a job of one component, steps may have components of their own, beside each other.
    """

    component: int
    name: str
    command: str
    tasks: int
    nodes: tuple[NodeId, ...]
    amount: Resources
    code: int = 0
    signal: int = 0
    used: Used | None = None


class Step(Value):
    """One step. `nodes` are in the order of its ranks; `amount` is all that it may use.

    code, signal: the highest of its tasks' exit codes, and the signal that ended one, if any.
    A step that runs has no `ended_at`. parts: where it has, or its job has, several components.
    """

    job: JobId
    attempt: int
    number: int
    name: str
    command: str
    tasks: int
    nodes: tuple[NodeId, ...]
    amount: Resources
    began_at: Instant
    ended_at: Instant | None = None
    code: int = 0
    signal: int = 0
    used: Used | None = None
    parts: tuple[StepPart, ...] = ()
