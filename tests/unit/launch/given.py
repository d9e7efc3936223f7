"""Placed attempts for the tests of what jobs find around them."""

from muster.launch.attempt import PlacedAttempt
from muster.model.job import Job, JobSpec, TaskGroup
from muster.model.launch import Launch
from muster.model.placement import Allocation, DeviceShare, Placement
from muster.model.resources import Resources
from muster.model.value import (
    ClusterName,
    DeviceId,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
)


def task(index: int, node: str, *, group: str = "main", gpus: int = 0) -> Placement:
    return Placement(
        group=group,
        index=index,
        node=NodeId(node),
        pool=PoolName("all"),
        amount=Resources(cpu_milli=2_000, memory_mib=100),
        devices=tuple(DeviceShare(device=DeviceId(f"g{each}")) for each in range(gpus)),
    )


def placed(*placements: Placement, launch: Launch | None = None, **spec: object) -> PlacedAttempt:
    asked = JobSpec(
        name="fit",
        user=UserName("ann"),
        queue=QueuePath("lab/vision"),
        groups=(TaskGroup(), TaskGroup(name="aux")),
        **spec,  # type: ignore[arg-type]
    )
    allocation = Allocation(
        job=JobId(7),
        attempt=2,
        cluster=ClusterName("here"),
        placements=placements,
        placed_at=Instant(0),
    )
    return PlacedAttempt(
        job=Job(id=JobId(7), spec=asked, submitted_at=Instant(0), attempt=2),
        allocation=allocation,
        launch=launch or Launch(argv=("true",)),
        nodes={},
        checkpoint="/data/7.pt",
        restarts=1,
    )
