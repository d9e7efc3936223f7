"""Which task sits where, and what one attempt of a job holds."""

from muster.model.gpu import Enforcement, Slice
from muster.model.resources import Resources
from muster.model.value import (
    ClusterName,
    DeviceId,
    Duration,
    Instant,
    JobId,
    NodeId,
    PoolName,
    Value,
)


class DeviceShare(Value):
    """A device, or a slice of it, given to one task, and how its limit is kept.

    `start` is the memory slice at which a MIG instance begins.
    """

    device: DeviceId
    slice: Slice | None = None
    start: int | None = None
    enforced: Enforcement = Enforcement.HARDWARE


class Placement(Value):
    """One task of a group on one node with its devices."""

    group: str
    index: int
    node: NodeId
    pool: PoolName
    amount: Resources
    devices: tuple[DeviceShare, ...] = ()


class Allocation(Value, omit_defaults=True):
    """What one attempt of a job holds, from placed to ended.

    checkpointed_at is when the newest checkpoint that was really written was seen.
    resumed_at is when it last went on after having been suspended.
    stands_since is when it was suspended, if it is; stood is how long it was, before that.
    handle is the backend's own id.
    """

    job: JobId
    attempt: int
    cluster: ClusterName
    placements: tuple[Placement, ...]
    placed_at: Instant
    started_at: Instant | None = None
    checkpointed_at: Instant | None = None
    resumed_at: Instant | None = None
    handle: str | None = None
    stands_since: Instant | None = None
    stood: Duration = Duration(0)


class Claim(Value):
    """Room that is being cleared for a job by preempting others; no other job may have it."""

    cluster: ClusterName
    placements: tuple[Placement, ...]
    victims: tuple[JobId, ...]
    until: Instant
