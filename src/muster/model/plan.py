"""What to do: one decision for every waiting job, and every wait with its reason."""

from enum import StrEnum

from muster.model.gpu import MigInstance
from muster.model.placement import Placement
from muster.model.policy import Policy
from muster.model.queue import PreemptMode
from muster.model.reason import WaitReason
from muster.model.value import ClusterName, DeviceId, Duration, Instant, JobId, NodeId, Value


class NoEstimate(StrEnum):
    """Why no start can be foretold."""

    HELD = "held"
    DEPENDENCY = "dependency"
    NEVER = "never"
    UNBOUNDED = "jobs ahead have no time limit"


class Start(Value, tag="start"):
    """Begin this attempt on these placements."""

    job: JobId
    attempt: int
    cluster: ClusterName
    placements: tuple[Placement, ...]


class Resume(Value, tag="resume", gc=False):
    """Let a suspended job go on where it is."""

    job: JobId
    attempt: int


class Clear(Value, tag="clear"):
    """Stop the victims and hold their room for this job, which starts when they are gone."""

    job: JobId
    cluster: ClusterName
    placements: tuple[Placement, ...]
    victims: tuple[JobId, ...]
    until: Instant


class Wait(Value, tag="wait", gc=False):
    """Not now, for this reason; expected to start then, or why nobody can say."""

    job: JobId
    why: WaitReason
    expected: Instant | NoEstimate


class Preempt(Value, tag="preempt", gc=False):
    """Make this attempt give up its room. `lost_gpu_ms` counts what it will have to do again."""

    job: JobId
    attempt: int
    for_job: JobId
    mode: PreemptMode
    grace: Duration
    lost_gpu_ms: int


class Resize(Value, tag="resize"):
    """Give a running elastic job these placements beside those it has."""

    job: JobId
    attempt: int
    placements: tuple[Placement, ...]


class Repartition(Value, tag="repartition"):
    """Cut a device anew before the job starts; instances in use stay as they are.

    `instances` of None switches MIG mode off.
    """

    node: NodeId
    device: DeviceId
    instances: tuple[MigInstance, ...] | None
    for_job: JobId


Decision = Start | Resume | Clear | Wait
"""What becomes of one waiting job."""

Measure = Preempt | Resize | Repartition
"""What is done beside, so that a decision can come true or room is used."""


class Plan(Value):
    """Exactly one decision for each waiting job, in the order they were taken, and the measures."""

    snapshot_version: int
    policy: Policy
    decisions: tuple[Decision, ...]
    measures: tuple[Measure, ...] = ()
