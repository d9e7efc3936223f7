"""Which kinds of node may serve a need at all, and in which order they are tried."""

from muster.model.cluster import Node, Taint
from muster.model.gpu import GpuAsk, Mig
from muster.model.job import NODE_LEVEL, Spot, Together, Toleration
from muster.model.mig import mig_profile
from muster.model.policy import Policy, Preference
from muster.model.value import GpuModel
from muster.schedule.room.index import NodeKind
from muster.schedule.room.needs import Need, Needs, Offer, Tier
from muster.schedule.room.profiles import GpuNeed


def offer(kind: NodeKind, need: Need, needs: Needs, policy: Policy) -> Offer | None:
    """What this kind of node offers, or None if the need may not or cannot go there."""
    if not all(accepts(kind, need) for accepts in FILTERS):
        return None
    gpus = _gpu_needs(kind, need, needs, policy)
    if not gpus:
        return None
    return Offer(_tier(kind, need, policy), _penalty(kind, need), gpus)


def cluster_is_reachable(kind: NodeKind, need: Need) -> bool:
    """An unreachable cluster starts nothing."""
    del need
    return kind.cluster.reachable


def cluster_can_run_it(kind: NodeKind, need: Need) -> bool:
    """Its backend can do what running the job takes."""
    return kind.cluster.abilities.lacking(need.takes) is None


def pool_is_allowed(kind: NodeKind, need: Need) -> bool:
    """Named pools and clusters are kept to; those that are closed, to all or to it, left alone."""
    if not kind.pool.starts or kind.pool.name in need.barred:
        return False
    in_pool = not need.pools or kind.pool.name in need.pools
    in_cluster = not need.clusters or kind.cluster.name in need.clusters
    return in_pool and in_cluster


def spot_is_wanted(kind: NodeKind, need: Need) -> bool:
    """Capacity that can be taken away is for those who said so."""
    match need.spot:
        case Spot.NEVER:
            return not kind.pool.spot
        case Spot.ALLOWED:
            return True
        case Spot.ONLY:
            return kind.pool.spot


def reservation_is_kept_to(kind: NodeKind, need: Need) -> bool:
    """Who asks for a reservation runs inside of it."""
    return need.reservation is None or need.reservation in kind.inside


def labels_are_right(kind: NodeKind, need: Need) -> bool:
    """Every required label rule holds, as far as the label tells kinds of node apart."""
    return all(
        rule.accepts(kind.labels)
        for rule in need.where.require
        if rule.key not in kind.private_labels
    )


def taints_are_tolerated(kind: NodeKind, need: Need) -> bool:
    """Every taint finds a toleration."""
    return all(is_tolerated(taint, need.where.tolerate) for taint in kind.taints)


FILTERS = (
    cluster_is_reachable,
    cluster_can_run_it,
    pool_is_allowed,
    spot_is_wanted,
    reservation_is_kept_to,
    labels_are_right,
    taints_are_tolerated,
)


def domain_of(node: Node, together: Together | None, levels: tuple[str, ...]) -> tuple[str, ...]:
    """Where tasks must stay together: one node, one domain of the level required, or anywhere."""
    if together is None or not together.required:
        return ()
    if together.level == NODE_LEVEL or together.level not in levels:
        return (node.id,)
    return node.where[: levels.index(together.level) + 1]


def is_tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    """Does one of these accept the taint?"""
    return any(
        accepted.key in (None, taint.key) and accepted.value in (None, taint.value)
        for accepted in tolerations
    )


def _gpu_needs(
    kind: NodeKind, need: Need, needs: Needs, policy: Policy
) -> tuple[GpuNeed | None, ...]:
    """What would be taken of each model here; one None for a need without GPUs."""
    if need.gpus is None:
        return (None,)
    if not kind.cluster.abilities.serves(need.gpus.slice):
        return ()
    may_cut = policy.repartition and kind.cluster.abilities.repartition
    return tuple(
        needs.gpu(need.gpus, model, may_cut=may_cut)
        for model in kind.models
        if _model_suits(model, need.gpus)
    )


def _model_suits(model: GpuModel, gpus: GpuAsk) -> bool:
    if gpus.models and model not in gpus.models:
        return False
    part = gpus.slice
    return not isinstance(part, Mig) or mig_profile(model, part.profile) is not None


def _tier(kind: NodeKind, need: Need, policy: Policy) -> Tier:
    pool_place = need.pools.index(kind.pool.name) if need.pools else 0
    cluster_place = need.clusters.index(kind.cluster.name) if need.clusters else 0
    price = kind.pool.gpu_hour_micros if policy.prefer is Preference.PRICE else 0
    return (pool_place, cluster_place, price, kind.cluster.order, kind.cluster.name)


def _penalty(kind: NodeKind, need: Need) -> int:
    rules = (rule for rule in need.where.prefer if rule.key not in kind.private_labels)
    return sum(not rule.accepts(kind.labels) for rule in rules)
