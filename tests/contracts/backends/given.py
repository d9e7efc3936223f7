"""Jobs, nodes and actions to tell the backends' tests with."""

from collections.abc import Mapping

from muster.backends.base import Run
from muster.model.cluster import Cluster, Node
from muster.model.gpu import Device
from muster.model.job import Cancelled, Job, JobSpec, JobState, Preempted, TaskGroup
from muster.model.launch import NO_LAUNCH, Launch
from muster.model.placement import Allocation, Placement
from muster.model.resources import Resources
from muster.model.value import (
    ClusterName,
    DeviceId,
    Duration,
    GpuModel,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
)

HERE = ClusterName("here")
ANN = UserName("ann")
BY_ANN = Cancelled(by=ANN)
BY_OTHER = Preempted(by=JobId(99))
N1, N2 = NodeId("n1"), NodeId("n2")


def node(name: NodeId, *, gpus: int = 2) -> Node:
    """A node with so many A100."""
    devices = tuple(
        Device(
            id=DeviceId(f"{name}-{index}"),
            index=index,
            model=GpuModel("A100-40GB"),
            memory_mib=40_960,
        )
        for index in range(gpus)
    )
    return Node(
        id=name,
        cluster=HERE,
        pool=PoolName("main"),
        cpu_milli=8_000,
        memory_mib=8_192,
        devices=devices,
    )


NODES: Mapping[NodeId, Node] = {name: node(name) for name in (N1, N2)}
CLUSTER = Cluster(name=HERE)


def job_of(number: int, attempt: int, time_limit: int | None = None) -> Job:
    spec = JobSpec(
        name=f"job{number}",
        user=ANN,
        queue=QueuePath("main"),
        groups=(TaskGroup(),),
        time_limit=None if time_limit is None else Duration(time_limit),
    )
    return Job(
        id=JobId(number),
        spec=spec,
        state=JobState.STARTING,
        submitted_at=Instant(0),
        attempt=attempt,
    )


def run_of(
    job: Job,
    at: int,
    nodes: tuple[Node, ...] = (NODES[N1],),
    launch: Launch = NO_LAUNCH,
) -> Run:
    """Begin the job's attempt with one task on each of these nodes, placed then."""
    placements = tuple(
        Placement(
            group="main",
            index=index,
            node=each.id,
            pool=each.pool,
            amount=Resources(cpu_milli=100, memory_mib=64),
        )
        for index, each in enumerate(nodes)
    )
    allocation = Allocation(
        job=job.id,
        attempt=job.attempt,
        cluster=nodes[0].cluster,
        placements=placements,
        placed_at=Instant(at),
    )
    return Run(
        job=job,
        allocation=allocation,
        launch=launch,
        nodes={each.id: each for each in nodes},
        restarts=job.attempt - 1,
    )
