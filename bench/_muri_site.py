"""The pretended site: equal nodes of eight GPUs, one queue, classes as a ladder."""

from bench._muri_sorter import CLASSES, POLICY
from muster.model.cluster import Cluster, Node, Pool
from muster.model.gpu import Device, GpuAsk
from muster.model.job import Ask, JobSpec, TaskGroup
from muster.model.queue import Queue
from muster.model.site import Site
from muster.model.value import (
    ClassName,
    ClusterName,
    DeviceId,
    Duration,
    GpuModel,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    replace,
)

GPUS_PER_NODE = 8
LAB = Cluster(name=ClusterName("lab"))
POOL = PoolName("main")
QUEUE = QueuePath("all")


def site(min_run: Duration) -> Site:
    """Its rules; nobody is stopped before it ran so long."""
    return Site(
        queues={QUEUE: Queue(path=QUEUE)},
        classes=CLASSES,
        pools={POOL: Pool(name=POOL, cluster=LAB.name)},
        default_queue=QUEUE,
        policy=replace(POLICY, preempt=replace(POLICY.preempt, min_run=min_run)),
    )


def nodes(count: int) -> list[Node]:
    """So many nodes."""
    return [
        Node(
            id=NodeId(f"n{number}"),
            cluster=LAB.name,
            pool=POOL,
            cpu_milli=96_000,
            memory_mib=512_000,
            devices=tuple(_device(number, index) for index in range(GPUS_PER_NODE)),
        )
        for number in range(count)
    ]


def _device(node: int, index: int) -> Device:
    return Device(
        id=DeviceId(f"n{node}/gpu{index}"), index=index, model=GpuModel("V100"), memory_mib=32_768
    )


def spec_of(gpus: int, job_class: ClassName, *, name: str = "job", user: str = "all") -> JobSpec:
    """A request that says nothing about time: whole nodes, and a task for the rest."""
    many, rest = divmod(gpus, GPUS_PER_NODE)
    groups = [("nodes", many, GPUS_PER_NODE), ("rest", 1, rest)]
    return JobSpec(
        name=name,
        user=UserName(user),
        queue=QUEUE,
        job_class=job_class,
        groups=tuple(
            TaskGroup(name=group, count=count, each=Ask(gpus=GpuAsk(count=each)))
            for group, count, each in groups
            if count and each
        ),
    )
