"""Which attempt held which device when: how what is measured of a device finds its job."""

from muster.model.value import (
    ClassName,
    ClusterName,
    DeviceId,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    Value,
)


class Holding(Value):
    """One attempt's hold of one device, or of a part of it.

    instance: NVML's number of the MIG instance, where it is known; profile: what it is called;
    start: the memory slice at which it begins.
    gpu_milli: which part of the device it has; 1,000 is all of it. until: None while it lasts.
    """

    job: JobId
    attempt: int
    user: UserName
    queue: QueuePath
    job_class: ClassName
    cluster: ClusterName
    pool: PoolName
    node: NodeId
    device: DeviceId
    gpu_milli: int
    since: Instant
    until: Instant | None = None
    instance: int | None = None
    profile: str = ""
    start: int | None = None
