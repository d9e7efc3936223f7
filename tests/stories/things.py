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
    """What is special about some nodes. parts: into so many their engine has split each GPU."""

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
    parts: int
    parts_by_mps: bool


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


def cluster_of(name: str, fields: ClusterIs) -> Cluster:
    """A cluster that can do everything, unless given."""
    return Cluster(
        name=ClusterName(name),
        order=fields.get("order", 0),
        reachable=fields.get("reachable", True),
        abilities=fields.get("abilities", Abilities()),
    )


def pool_of(name: str, fields: PoolIs) -> Pool:
    """A pool in zones and racks, unless given."""
    return Pool(
        name=PoolName(name),
        cluster=ClusterName(fields.get("cluster", "c")),
        levels=fields.get("levels", ("zone", "rack")),
        default_time=minutes(fields.get("default_minutes")),
        max_time=minutes(fields.get("max_minutes")),
        spot=fields.get("spot", False),
        gpu_hour_micros=fields.get("price", 0) * 1_000_000,
        starts=fields.get("starts", True),
        users=tuple(map(UserName, fields.get("users", ()))),
        queues=tuple(map(QueuePath, fields.get("queues", ()))),
    )


def node_of(name: str, pool: Pool, fields: NodesAre) -> Node:
    """A node with 8 A100, 64 cores and 512 GiB in the first rack, unless given."""
    return Node(
        id=NodeId(name),
        cluster=pool.cluster,
        pool=pool.name,
        cpu_milli=fields.get("cpu", 64) * 1_000,
        memory_mib=fields.get("memory_gib", 512) * GIB,
        devices=tuple(_device(name, index, fields) for index in range(fields.get("gpus", 8))),
        where=fields.get("where", tuple(f"{level}1" for level in pool.levels)),
        labels=fields.get("labels", {}),
        taints=tuple(taint(text) for text in fields.get("taints", ())),
    )


def queue_of(path: str, fields: QueueIs) -> Queue:
    """A queue that owns nothing and may have everything, unless given."""
    one_line = {"guaranteed", "limit", "lend", "borrow"} & set(fields)
    return Queue(
        path=QueuePath(path),
        quotas=(quota_of(fields),) if one_line else fields.get("quotas", ()),
        weight=fields.get("weight", 1),
        priority=fields.get("priority", 0),
        max_jobs=fields.get("max_jobs"),
    )


def class_of(name: str, fields: ClassIs) -> JobClass:
    """A class without rules, unless given."""
    return JobClass(
        name=ClassName(name),
        priority=fields.get("priority", 0),
        preempts=tuple(ClassName(other) for other in fields.get("preempts", ())),
        preemptible=fields.get("preemptible", True),
        preempt_mode=PreemptMode(fields.get("mode", "requeue")),
        min_run=Duration(fields.get("min_run_minutes", 0) * MINUTE),
        max_time=minutes(fields.get("max_minutes")),
        spot_only=fields.get("spot_only", False),
        per_user=fields.get("per_user", Ceiling()),
        per_queue=fields.get("per_queue", Ceiling()),
    )


def _device(node: str, index: int, fields: NodesAre) -> Device:
    model = fields.get("model", DEFAULT_MODEL)
    gib = fields.get("gpu_memory_gib")
    return Device(
        id=DeviceId(f"{node}/{index}"),
        index=index,
        model=GpuModel(model),
        memory_mib=MEMORY_MIB[model] if gib is None else gib * GIB,
        mig=tuple(instance(text) for text in fields["mig"]) if "mig" in fields else None,
        turns=fields.get("parts"),
        mps=fields.get("parts_by_mps", "parts" not in fields),
        split="parts" in fields,
    )
