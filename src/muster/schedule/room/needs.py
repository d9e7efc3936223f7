"""What one task of a group needs, and where it may go. Equal needs are one object."""

from typing import NamedTuple

from muster.model.cluster import Ability
from muster.model.gpu import GpuAsk, Slice
from muster.model.job import Ask, JobSpec, Spot, TaskGroup, Where
from muster.model.value import ClusterName, GpuModel, PoolName, Value
from muster.schedule.room.profiles import Family, GpuNeed, family_of

MOST_TASKS = 1 << 20
"""More tasks than any node is asked to hold."""

Tier = tuple[int, int, int, int, str]
"""Where to look first: place among named pools and clusters, price, cluster order and name."""


class Offer(NamedTuple):
    """What a kind of node offers a need: how early it is tried, what it takes of which model."""

    tier: Tier
    penalty: int
    gpus: tuple[GpuNeed | None, ...]


class PoolOption(NamedTuple):
    """One pool and one GPU model: where all tasks of a group may go together."""

    pool: PoolName
    gpus: GpuNeed | None


class Need(Value, cache_hash=True):
    """One task's need. What is found out about it is kept in the catalogue and the ledger."""

    each: Ask
    where: Where
    pools: tuple[PoolName, ...]
    clusters: tuple[ClusterName, ...]
    spot: Spot
    barred: tuple[PoolName, ...]
    reservation: str | None
    takes: tuple[Ability, ...]
    # These follow from those above; they are asked for too often to be worked out each time.
    cpu_milli: int
    memory_mib: int
    gpus: GpuAsk | None
    family: Family
    gpu_milli: int
    is_picky: bool


class Needs:
    """All needs met so far."""

    def __init__(self) -> None:
        self._needs: dict[tuple[object, ...], Need] = {}
        self._gpus: dict[tuple[int, Slice | None, GpuModel, int, bool], GpuNeed] = {}

    def of(
        self, group: TaskGroup, spec: JobSpec, spot: Spot, barred: tuple[PoolName, ...] = ()
    ) -> Need:
        """The need of each task of this group; `barred` pools do not let the job in."""
        where = (group.where, spec.pools, spec.clusters)
        key = (group.each, *where, spot, barred, spec.reservation, spec.takes)
        known = self._needs.get(key)
        if known is None:
            known = self._needs[key] = _need(group, spec, spot, barred)
        return known

    def gpu(self, gpus: GpuAsk, model: GpuModel, *, may_cut: bool) -> GpuNeed:
        """The need for GPUs of this model."""
        key = (gpus.count, gpus.slice, model, gpus.min_memory_mib, may_cut)
        known = self._gpus.get(key)
        if known is None:
            known = self._gpus[key] = GpuNeed(
                gpus.count, gpus.slice, model, memory_mib=gpus.min_memory_mib, may_cut=may_cut
            )
        return known


def _need(group: TaskGroup, spec: JobSpec, spot: Spot, barred: tuple[PoolName, ...]) -> Need:
    each = group.each
    return Need(
        each=each,
        where=group.where,
        pools=spec.pools,
        clusters=spec.clusters,
        spot=spot,
        barred=barred,
        reservation=spec.reservation,
        takes=spec.takes,
        cpu_milli=each.cpu_milli,
        memory_mib=each.memory_mib,
        gpus=each.gpus,
        family=family_of(None if each.gpus is None else each.gpus.slice),
        # At least so much; what a MIG profile comes to depends on the model.
        gpu_milli=least_gpu_milli(each.gpus),
        is_picky=_is_picky(group.where),
    )


def least_gpu_milli(gpus: GpuAsk | None) -> int:
    if gpus is None or family_of(gpus.slice) is Family.MIG:
        return 0
    return Ask(gpus=gpus).amount(None).gpu_milli


def tasks_on_host(need: Need, cpu_milli: int, memory_mib: int) -> int:
    """How many such tasks this much CPU and memory would hold."""
    if cpu_milli < 0 or memory_mib < 0:
        return 0
    fit = need.where.max_per_node or MOST_TASKS
    if need.cpu_milli:
        fit = min(fit, cpu_milli // need.cpu_milli)
    if need.memory_mib:
        fit = min(fit, memory_mib // need.memory_mib)
    return max(0, fit)


def _is_picky(where: Where) -> bool:
    """Does the choice depend on more than the kind of node?"""
    return bool(where.nodes or where.not_nodes or where.near or where.apart or where.exclusive)
