"""How much queues use."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from muster.model.amounts import covers
from muster.model.cluster import Node
from muster.model.gpu import Mig
from muster.model.placement import Placement
from muster.model.queue import Meter, Scope, lineage
from muster.model.value import GpuModel, NodeId, PoolName, QueuePath
from muster.schedule.verify.census import Census, GpuUse, Holder, gpu_use_of

EVERYONE = QueuePath("")
"""Stands above all queues."""

Place = tuple[PoolName, GpuModel | None]


class Below(dict[QueuePath, bool]):
    """Is a queue one of these, or below one of them? Found out when it is first asked."""

    def __init__(self, paths: set[QueuePath]) -> None:
        super().__init__()
        self._paths = paths

    def __missing__(self, queue: QueuePath) -> bool:
        found = not self._paths.isdisjoint((*lineage(queue), EVERYONE))
        self[queue] = found
        return found


class Asked:
    """The scopes in which use is counted, and for each the queues whose use matters.

    What lies below these matters as well, and everyone's where EVERYONE is among them.
    """

    def __init__(self, whose: Mapping[Scope, Iterable[QueuePath]]) -> None:
        special = [scope for scope in whose if not is_plain(scope)]
        self.by_model = any(scope.model is not None for scope in special)
        self.by_profile = any(scope.meter is Meter.MIG for scope in special)
        self.below = Below({path for scope in special for path in whose[scope]})
        self.has_special = bool(special)


class Uses:
    """What each queue itself uses, by the place where it lies.

    Many allocations lie in few places, so scopes are summed over places, not over allocations.
    GPU in a pool, or anywhere, is what nearly all scopes ask for, and it is known for everyone.
    The rest is counted only where it matters, and models and profiles are told apart
    only if one of the scopes asks for it.
    """

    def __init__(self, nodes: Mapping[NodeId, Node], asked: Asked, gpu_use: GpuUse) -> None:
        self._nodes = nodes
        self._asked = asked
        self._gpu_use = gpu_use
        self._amounts: dict[Place, dict[QueuePath, list[int]]] = defaultdict(_amounts_by_queue)
        self._instances: dict[Place, Counter[tuple[QueuePath, str]]] = defaultdict(Counter)

    def of(self, scope: Scope) -> dict[QueuePath, int]:
        """What each queue itself uses in the scope."""
        found: dict[QueuePath, int] = defaultdict(int)
        if is_plain(scope):
            for pool, by_queue in self._gpu_use.items():
                if scope.pool is None or scope.pool == pool:
                    for queue, gpu_milli in by_queue.items():
                        found[queue] += gpu_milli
        elif scope.meter is Meter.MIG:
            for (pool, model), counts in self._instances.items():
                for (queue, profile), count in counts.items():
                    if profile == scope.profile and covers(scope, pool, model):
                        found[queue] += count
        else:
            which = (Meter.GPU, Meter.CPU, Meter.MEMORY).index(scope.meter)
            for (pool, model), sums_by_queue in self._amounts.items():
                if covers(scope, pool, model):
                    for queue, sums in sums_by_queue.items():
                        found[queue] += sums[which]
        return found

    def count(self, queues: Iterable[QueuePath], held: Iterable[tuple[Placement, ...]]) -> None:
        """Count what plain scopes do not ask for, where it matters: queues and what they hold."""
        below = self._asked.below
        for queue, placements in zip(queues, held, strict=True):
            if below[queue]:
                self._count(queue, placements)

    def _count(self, queue: QueuePath, placements: tuple[Placement, ...]) -> None:
        by_model, by_profile = self._asked.by_model, self._asked.by_profile
        for placement in placements:
            model = model_at(self._nodes, placement) if by_model else None
            amount = placement.amount
            sums = self._amounts[placement.pool, model][queue]
            sums[0] += amount.gpu_milli
            sums[1] += amount.cpu_milli
            sums[2] += amount.memory_mib
            for share in placement.devices if by_profile else ():
                if isinstance(share.slice, Mig):
                    self._instances[placement.pool, model][queue, share.slice.profile] += 1


def use_by(nodes: Mapping[NodeId, Node], asked: Asked, holders: Iterable[Holder]) -> Uses:
    """What these use."""
    all_of_them = list(holders)
    uses = Uses(nodes, asked, gpu_use_of(all_of_them))
    if asked.has_special:
        queues = [job.spec.queue for job, _ in all_of_them]
        uses.count(queues, [placements for _, placements in all_of_them])
    return uses


def use_by_staying(nodes: Mapping[NodeId, Node], asked: Asked, staying: Census) -> Uses:
    """What those use who stay, most of which was counted when they were looked at."""
    uses = Uses(nodes, asked, staying.gpu_use)
    if asked.has_special:
        uses.count(staying.queues, staying.held)
    return uses


def is_plain(scope: Scope) -> bool:
    """Does the scope count GPU, of any model?"""
    return scope.meter is Meter.GPU and scope.model is None


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
