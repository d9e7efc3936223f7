"""What one task of a group needs, and where it may go. Equal needs are one object."""

from typing import TYPE_CHECKING, NamedTuple

from muster.model.gpu import GpuAsk, Slice
from muster.model.job import Ask, JobSpec, Spot, TaskGroup, Where
from muster.model.resources import Resources
from muster.model.value import ClusterName, GpuModel, PoolName
from muster.schedule.room.profiles import Family, GpuNeed, family_of

if TYPE_CHECKING:
    from muster.schedule.room.find import Finder
    from muster.schedule.room.gang import Table
    from muster.schedule.room.index import Kind

MOST_TASKS = 1 << 20
"""More tasks than any node is asked to hold."""

Shut = frozenset["Kind"]
"""Kinds of node that are closed to a job for the time it takes; usually none."""

Tier = tuple[int, int, int, int, str]
"""Where to look first: place among named pools and clusters, price, cluster order and name."""


class Offer(NamedTuple):
    """What a kind of node offers a need: how early it is tried, what it takes of which model."""

    tier: Tier
    penalty: int
    gpus: tuple[GpuNeed | None, ...]


class Option(NamedTuple):
    """One pool and one GPU model: where all tasks of a group may go together."""

    pool: PoolName
    gpus: GpuNeed | None


class NeedKey(NamedTuple):
    """What makes two needs the same."""

    each: Ask
    where: Where
    pools: tuple[PoolName, ...]
    clusters: tuple[ClusterName, ...]
    spot: Spot
    barred: tuple[PoolName, ...]
    reservation: str | None


class Need:
    """One task's need, and what was found out about it so far."""

    __slots__ = (
        "amounts",
        "at_most",
        "barred",
        "cluster_order",
        "clusters",
        "cpu_milli",
        "each",
        "family",
        "finders",
        "gpu_milli",
        "gpus",
        "is_picky",
        "kinds_seen",
        "memory_mib",
        "offers",
        "options",
        "pools",
        "reservation",
        "spot",
        "tables",
        "tiers",
        "usable",
        "where",
    )

    def __init__(self, key: NeedKey) -> None:
        self.each = key.each
        self.cpu_milli = key.each.cpu_milli
        self.memory_mib = key.each.memory_mib
        self.gpus: GpuAsk | None = key.each.gpus
        self.family = family_of(None if self.gpus is None else self.gpus.slice)
        # At least so much; what a MIG profile comes to hangs on the model.
        self.gpu_milli = least_gpu_milli(self.gpus)
        self.where = key.where
        self.pools = key.pools
        self.barred = key.barred
        self.reservation = key.reservation
        self.clusters = key.clusters
        self.spot = key.spot
        self.is_picky = _is_picky(key.where)
        self.offers: dict[Kind, Offer | None] = {}
        self.finders: dict[tuple[Tier, Shut], Finder] = {}
        self.tables: dict[tuple[Option, Shut], Table] = {}
        self.amounts: dict[GpuNeed | None, Resources] = {}
        self.tiers: list[Tier] = []
        self.options: dict[Tier, list[Option]] = {}
        self.cluster_order: list[ClusterName] = []
        self.kinds_seen = 0
        # How many nodes are up that it may go to, and as of which version of the nodes.
        self.usable: tuple[int, int] = (-1, 0)
        self.at_most: tuple[int, int] = (-1, 0)

    def amount(self, gpus: GpuNeed | None) -> Resources:
        """What one task comes to on the model that was settled."""
        known = self.amounts.get(gpus)
        if known is None:
            known = self.amounts[gpus] = self.each.amount(None if gpus is None else gpus.model)
        return known


class Needs:
    """All needs met so far."""

    def __init__(self) -> None:
        self._needs: dict[NeedKey, Need] = {}
        self._gpus: dict[tuple[int, Slice | None, GpuModel, int, bool], GpuNeed] = {}

    def of(
        self, group: TaskGroup, spec: JobSpec, spot: Spot, barred: tuple[PoolName, ...] = ()
    ) -> Need:
        """The need of each task of this group; `barred` pools do not let the job in."""
        where = (group.where, spec.pools, spec.clusters)
        key = NeedKey(group.each, *where, spot, barred, spec.reservation)
        known = self._needs.get(key)
        if known is None:
            known = self._needs[key] = Need(key)
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
    """Does the choice hang on more than the kind of node?"""
    return bool(where.nodes or where.not_nodes or where.near or where.apart or where.exclusive)
