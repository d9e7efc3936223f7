"""What an attempt did with what it held: its report, live or when it was over."""

from collections.abc import Mapping

from muster.model.finding import Cause, Confidence, Finding
from muster.model.value import (
    ClusterName,
    DeviceId,
    Duration,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    Value,
)


class DeviceUse(Value):
    """What one device, or the attempt's part of it, did.

    means: of signals, in thousandths, over the time in which they were known. index: on its node,
    where it is known. energy_mj: of the whole device, meanwhile.
    """

    node: NodeId
    device: DeviceId
    gpu_milli: int
    held_ms: Duration
    index: int | None = None
    means: Mapping[str, int] = {}
    memory_bytes: int | None = None
    memory_peak_bytes: int | None = None
    energy_mj: int | None = None


class NodeUse(Value, gc=False):
    """What the attempt's processes on one node used, and what they were granted."""

    node: NodeId
    cpu_granted_milli: int | None = None
    cpu_used_ms: Duration | None = None
    memory_peak_bytes: int | None = None
    memory_granted_bytes: int | None = None


class CauseTime(Value, gc=False):
    """What one cause took of an attempt; all of them together are what it held."""

    cause: Cause
    gpu_ms: Duration
    wasted_micros: int = 0


class JobReport(Value):
    """One attempt: what it held, what became of it, and why.

    until: where it ended, or how far it was looked at. cost_micros: of what it held, by the price
    of its pool. suggestions are added where it is shown: they depend on who reads.
    """

    job: JobId
    attempt: int
    user: UserName
    queue: QueuePath
    cluster: ClusterName
    since: Instant
    until: Instant
    is_over: bool = False
    pool: PoolName = PoolName("")
    headline: Cause | None = None
    confidence: Confidence = Confidence.POSSIBLE
    gpu_ms: Duration = Duration(0)
    cost_micros: int = 0
    wasted_micros: int = 0
    means: Mapping[str, int] = {}
    causes: tuple[CauseTime, ...] = ()
    findings: tuple[Finding, ...] = ()
    devices: tuple[DeviceUse, ...] = ()
    nodes: tuple[NodeUse, ...] = ()

    @property
    def elapsed_ms(self) -> int:
        return self.until - self.since


class FleetUse(Value, gc=False):
    """What became of a part of a pool's time, in a stretch that begins at `at`.

    queue, user: empty where nobody held it. use: as in the fleet's table, such as `held_idle`.
    milli_ms: thousandths of a GPU times milliseconds.
    """

    at: Instant
    cluster: ClusterName
    pool: PoolName
    queue: QueuePath
    use: str
    milli_ms: int
    user: UserName = UserName("")
    cause: Cause | None = None
    wasted: int = 0
