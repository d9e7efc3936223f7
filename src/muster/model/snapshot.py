"""What is, at one instant: all that the planner may know."""

from collections.abc import Mapping

from muster.model.cluster import Cluster, Node, Pool, Reservation
from muster.model.history import Finished
from muster.model.job import Ask, Job
from muster.model.levels import PLAIN_LEVELS, Levels
from muster.model.placement import Allocation
from muster.model.queue import JobClass, Queue
from muster.model.value import (
    ClassName,
    ClusterName,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    Value,
)


class UsedLately(Value, gc=False):
    """GPU-time one user had in one queue, already decayed to `as_of`."""

    queue: QueuePath
    user: UserName
    gpu_milli_ms: int
    as_of: Instant


class UsualAsk(Value):
    """A task that usually comes, and how often: packing keeps room useful to these."""

    each: Ask
    count: int


class Snapshot(Value, kw_only=True):
    """The world when a plan begins. Unchanged values are shared with the snapshot before.

    jobs holds those that have not ended; finished only what a dependency still names.
    """

    version: int = 0
    now: Instant
    clusters: Mapping[ClusterName, Cluster] = {}
    pools: Mapping[PoolName, Pool] = {}
    nodes: Mapping[NodeId, Node] = {}
    queues: Mapping[QueuePath, Queue] = {}
    classes: Mapping[ClassName, JobClass] = {}
    jobs: Mapping[JobId, Job] = {}
    allocations: Mapping[JobId, Allocation] = {}
    reservations: tuple[Reservation, ...] = ()
    finished: Mapping[JobId, Finished] = {}
    used_lately: tuple[UsedLately, ...] = ()
    usual: tuple[UsualAsk, ...] = ()
    levels: Levels = PLAIN_LEVELS
