"""How much queues use."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from muster.model.amounts import covers
from muster.model.cluster import Node
from muster.model.gpu import Mig
from muster.model.placement import Placement
from muster.model.queue import Meter, Scope, lineage
from muster.model.value import GpuModel, NodeId, PoolName, QueuePath
from muster.schedule.verify.census import Census, Holder, gpu_use_of
from muster.schedule.verify.register import GpuUse

EVERYONE = QueuePath("")
"""Stands above all queues."""

Place = tuple[PoolName, GpuModel | None]

Rolled = dict[QueuePath, int]
"""What each queue uses together with those below it, and what everyone does."""


class Asked:
    """The scopes in which use is counted, and for each the queues whose use matters.

    What lies below these matters as well.
    """

    def __init__(
        self, nodes: Mapping[NodeId, Node], whose: Mapping[Scope, Iterable[QueuePath]]
    ) -> None:
        special = [scope for scope in whose if not is_plain(scope)]
        self.nodes = nodes
        self.by_model = any(scope.model is not None for scope in special)
        self.by_profile = any(scope.meter is Meter.MIG for scope in special)
        self._whose = {path for scope in special for path in whose[scope]}

    def among(self, queues: Iterable[QueuePath]) -> set[QueuePath]:
        """The queues of which more must be known than plain scopes ask for."""
        whose = self._whose
        return {queue for queue in set(queues) if not whose.isdisjoint(line_of(queue))}


class Uses:
    """What each queue itself uses, by the place where it lies.

    Many allocations lie in few places, so scopes are summed over places, not over allocations.
    GPU of any model is what nearly all scopes ask for, and it is known for everyone.
    The rest is counted only where it matters, and models and profiles are distinguished
    only if one of the scopes asks for it.
    """

    def __init__(self, asked: Asked, gpu_use: GpuUse) -> None:
        self._asked = asked
        self._gpu_use = gpu_use
        self._amounts: dict[Place, dict[QueuePath, list[int]]] = defaultdict(_amounts_by_queue)
        self._instances: dict[Place, Counter[tuple[QueuePath, str]]] = defaultdict(Counter)

    def of(self, scope: Scope) -> dict[QueuePath, int]:
        """What each queue itself uses in the scope."""
        found: dict[QueuePath, int] = defaultdict(int)
        for queue, amount in self._parts(scope):
            found[queue] += amount
        return found

    def count(self, queue: QueuePath, placements: Iterable[Placement]) -> None:
        """Count what plain scopes do not ask for."""
        by_model, by_profile = self._asked.by_model, self._asked.by_profile
        for placement in placements:
            model = model_at(self._asked.nodes, placement) if by_model else None
            amount = placement.amount
            sums = self._amounts[placement.pool, model][queue]
            sums[0] += amount.gpu_milli
            sums[1] += amount.cpu_milli
            sums[2] += amount.memory_mib
            for share in placement.devices if by_profile else ():
                if isinstance(share.slice, Mig):
                    self._instances[placement.pool, model][queue, share.slice.profile] += 1

    def _parts(self, scope: Scope) -> Iterator[tuple[QueuePath, int]]:
        if is_plain(scope):
            for pool, by_queue in self._gpu_use.items():
                if scope.pool is None or scope.pool == pool:
                    yield from by_queue.items()
        elif scope.meter is Meter.MIG:
            yield from self._instances_in(scope)
        else:
            which = (Meter.GPU, Meter.CPU, Meter.MEMORY).index(scope.meter)
            for (pool, model), sums_by_queue in self._amounts.items():
                if covers(scope, pool, model):
                    yield from ((queue, sums[which]) for queue, sums in sums_by_queue.items())

    def _instances_in(self, scope: Scope) -> Iterator[tuple[QueuePath, int]]:
        for (pool, model), counts in self._instances.items():
            if covers(scope, pool, model):
                for (queue, profile), count in counts.items():
                    if profile == scope.profile:
                        yield queue, count


def use_by(
    asked: Asked,
    queues: Sequence[QueuePath],
    held: Sequence[tuple[Placement, ...]],
) -> Uses:
    """What jobs of these queues use, each of which holds what stands beside its queue."""
    uses = Uses(asked, gpu_use_of(queues, held))
    among = asked.among(queues)
    for number in [number for number, queue in enumerate(queues) if queue in among]:
        uses.count(queues[number], held[number])
    return uses


def use_by_staying(asked: Asked, staying: Census) -> Uses:
    """What those use who stay."""
    uses = Uses(asked, staying.gpu_use)
    for job, placements in staying.of(asked.among(staying.queues)):
        uses.count(job.spec.queue, placements)
    return uses


def use_by_holders(asked: Asked, holders: Sequence[Holder]) -> Uses:
    """What these use."""
    queues = [job.spec.queue for job, _ in holders]
    return use_by(asked, queues, [placements for _, placements in holders])


def is_plain(scope: Scope) -> bool:
    """Does the scope count GPU of any model?"""
    return scope.meter is Meter.GPU and scope.model is None


@lru_cache(maxsize=100_000)
def line_of(queue: QueuePath) -> tuple[QueuePath, ...]:
    """The queue, its ancestors, and everyone."""
    return (*lineage(queue), EVERYONE)


def rolled_up(uses: Mapping[QueuePath, int]) -> Rolled:
    """Add what each queue itself uses to all that stand above it."""
    found: Rolled = defaultdict(int)
    for queue, amount in uses.items():
        for path in line_of(queue):
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
