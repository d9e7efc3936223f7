"""What to do: one decision for every waiting job, and every wait with its reason."""

from enum import StrEnum

from muster.model.gpu import MigInstance
from muster.model.job import DependencyKind, HeldBy
from muster.model.placement import Placement
from muster.model.policy import Policy
from muster.model.queue import CeilingMeter, PreemptMode, Scope, Side
from muster.model.value import (
    ClassName,
    ClusterName,
    DeviceId,
    Duration,
    Instant,
    JobId,
    NodeId,
    QueuePath,
    Value,
)


class NoRoom(Value, tag="no_room"):
    """The group does not fit now: `placed` of its `wanted` tasks would, on `nodes` usable nodes."""

    group: str
    placed: int
    wanted: int
    nodes: int


class NeverFits(Value, tag="never_fits"):
    """No node, even empty, could take a task of the group: the request must change."""

    group: str
    wanted: int
    at_most: int


class OverLimit(Value, tag="over_limit"):
    """The queue, or one above the job's, may not hold that much of something at once."""

    queue: QueuePath
    scope: Scope
    limit: int
    used: int
    asked: int


class BorrowedOut(Value, tag="borrowed_out"):
    """The queue may have `available` more, of its guarantee or borrowed; never over `at_most`.

    It may not borrow more, or the rest is kept by queues that do not lend it.
    """

    queue: QueuePath
    scope: Scope
    available: int
    asked: int
    at_most: int


class OverClassLimit(Value, tag="over_class_limit"):
    """Jobs of this class may not hold that much at once for one user, or for one queue."""

    job_class: ClassName
    side: Side
    whose: str
    meter: CeilingMeter
    limit: int
    used: int
    asked: int


class TooManyJobs(Value, tag="too_many_jobs", gc=False):
    """The queue already runs as many jobs as it may."""

    queue: QueuePath
    limit: int


class TooLong(Value, tag="too_long", gc=False):
    """The time limit is longer than the class, or every pool that fits, allows."""

    asked: Duration
    allowed: Duration


class Behind(Value, tag="behind", gc=False):
    """It fits now but would still run when the room is due to a job that goes first."""

    job: JobId
    starts_at: Instant


class ReservationClosed(Value, tag="reservation_closed", gc=False):
    """The reservation that it asks for has not begun, is over, or is not for it."""

    reservation: str
    begins_at: Instant
    ends_at: Instant


class Reserved(Value, tag="reserved", gc=False):
    """It fits now but would still run when a reservation begins."""

    reservation: str
    begins_at: Instant


class DependsOn(Value, tag="depends_on", gc=False):
    """Another job must come to something first; `never` when that can no longer happen.

    It is one of so many ways, of which each would be enough; `never` is said of all of them.
    """

    job: JobId | None
    kind: DependencyKind
    never: bool = False
    ways: int = 1


class NotBefore(Value, tag="not_before", gc=False):
    """The job asked not to begin earlier."""

    at: Instant


class MissesDeadline(Value, tag="misses_deadline", gc=False):
    """It could not finish in time any more, even if it started now."""

    deadline: Instant


class ArrayFull(Value, tag="array_full", gc=False):
    """As many of the array run as may run at once."""

    array: JobId
    at_once: int


class NoSuchPool(Value, tag="no_such_pool", gc=False):
    """A pool or cluster that the job names does not exist, is closed, or is unreachable."""

    name: str


class NoSuchQueue(Value, tag="no_such_queue", gc=False):
    """The job's queue does not exist any more."""

    queue: QueuePath


class NoSuchClass(Value, tag="no_such_class", gc=False):
    """The job's class does not exist any more."""

    job_class: ClassName


class MakingRoom(Value, tag="making_room"):
    """Other jobs are stopping for this one; the room is held for it."""

    victims: tuple[JobId, ...]


class WaitingToResume(Value, tag="waiting_to_resume"):
    """Suspended: the room it left on that node is in use; None if it has none to go back to."""

    node: NodeId | None


WaitReason = (
    NoRoom
    | NeverFits
    | OverLimit
    | BorrowedOut
    | OverClassLimit
    | TooManyJobs
    | TooLong
    | Behind
    | Reserved
    | ReservationClosed
    | DependsOn
    | HeldBy
    | NotBefore
    | MissesDeadline
    | ArrayFull
    | NoSuchPool
    | NoSuchQueue
    | NoSuchClass
    | MakingRoom
    | WaitingToResume
)


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
