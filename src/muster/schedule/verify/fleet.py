"""How much there is."""

from collections import Counter

from muster.model.amounts import capacity_of, resolved
from muster.model.cluster import Node, NodeState
from muster.model.queue import Amount, Meter, Percent, Scope
from muster.model.snapshot import Snapshot
from muster.model.value import GpuModel


class Fleet:
    """What there is in each scope, counted once over nodes that are alike."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._alike: dict[bool, list[tuple[Node, int]]] = {}
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
            by_model = scope.model is not None or scope.meter is Meter.MIG
            if by_model not in self._alike:
                self._alike[by_model] = _alike(self._snapshot, by_model=by_model)
            alike = self._alike[by_model]
            known = sum(count * capacity_of(scope, (node,)) for node, count in alike)
            self._capacities[scope] = known
        return known


def _alike(snapshot: Snapshot, *, by_model: bool) -> list[tuple[Node, int]]:
    """One node of each sort that is not DOWN, and how many there are of it.

    Nodes with as many devices are alike to a scope that does not ask for their models.
    """
    nodes = [node for node in snapshot.nodes.values() if node.state is not NodeState.DOWN]
    what = _models if by_model else _count
    sorts = [(node.pool, node.cpu_milli, node.memory_mib, what(node)) for node in nodes]
    examples = dict(zip(sorts, nodes, strict=True))
    return [(examples[sort], count) for sort, count in Counter(sorts).items()]


def _models(node: Node) -> tuple[GpuModel, ...]:
    return tuple([device.model for device in node.devices])


def _count(node: Node) -> int:
    return len(node.devices)
