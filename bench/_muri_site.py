"""The pretended site: equal nodes of eight GPUs, one queue, one class, and service decides."""

from collections.abc import Callable

from muster.model.cluster import Cluster, Node, Pool
from muster.model.gpu import Device, GpuAsk
from muster.model.job import Ask, JobSpec, TaskGroup
from muster.model.policy import Aim, OrderWeights, Policy, PreemptPolicy
from muster.model.queue import JobClass, PreemptMode, Queue
from muster.model.site import Site
from muster.model.value import (
    HOUR,
    ClassName,
    ClusterName,
    DeviceId,
    Duration,
    GpuModel,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
)

GPUS_PER_NODE = 8
LAB = Cluster(name=ClusterName("lab"))
POOL = PoolName("main")
QUEUE = QueuePath("all")
CLASS = ClassName("normal")
MIN_RUN = HOUR
"""Nobody is stopped sooner. Of ten minutes and an hour the better on jobs that no benchmark scores:
slices of ITP's clusters on 64 GPUs (`make bench NAME=service`)."""

TRIES = 64
"""Far more waiting jobs than can have others stopped for them in one plan."""


def site(min_run: Duration = MIN_RUN, aim: Aim = Aim.COMPLETION) -> Site:
    """Its rules; who is stopped saves what it did.

    The level alone decides, then who came first; without limits there is nothing to backfill by.
    """
    policy = Policy(
        order=OrderWeights(job_class=0, fair_share=0, age=0, short=0, queue=0, service=10_000),
        preempt=PreemptPolicy(by_service=True, tries=TRIES, min_run=min_run),
        backfill_depth=0,
        patience=Duration(0),
        aim=aim,
    )
    return Site(
        queues={QUEUE: Queue(path=QUEUE)},
        classes={CLASS: JobClass(name=CLASS, preempt_mode=PreemptMode.CHECKPOINT)},
        pools={POOL: Pool(name=POOL, cluster=LAB.name)},
        default_queue=QUEUE,
        policy=policy,
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


def whole(gpus: int) -> Ask:
    """So many GPUs to oneself."""
    return Ask(gpus=GpuAsk(count=gpus))


def spec_of(
    gpus: int, *, name: str = "job", user: str = "all", each: Callable[[int], Ask] = whole
) -> JobSpec:
    """A request that says nothing about time: whole nodes, and a task for the rest."""
    many, rest = divmod(gpus, GPUS_PER_NODE)
    groups = [("nodes", many, GPUS_PER_NODE), ("rest", 1, rest)]
    return JobSpec(
        name=name,
        user=UserName(user),
        queue=QUEUE,
        job_class=CLASS,
        groups=tuple(
            TaskGroup(name=group, count=count, each=each(size))
            for group, count, size in groups
            if count and size
        ),
    )
