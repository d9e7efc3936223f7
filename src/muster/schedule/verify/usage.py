"""How much queues use, and how much there is."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from muster.model.amounts import capacity_of, covers, resolved
from muster.model.cluster import Node, NodeState
from muster.model.gpu import Mig
from muster.model.placement import Placement
from muster.model.queue import Amount, Meter, Percent, Scope, lineage
from muster.model.snapshot import Snapshot
from muster.model.value import GpuModel, NodeId, PoolName, QueuePath
from muster.schedule.verify.moments import Holder

EVERYONE = QueuePath("")
"""Stands above all queues."""

Place = tuple[PoolName, GpuModel | None]


class Uses:
    """What each queue itself uses, by the place where it lies.

    Many allocations lie in few places, so scopes are summed over places, not over allocations.
    GPU models and MIG profiles are told apart only if one of the scopes asks for it.
    """

    def __init__(self, nodes: Mapping[NodeId, Node], scopes: Iterable[Scope]) -> None:
        wanted = tuple(scopes)
        self._nodes = nodes
        self._by_model = any(scope.model is not None for scope in wanted)
        self._by_profile = any(scope.meter is Meter.MIG for scope in wanted)
        self._amounts: dict[Place, dict[QueuePath, list[int]]] = defaultdict(_amounts_by_queue)
        self._instances: dict[Place, Counter[tuple[QueuePath, str]]] = defaultdict(Counter)

    def add(self, holders: Iterable[Holder]) -> None:
        """Count what these hold."""
        amounts, by_model, by_profile = self._amounts, self._by_model, self._by_profile
        for job, placements in holders:
            queue = job.spec.queue
            for placement in placements:
                model = model_at(self._nodes, placement) if by_model else None
                amount = placement.amount
                sums = amounts[placement.pool, model][queue]
                sums[0] += amount.gpu_milli
                sums[1] += amount.cpu_milli
                sums[2] += amount.memory_mib
                if by_profile:
                    self._count_instances(queue, placement, model)

    def of(self, scope: Scope) -> dict[QueuePath, int]:
        """What each queue itself uses in the scope."""
        found: dict[QueuePath, int] = defaultdict(int)
        if scope.meter is Meter.MIG:
            for (pool, model), counts in self._instances.items():
                for (queue, profile), count in counts.items():
                    if profile == scope.profile and covers(scope, pool, model):
                        found[queue] += count
            return found
        which = (Meter.GPU, Meter.CPU, Meter.MEMORY).index(scope.meter)
        for (pool, model), by_queue in self._amounts.items():
            if covers(scope, pool, model):
                for queue, sums in by_queue.items():
                    found[queue] += sums[which]
        return found

    def _count_instances(
        self, queue: QueuePath, placement: Placement, model: GpuModel | None
    ) -> None:
        for share in placement.devices:
            if isinstance(share.slice, Mig):
                self._instances[placement.pool, model][queue, share.slice.profile] += 1


class Fleet:
    """What there is in each scope, counted once over nodes that are alike."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._alike: list[tuple[Node, int]] | None = None
        self._capacities: dict[Scope, int] = {}

    def number(self, amount: Amount, scope: Scope) -> int:
        """The amount as a number."""
        if isinstance(amount, Percent):
            return resolved(amount, self.capacity(scope))
        return amount

    def capacity(self, scope: Scope) -> int:
        """Everything the scope has on nodes that are not DOWN."""
        known = self._capacities.get(scope)
        if known is None:
            if self._alike is None:
                self._alike = _alike(self._snapshot)
            known = sum(count * capacity_of(scope, (node,)) for node, count in self._alike)
            self._capacities[scope] = known
        return known


def rolled_up(uses: Mapping[QueuePath, int]) -> dict[QueuePath, int]:
    """What each queue uses together with those below it, and what everyone does."""
    found: dict[QueuePath, int] = defaultdict(int)
    for queue, amount in uses.items():
        found[EVERYONE] += amount
        for path in lineage(queue):
            found[path] += amount
    return found


def model_at(nodes: Mapping[NodeId, Node], placement: Placement) -> GpuModel | None:
    """The model of the placement's GPUs, or of its node's where it has none."""
    node = nodes.get(placement.node)
    if node is None or not node.devices:
        return None
    for share in placement.devices:
        for device in node.devices:
            if device.id == share.device:
                return device.model
    return node.devices[0].model


def _amounts_by_queue() -> dict[QueuePath, list[int]]:
    return defaultdict(lambda: [0, 0, 0])


def _alike(snapshot: Snapshot) -> list[tuple[Node, int]]:
    """One node of each sort that is not DOWN, and how many there are of it."""
    examples: dict[tuple[object, ...], Node] = {}
    counts: Counter[tuple[object, ...]] = Counter()
    for node in snapshot.nodes.values():
        if node.state is NodeState.DOWN:
            continue
        models = tuple([device.model for device in node.devices])
        sort = (node.pool, node.cpu_milli, node.memory_mib, models)
        counts[sort] += 1
        examples.setdefault(sort, node)
    return [(examples[sort], count) for sort, count in counts.items()]
