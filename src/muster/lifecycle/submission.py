"""A request beside the world it comes into, and the kinds of nodes each group could run on."""

from collections.abc import Iterator

from muster.model.amounts import covers
from muster.model.cluster import Node, Pool
from muster.model.gpu import Mig
from muster.model.job import JobSpec, Spot, TaskGroup, gpu_milli
from muster.model.mig import mig_profile
from muster.model.queue import JobClass, Meter, Queue, Scope, lineage
from muster.model.snapshot import Snapshot
from muster.model.value import GpuModel, PoolName, QueuePath, Value


class NodeKind(Value):
    """The nodes of one pool; with a model, those that have such GPUs, else all of them."""

    pool: Pool
    model: GpuModel | None
    nodes: tuple[Node, ...]


class Submission(Value):
    """What the rules of admission look at. `kinds` are those of all pools, used or not.

    `queues` are the job's own and its ancestors, nearest first; `pools` are those it may use.
    """

    spec: JobSpec
    snapshot: Snapshot
    kinds: tuple[NodeKind, ...]
    queues: tuple[Queue, ...]
    pools: tuple[Pool, ...]

    @property
    def job_class(self) -> JobClass | None:
        """The class, if it exists."""
        return self.snapshot.classes.get(self.spec.job_class)


def submission(spec: JobSpec, snapshot: Snapshot, kinds: tuple[NodeKind, ...]) -> Submission:
    """The request beside the world."""
    return Submission(
        spec=spec,
        snapshot=snapshot,
        kinds=kinds,
        queues=queues_above(snapshot, spec.queue),
        pools=usable_pools(spec, snapshot),
    )


def kinds_of(snapshot: Snapshot) -> tuple[NodeKind, ...]:
    """The kinds of nodes there are, by pool and model."""
    return tuple(_kinds(snapshot))


def queues_above(snapshot: Snapshot, path: QueuePath) -> tuple[Queue, ...]:
    """The queue of this path and its ancestors, as far as they exist, nearest first."""
    return tuple(snapshot.queues[each] for each in lineage(path) if each in snapshot.queues)


def usable_pools(spec: JobSpec, snapshot: Snapshot) -> tuple[Pool, ...]:
    """The pools that let the job in and that its names and spot rule leave, by their names."""
    pools = snapshot.pools
    named = {name for name in spec.pools if name in pools} if spec.pools else pools
    return tuple(
        pools[name]
        for name in sorted(named)
        if pools[name].accepts
        and pools[name].lets_in(spec.user, spec.queue, spec.job_class)
        and (not spec.clusters or pools[name].cluster in spec.clusters)
        and _spot_agrees(spec, snapshot, pools[name])
    )


def is_spot_only(spec: JobSpec, snapshot: Snapshot) -> bool:
    """Must it run on spot capacity? The class decides before the job."""
    job_class = snapshot.classes.get(spec.job_class)
    return spec.spot is Spot.ONLY or (job_class is not None and job_class.spot_only)


def options(asked: Submission, group: TaskGroup) -> tuple[NodeKind, ...]:
    """The kinds of nodes that a group of the job could run on, were they empty and large."""
    pools = {pool.name for pool in asked.pools}
    return tuple(
        kind
        for kind in asked.kinds
        if kind.pool.name in pools
        and _suits(kind, group, asked.snapshot)
        and _can_run(kind, asked.spec, asked.snapshot)
    )


def amount_in(scope: Scope, group: TaskGroup, kind: NodeKind, tasks: int) -> int:
    """How much of the scope so many tasks of the group take on nodes of this kind."""
    if not covers(scope, kind.pool.name, kind.model):
        return 0
    match scope.meter:
        case Meter.GPU:
            return tasks * gpu_milli(group.each.gpus, kind.model)
        case Meter.CPU:
            return tasks * group.each.cpu_milli
        case Meter.MEMORY:
            return tasks * group.each.memory_mib
        case Meter.MIG:
            return tasks * _instances(group, scope.profile)


def _kinds(snapshot: Snapshot) -> Iterator[NodeKind]:
    found: dict[tuple[PoolName, GpuModel | None], list[Node]] = {}
    for _, node in sorted(snapshot.nodes.items()):
        for model in {None, *(device.model for device in node.devices)}:
            found.setdefault((node.pool, model), []).append(node)
    by_name = sorted(found.items(), key=lambda each: (each[0][0], each[0][1] or ""))
    for (pool, model), nodes in by_name:
        if pool in snapshot.pools:
            yield NodeKind(pool=snapshot.pools[pool], model=model, nodes=tuple(nodes))


def _spot_agrees(spec: JobSpec, snapshot: Snapshot, pool: Pool) -> bool:
    if is_spot_only(spec, snapshot):
        return pool.spot
    return not pool.spot or spec.spot is Spot.ALLOWED


def _suits(kind: NodeKind, group: TaskGroup, snapshot: Snapshot) -> bool:
    gpus = group.each.gpus
    if gpus is None or kind.model is None:
        return gpus is None and kind.model is None
    if gpus.models and kind.model not in gpus.models:
        return False
    if isinstance(gpus.slice, Mig) and mig_profile(kind.model, gpus.slice.profile) is None:
        return False
    cluster = snapshot.clusters.get(kind.pool.cluster)
    return cluster is not None and cluster.abilities.serves(gpus.slice)


def _can_run(kind: NodeKind, spec: JobSpec, snapshot: Snapshot) -> bool:
    cluster = snapshot.clusters.get(kind.pool.cluster)
    return cluster is None or cluster.abilities.lacking(spec.takes) is None


def _instances(group: TaskGroup, profile: str | None) -> int:
    gpus = group.each.gpus
    if gpus is None or not isinstance(gpus.slice, Mig) or gpus.slice.profile != profile:
        return 0
    return gpus.count
