"""What to do: one decision for every waiting job, and every wait with its reason."""

from collections.abc import Mapping
from enum import StrEnum

from muster.model.dates import StartDate
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
    """Not now, for this reason. When it may be: see `Prospect`."""

    job: JobId
    why: WaitReason


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


Move = Start | Resume | Clear
"""A decision that changes something."""

Decision = Move | Wait
"""What becomes of one waiting job."""

Measure = Preempt | Resize | Repartition
"""What is done beside, so that a decision can come true or room is used."""


class Plan(Value):
    """Exactly one decision for each waiting job, and the measures.

    A waiting job moves (in the order in which that was decided) or is among the waits. Plans that
    one planner makes in succession share the waits that did not change; `edition.changed` names
    the others.
    """

    snapshot_version: int
    policy: Policy
    moves: tuple[Move, ...] = ()
    waits: Mapping[JobId, Wait] = {}
    measures: tuple[Measure, ...] = ()

    def decision(self, job: JobId) -> Decision | None:
        """What becomes of this job; None if it does not wait."""
        return self.waits.get(job) or next((each for each in self.moves if each.job == job), None)


class Priority(Value, gc=False):
    """The points by which jobs are put in order. is_own: its queue is within its guarantee.

    short: with what its queue gets because those who wait in others are usually shorter.
    asked: what the job itself was given, more for a priority and less for a nice value.
    """

    job_class: int
    queue: int
    size: int
    short: int
    service: int
    asked: int
    age: int
    fair_share: int
    is_own: bool

    @property
    def total(self) -> int:
        """Of two jobs, both within a guarantee or both not, the one with more goes first."""
        return (
            self.job_class
            + self.queue
            + self.size
            + self.short
            + self.service
            + self.asked
            + self.age
            + self.fair_share
        )


class Prospect(Value, gc=False):
    """Where a waiting job stands after a plan, and when it may start, or why that is unknown.

    position: its place in the order of all jobs that wait, from 1; None while it is held.
    priority: as it was before the first decision of the plan; None while it is held.
    date: what was forecast, if it was; then `expected` is its middle.
    """

    expected: Instant | NoEstimate
    position: int | None = None
    priority: Priority | None = None
    date: StartDate | None = None


Backlog = Mapping[JobId, Prospect]
"""Every job that still waits after a plan, first in line first."""
