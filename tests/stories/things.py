"""Clusters, pools, nodes, queues and classes, as a story tells them."""

from typing import TypedDict

from muster.model.cluster import Abilities, Cluster, Node, Pool
from muster.model.gpu import Device
from muster.model.queue import Ceiling, JobClass, PreemptMode, Queue, Quota
from muster.model.value import (
    MINUTE,
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
from stories.words import GIB, MEMORY_MIB, QuotaSaid, instance, minutes, quota_of, taint

DEFAULT_MODEL = "A100-40GB"


class NodesAre(TypedDict, total=False):
    """What is special about some nodes."""

    gpus: int
    model: str
    gpu_memory_gib: int
    pool: str
    where: tuple[str, ...]
    cpu: int
    memory_gib: int
    labels: dict[str, str]
    taints: tuple[str, ...]
    mig: tuple[str, ...]


class PoolIs(TypedDict, total=False):
    """What is special about a pool; prices are whole units an hour."""

    cluster: str
    levels: tuple[str, ...]
    default_minutes: int
    max_minutes: int
    spot: bool
    price: int
    starts: bool
    users: tuple[str, ...]
    queues: tuple[str, ...]


class ClusterIs(TypedDict, total=False):
    """What is special about a cluster."""

    order: int
    reachable: bool
    abilities: Abilities


class QueueIs(QuotaSaid, total=False):
    """A queue with one line of quota, or with the lines of `quotas`."""

    quotas: tuple[Quota, ...]
    weight: int
    priority: int
    max_jobs: int


class ClassIs(TypedDict, total=False):
    """What is special about a job class."""

    priority: int
    preempts: tuple[str, ...]
    preemptible: bool
    mode: str
    min_run_minutes: int
    max_minutes: int
    spot_only: bool
    per_user: Ceiling
    per_queue: Ceiling


def cluster_of(name: str, told: ClusterIs) -> Cluster:
    """A cluster that can do everything, unless told."""
    return Cluster(
        name=ClusterName(name),
        order=told.get("order", 0),
        reachable=told.get("reachable", True),
        abilities=told.get("abilities", Abilities()),
    )


def pool_of(name: str, told: PoolIs) -> Pool:
    """A pool in zones and racks, unless told."""
    return Pool(
        name=PoolName(name),
        cluster=ClusterName(told.get("cluster", "c")),
        levels=told.get("levels", ("zone", "rack")),
        default_time=minutes(told.get("default_minutes")),
        max_time=minutes(told.get("max_minutes")),
        spot=told.get("spot", False),
        gpu_hour_micros=told.get("price", 0) * 1_000_000,
        starts=told.get("starts", True),
        users=tuple(map(UserName, told.get("users", ()))),
        queues=tuple(map(QueuePath, told.get("queues", ()))),
    )


def node_of(name: str, pool: Pool, told: NodesAre) -> Node:
    """A node with 8 A100, 64 cores and 512 GiB in the first rack, unless told."""
    return Node(
        id=NodeId(name),
        cluster=pool.cluster,
        pool=pool.name,
        cpu_milli=told.get("cpu", 64) * 1_000,
        memory_mib=told.get("memory_gib", 512) * GIB,
        devices=tuple(_device(name, index, told) for index in range(told.get("gpus", 8))),
        where=told.get("where", tuple(f"{level}1" for level in pool.levels)),
        labels=told.get("labels", {}),
        taints=tuple(taint(text) for text in told.get("taints", ())),
    )


def queue_of(path: str, told: QueueIs) -> Queue:
    """A queue that owns nothing and may have everything, unless told."""
    one_line = {"guaranteed", "limit", "lend", "borrow"} & set(told)
    return Queue(
        path=QueuePath(path),
        quotas=(quota_of(told),) if one_line else told.get("quotas", ()),
        weight=told.get("weight", 1),
        priority=told.get("priority", 0),
        max_jobs=told.get("max_jobs"),
    )


def class_of(name: str, told: ClassIs) -> JobClass:
    """A class without rules, unless told."""
    return JobClass(
        name=ClassName(name),
        priority=told.get("priority", 0),
        preempts=tuple(ClassName(other) for other in told.get("preempts", ())),
        preemptible=told.get("preemptible", True),
        preempt_mode=PreemptMode(told.get("mode", "requeue")),
        min_run=Duration(told.get("min_run_minutes", 0) * MINUTE),
        max_time=minutes(told.get("max_minutes")),
        spot_only=told.get("spot_only", False),
        per_user=told.get("per_user", Ceiling()),
        per_queue=told.get("per_queue", Ceiling()),
    )


def _device(node: str, index: int, told: NodesAre) -> Device:
    model = told.get("model", DEFAULT_MODEL)
    gib = told.get("gpu_memory_gib")
    return Device(
        id=DeviceId(f"{node}/{index}"),
        index=index,
        model=GpuModel(model),
        memory_mib=MEMORY_MIB[model] if gib is None else gib * GIB,
        mig=tuple(instance(text) for text in told["mig"]) if "mig" in told else None,
    )
