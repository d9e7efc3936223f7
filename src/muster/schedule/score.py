"""Which of the nodes that fit is best: the one whose remains are most useful to what usually comes.

Fragmentation is counted as in FGD (ATC'23): of what a node has left, how much could a usual task
not use? It is summed over the usual tasks in whole numbers, and its change is looked at in coarse
steps: the fine differences are noise that scatters tasks over the cluster. What decides between
equals is the balance of CPU to GPU that the usual tasks need, so that neither runs out first.
"""

from bisect import bisect_right
from typing import NamedTuple

from muster.model.gpu import WHOLE_GPU_MILLI, GpuAsk
from muster.model.job import Ask
from muster.model.snapshot import UsualAsk
from muster.model.value import GpuModel, replace
from muster.schedule.profiles import Idle, Profile, less_one
from muster.schedule.slices import DeviceState, Use, choices

STEP_MILLI = 40
"""Changes of fragmentation are compared in steps of this much of a GPU."""

CPU_LEVELS = 8
"""At most this many levels of free CPU are told apart."""

GENERIC = tuple(
    UsualAsk(each=Ask(cpu_milli=8_000 * gpus, gpus=GpuAsk(count=gpus)), count=count)
    for gpus, count in ((1, 8), (2, 4), (4, 2), (8, 1))
)
"""What is taken to be usual where nobody knows yet: mostly small, sometimes a whole node."""


class _Usual(NamedTuple):
    cpu_milli: int
    gpus: GpuAsk
    times: int


class Score:
    """Fragmentation and balance for one set of usual tasks.

    A task that needs one device makes use of every device that can serve it, so what it leaves
    unused is a sum over devices, each worked out once; only tasks that need several whole GPUs
    have to look at the node as a whole.
    """

    def __init__(self, usual: tuple[UsualAsk, ...]) -> None:
        asks = usual or GENERIC
        self.total = sum(ask.count for ask in asks)
        self.cpu_milli_per_gpu = _cpu_milli_per_gpu(asks)
        self.floors = _floors(asks, self.cpu_milli_per_gpu)
        self._top_level = len(self.floors) - 1
        known = [
            _Usual(ask.each.cpu_milli, ask.each.gpus, ask.count)
            for ask in asks
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

    def steps_gained(self, before: tuple[Profile, int], after: tuple[Profile, int]) -> int:
        """By how many coarse steps fragmentation falls between two (profile, level) pairs."""
        gained = self.fragments(*before) - self.fragments(*after)
        return gained // (STEP_MILLI * self.total)

    def cpu_wanted(self, left_milli: int) -> int:
        """The CPU that this much GPU usually needs."""
        return self.cpu_milli_per_gpu * left_milli // WHOLE_GPU_MILLI

    def _find_used(self, state: DeviceState, level: int) -> int:
        """What usual tasks on one device each would make use of here, summed over them."""
        known = self._used_on_one[level].get(state)
        if known is None:
            floor = self.floors[level]
            counts = (ask.times for ask in self._able(state) if ask.cpu_milli <= floor)
            known = self._used_on_one[level][state] = state.left_milli * sum(counts)
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
                ask.times for ask in asks if ask.cpu_milli <= floor and ask.gpus.count <= devices
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
