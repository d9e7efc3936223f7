"""Quota arithmetic: what a scope counts, what it has in all, and what a percentage comes to."""

from collections.abc import Iterable

from muster.model.cluster import Node, NodeState
from muster.model.gpu import WHOLE_GPU_MILLI, Mig
from muster.model.mig import mig_profile
from muster.model.placement import Placement
from muster.model.queue import Amount, Meter, Percent, Quota, Scope
from muster.model.value import GpuModel, PoolName


def resolved(amount: Amount, capacity: int) -> int:
    """The amount as a number; a percentage rounds down, so that parts never exceed the whole."""
    if isinstance(amount, Percent):
        return capacity * amount.percent // 100
    return amount


def ceiling(quota: Quota, capacity: int) -> int | None:
    """The most that may ever be held under this line, lent or not; None sets no bound."""
    bounds: list[int] = []
    if quota.limit is not None:
        bounds.append(resolved(quota.limit, capacity))
    if quota.borrow_limit is not None:
        guaranteed = resolved(quota.guaranteed, capacity)
        bounds.append(guaranteed + resolved(quota.borrow_limit, capacity))
    return min(bounds, default=None)


def covers(scope: Scope, pool: PoolName, model: GpuModel | None) -> bool:
    """Does the scope count what lies in this pool, on nodes (or GPUs) of this model?"""
    return (scope.pool is None or scope.pool == pool) and (
        scope.model is None or scope.model == model
    )


def capacity_of(scope: Scope, nodes: Iterable[Node]) -> int:
    """Everything the scope has on nodes that are not DOWN, in the unit of its meter.

    Unhealthy devices count: a quota must not shrink each time a GPU needs a reset.
    """
    return sum(_capacity_on(scope, node) for node in nodes if node.state is not NodeState.DOWN)


def measured(scope: Scope, placement: Placement, model: GpuModel | None) -> int:
    """How much of the scope this placement, on a node with this model, takes."""
    if not covers(scope, placement.pool, model):
        return 0
    match scope.meter:
        case Meter.GPU:
            return placement.amount.gpu_milli
        case Meter.CPU:
            return placement.amount.cpu_milli
        case Meter.MEMORY:
            return placement.amount.memory_mib
        case Meter.MIG:
            slices = (share.slice for share in placement.devices)
            return sum(isinstance(s, Mig) and s.profile == scope.profile for s in slices)


def most_instances(model: GpuModel, profile: str) -> int:
    """How many MIG instances of the profile one device of this model can have at once."""
    found = mig_profile(model, profile)
    return 0 if found is None else found.at_most


def _capacity_on(scope: Scope, node: Node) -> int:
    models = [device.model for device in node.devices if covers(scope, node.pool, device.model)]
    match scope.meter:
        case Meter.GPU:
            return WHOLE_GPU_MILLI * len(models)
        case Meter.MIG:
            return sum(most_instances(model, scope.profile or "") for model in models)
        case Meter.CPU:
            return node.cpu_milli if models or covers(scope, node.pool, None) else 0
        case Meter.MEMORY:
            return node.memory_mib if models or covers(scope, node.pool, None) else 0
