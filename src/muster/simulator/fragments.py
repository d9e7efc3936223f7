"""How much of the free GPU is of no use: what no usual task could take where it lies.

For one kind of task, a node's free GPU is of no use where the task does not fit; where it fits,
only devices with less left than the task takes of one are. The measure is the mean over the kinds
of tasks that come, each as often as it comes (as in "fragmentation gradient descent", ATC 2023).
"""

from collections import Counter
from collections.abc import Iterable

from muster.model.cluster import Node, NodeState
from muster.model.gpu import WHOLE_GPU_MILLI
from muster.model.job import Ask, JobSpec
from muster.model.placement import Placement
from muster.model.snapshot import UsualAsk
from muster.model.value import DeviceId, NodeId

KINDS = 16
"""So many kinds of tasks, the most frequent ones, stand for all."""


def usual_asks(specs: Iterable[JobSpec], kinds: int = KINDS) -> tuple[UsualAsk, ...]:
    """What these jobs ask for most often, of all tasks that want GPUs."""
    counts: Counter[Ask] = Counter()
    for spec in specs:
        for group in spec.groups:
            if group.each.gpus is not None:
                counts[group.each] += group.count
    often = sorted(counts.items(), key=lambda item: (-item[1], repr(item[0])))
    return tuple(UsualAsk(each=each, count=count) for each, count in often[:kinds])


class _TaskKind:
    """A kind of task, and its part of all tasks."""

    __slots__ = ("count", "cpu_milli", "memory_mib", "milli", "models", "part")

    def __init__(self, usual: UsualAsk, total: int) -> None:
        gpus = usual.each.gpus
        self.count = 0 if gpus is None else gpus.count
        self.cpu_milli = usual.each.cpu_milli
        self.memory_mib = usual.each.memory_mib
        milli = usual.each.amount(None).gpu_milli
        self.milli = milli // self.count if self.count else 0
        self.models = frozenset(() if gpus is None else gpus.models)
        self.part = usual.count / total


class _FreeRoom:
    """What is free on one node."""

    __slots__ = ("cpu_milli", "fragment", "free", "is_up", "memory_mib", "models")

    def __init__(self, node: Node) -> None:
        self.cpu_milli = node.cpu_milli
        self.memory_mib = node.memory_mib
        self.free: dict[DeviceId, int] = {each.id: WHOLE_GPU_MILLI for each in node.devices}
        self.models = frozenset(each.model for each in node.devices)
        self.is_up = node.state is NodeState.UP
        self.fragment = 0.0


class Fragments:
    """The free GPU of all nodes that are up, and how much of it is of no use."""

    def __init__(self, usual: tuple[UsualAsk, ...]) -> None:
        total = sum(each.count for each in usual)
        self._kinds = [_TaskKind(each, total) for each in usual]
        self._rooms: dict[NodeId, _FreeRoom] = {}
        self.milli = 0.0

    def see(self, node: Node) -> None:
        """A node is there, or is now in another state."""
        room = self._rooms.get(node.id)
        if room is None:
            room = self._rooms[node.id] = _FreeRoom(node)
        room.is_up = node.state is NodeState.UP
        self._measure(room)

    def take(self, placements: Iterable[Placement]) -> None:
        """These tasks hold what they were given."""
        self._change(placements, 1)

    def give_back(self, placements: Iterable[Placement]) -> None:
        """These tasks hold it no more."""
        self._change(placements, -1)

    def _change(self, placements: Iterable[Placement], sign: int) -> None:
        touched: dict[NodeId, _FreeRoom] = {}
        for placed in placements:
            room = self._rooms.get(placed.node)
            if room is None:
                continue
            touched[placed.node] = room
            amount = placed.amount
            room.cpu_milli -= sign * amount.cpu_milli
            room.memory_mib -= sign * amount.memory_mib
            if placed.devices:
                each = sign * (amount.gpu_milli // len(placed.devices))
                for share in placed.devices:
                    room.free[share.device] = room.free.get(share.device, 0) - each
        for room in touched.values():
            self._measure(room)

    def _measure(self, room: _FreeRoom) -> None:
        self.milli -= room.fragment
        room.fragment = _fragment(room, self._kinds) if room.is_up else 0.0
        self.milli += room.fragment


def _fragment(room: _FreeRoom, kinds: list[_TaskKind]) -> float:
    """The free GPU of a node that is of no use, in thousandths."""
    free = [each for each in room.free.values() if each > 0]
    if not free:
        return 0.0
    whole = sum(free)
    lost = 0.0
    for kind in kinds:
        fitting = [each for each in free if each >= kind.milli]
        fits = (
            len(fitting) >= kind.count
            and room.cpu_milli >= kind.cpu_milli
            and room.memory_mib >= kind.memory_mib
            and (not kind.models or not kind.models.isdisjoint(room.models))
        )
        lost += kind.part * (whole - sum(fitting) if fits else whole)
    return lost
