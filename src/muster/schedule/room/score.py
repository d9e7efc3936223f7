"""Which of the nodes that fit is best: the one whose remains are most useful to what usually comes.

Fragmentation is counted as in FGD (ATC'23): of what a node has left, how much could a usual task
not use? It is summed over the usual tasks in whole numbers. Two things are added. A task counts the
more, the fewer GPUs there are that it accepts: so scarce models are left to those who need them.
And GPUs for which a node will lack CPU, once it is filled with usual tasks, count as stranded.

The change is looked at in coarse steps, rounded to the nearest: finer differences are noise that
scatters tasks over the cluster. What decides between equals is the balance of CPU to GPU that the
usual tasks need, so that neither runs out first.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from muster.model.cluster import Node
from muster.model.gpu import WHOLE_GPU_MILLI, GpuAsk
from muster.model.job import Ask
from muster.model.snapshot import UsualAsk
from muster.model.value import GpuModel, replace
from muster.schedule.room.profiles import Idle, Profile, less_one
from muster.schedule.room.slices import DeviceState, Use, choices

STEP_MILLI = 20
"""Changes of fragmentation are compared in steps of this much of a GPU."""

CPU_LEVELS = 64
"""At most this many amounts of CPU that usual tasks ask for are distinguished."""

MOST_CPU = 1 << 60
"""More than any node has."""

PLAIN_WEIGHT = 1_000
"""What one usual task that every GPU here could serve, or none, counts."""

GENERIC = tuple(
    UsualAsk(each=Ask(cpu_milli=8_000 * gpus, gpus=GpuAsk(count=gpus)), count=count)
    for gpus, count in ((1, 8), (2, 4), (4, 2), (8, 1))
)
"""What is taken to be usual where nothing is known yet: mostly small, sometimes a whole node."""


Supply = Mapping[tuple[GpuModel, int], int]
"""How many GPUs of which model and memory there are, whether their nodes are up or not."""

NO_SUPPLY: Supply = {}


def supply_of(nodes: Iterable[Node]) -> Supply:
    """All GPUs of these nodes."""
    return Counter((device.model, device.memory_mib) for node in nodes for device in node.devices)


class _Usual(NamedTuple):
    cpu_milli: int
    gpus: GpuAsk
    weight: int


Weighed = tuple[tuple[UsualAsk, int], ...]
"""Usual tasks, and how much each counts."""


class Score:
    """Fragmentation and balance for one set of usual tasks.

    A task that needs one device makes use of every device that can serve it, so what it leaves
    unused is a sum over devices, each worked out once; only tasks that need several whole GPUs
    have to look at the node as a whole.
    """

    def __init__(self, usual: tuple[UsualAsk, ...], supply: Supply = NO_SUPPLY) -> None:
        self._learn(_weighed(usual, supply))

    def follow(self, usual: tuple[UsualAsk, ...], supply: Supply) -> bool:
        """Other tasks are usual now, or other GPUs are there. Does anything count otherwise?"""
        weighed = _weighed(usual, supply)
        if weighed == self._weighed:
            return False
        self._learn(weighed)
        return True

    def _learn(self, weighed: Weighed) -> None:
        self._weighed = weighed
        asks = tuple(ask for ask, _ in weighed)
        with_gpus = tuple(ask for ask in asks if ask.each.gpus is not None)
        self.total = sum(weight for _, weight in weighed)
        self.cpu_milli_per_gpu = _cpu_milli_per_gpu(asks)
        self.cpu_milli_beside_gpu = _cpu_milli_per_gpu(with_gpus)
        self.floors = _floors(asks, self.cpu_milli_per_gpu)
        self.middles = _middles(self.floors)
        self._top_level = len(self.floors) - 1
        known = [
            _Usual(ask.each.cpu_milli, ask.each.gpus, weight)
            for ask, weight in weighed
            if ask.each.gpus is not None
        ]
        self._on_one = [ask for ask in known if _devices(ask.gpus) == 1]
        self._on_many = _by_devices([ask for ask in known if _devices(ask.gpus) > 1])
        self._used_on_one: list[dict[DeviceState, int]] = [{} for _ in self.floors]
        self._served: dict[DeviceState, list[_Usual]] = {}
        self._used_on_many: dict[tuple[Idle, int], int] = {}

    def level(self, cpu_milli: int) -> int:
        """Which level of free CPU this is; nodes on one level serve the same usual tasks."""
        return max(0, bisect_right(self.floors, cpu_milli) - 1)

    def reach(self, level: int) -> tuple[int, int]:
        """The free CPU at which a level begins, and at which the next one does."""
        ends = self.floors[level + 1 : level + 2]
        return self.floors[level], ends[0] if ends else MOST_CPU

    def fragments(self, profile: Profile, level: int) -> int:
        """What a node with these devices and at least that CPU has left but the usual cannot use.

        In thousandths of a GPU, summed over all usual tasks (divide by `total` for the mean).
        """
        known = profile.fragments.get(level)
        if known is None:
            used = self._used_on_one[level]
            known = self.total * profile.left_milli - self._many(profile.idle, level)
            for state in profile.states:
                known -= used[state] if state in used else self._find_used(state, level)
            profile.fragments[level] = known
        return known

    def change(self, profile: Profile, before: DeviceState, after: DeviceState) -> int:
        """By how much fragmentation rises, beside plenty of CPU, if one device changes so."""
        level, taken = self._top_level, before.left_milli - after.left_milli
        used = self._find_used(before, level) - self._find_used(after, level)
        if before.use is Use.IDLE:
            used += self._many(profile.idle, level)
            used -= self._many(less_one(profile.idle, before), level)
        return used - self.total * taken

    def steps_gained(
        self, before: Profile, before_milli: int, after: Profile, after_milli: int
    ) -> int:
        """By how many coarse steps what is lost falls if devices and free CPU change so."""
        gained = self._lost(before, before_milli) - self._lost(after, after_milli)
        step = STEP_MILLI * self.total
        return (2 * gained + step) // (2 * step)

    def cpu_wanted(self, left_milli: int) -> int:
        """The CPU that this much GPU usually needs."""
        return self.cpu_milli_per_gpu * left_milli // WHOLE_GPU_MILLI

    def _lost(self, profile: Profile, cpu_milli: int) -> int:
        """What is fragmented, and what would be stranded for want of CPU, summed likewise."""
        lost = self.fragments(profile, self.level(cpu_milli))
        if self.cpu_milli_beside_gpu:
            served = cpu_milli * WHOLE_GPU_MILLI // self.cpu_milli_beside_gpu
            lost += self.total * max(0, profile.left_milli - served)
        return lost

    def _find_used(self, state: DeviceState, level: int) -> int:
        """What usual tasks on one device each would make use of here, summed over them."""
        known = self._used_on_one[level].get(state)
        if known is None:
            floor = self.floors[level]
            weights = (ask.weight for ask in self._able(state) if ask.cpu_milli <= floor)
            known = self._used_on_one[level][state] = state.left_milli * sum(weights)
        return known

    def _able(self, state: DeviceState) -> list[_Usual]:
        """The usual tasks on one device each that this device could serve."""
        known = self._served.get(state)
        if known is None:
            known = [ask for ask in self._on_one if _is_able(state, ask.gpus)]
            self._served[state] = known
        return known

    def _many(self, idle: Idle, level: int) -> int:
        """What usual tasks on several whole GPUs each would make use of, summed over them."""
        known = self._used_on_many.get((idle, level))
        if known is None:
            known = self._used_on_many[idle, level] = self._find_many(idle, self.floors[level])
        return known

    def _find_many(self, idle: Idle, floor: int) -> int:
        used = 0
        for gpus, asks in self._on_many.items():
            devices = sum(
                count for model, memory_mib, count in idle if _accepts(gpus, model, memory_mib)
            )
            tasks = (
                ask.weight for ask in asks if ask.cpu_milli <= floor and ask.gpus.count <= devices
            )
            used += sum(tasks) * devices * WHOLE_GPU_MILLI
        return used


def _devices(gpus: GpuAsk) -> int:
    return gpus.count if gpus.slice is None else 1


def _by_devices(asks: list[_Usual]) -> dict[GpuAsk, list[_Usual]]:
    """Tasks that need several GPUs, by what they ask of each."""
    found: dict[GpuAsk, list[_Usual]] = {}
    for ask in asks:
        found.setdefault(replace(ask.gpus, count=1), []).append(ask)
    return found


def _is_able(state: DeviceState, gpus: GpuAsk) -> bool:
    return _accepts(gpus, state.model, state.memory_mib) and bool(
        choices(state, gpus.slice, may_cut=True)
    )


def _accepts(gpus: GpuAsk, model: GpuModel, memory_mib: int) -> bool:
    return (not gpus.models or model in gpus.models) and memory_mib >= gpus.min_memory_mib


def _weighed(usual: tuple[UsualAsk, ...], supply: Supply) -> Weighed:
    return tuple((ask, _weight(ask, supply)) for ask in usual or GENERIC)


def _weight(ask: UsualAsk, supply: Supply) -> int:
    """How much a usual task counts: as often as it comes, more if few GPUs can serve it."""
    gpus, whole = ask.each.gpus, sum(supply.values())
    if gpus is None:
        return ask.count * PLAIN_WEIGHT
    able = sum(count for kind, count in supply.items() if _accepts(gpus, *kind))
    return ask.count * PLAIN_WEIGHT * (whole if able else 1) // (able or 1)


def _cpu_milli_per_gpu(usual: tuple[UsualAsk, ...]) -> int:
    cpu = sum(ask.each.cpu_milli * ask.count for ask in usual)
    gpu = sum(ask.each.amount(None).gpu_milli * ask.count for ask in usual)
    return cpu * WHOLE_GPU_MILLI // gpu if gpu else 0


def _floors(usual: tuple[UsualAsk, ...], cpu_milli_per_gpu: int) -> list[int]:
    """The CPU amounts at which a level begins: where a usual task begins to fit, and between."""
    asked = sorted({ask.each.cpu_milli for ask in usual})
    balanced = [cpu_milli_per_gpu * gpus for gpus in range(1, 9)]
    thinned = asked[::-1][:: 1 + len(asked) // CPU_LEVELS]  # the largest always counts
    return sorted({0, *thinned, *balanced})


def _middles(floors: list[int]) -> list[int]:
    """The CPU amounts that stand for each level; there is no end to the last one."""
    return [
        (floor + end) // 2 for floor, end in zip(floors, [*floors[1:], floors[-1]], strict=True)
    ]
