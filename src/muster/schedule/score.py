"""Which of the nodes that fit is best: the one whose remains are most useful to what usually comes.

Fragmentation is counted as in FGD (ATC'23): of what a node has left, how much could a usual task not
use? It is summed over the usual tasks in whole numbers, and its change is looked at in coarse steps:
the fine differences are noise that scatters tasks over the cluster. What decides between equals
is the balance of CPU to GPU that the usual tasks need, so that neither runs out before the other.
"""

from bisect import bisect_right
from typing import NamedTuple

from muster.model.gpu import WHOLE_GPU_MILLI, GpuAsk
from muster.model.job import Ask
from muster.model.snapshot import UsualAsk
from muster.model.value import GpuModel
from muster.schedule.profiles import Profile
from muster.schedule.slices import DeviceState, choices

STEP_MILLI = 40
"""Changes of fragmentation are compared in steps of this much of a GPU."""

CPU_LEVELS = 24
"""At most this many levels of free CPU are told apart."""

GENERIC = tuple(
    UsualAsk(each=Ask(cpu_milli=8_000 * gpus, gpus=GpuAsk(count=gpus)), count=count)
    for gpus, count in ((1, 8), (2, 4), (4, 2), (8, 1))
)
"""What is taken to be usual where nobody knows yet: mostly small, sometimes a whole node."""


class _Usual(NamedTuple):
    cpu_milli: int
    gpus: GpuAsk | None
    count: int


class Score:
    """Fragmentation and balance for one set of usual tasks."""

    def __init__(self, usual: tuple[UsualAsk, ...]) -> None:
        asks = usual or GENERIC
        self._usual = sorted(
            (_Usual(ask.each.cpu_milli, ask.each.gpus, ask.count) for ask in asks),
            key=lambda ask: ask.cpu_milli,
        )
        self.total = sum(ask.count for ask in self._usual)
        self.cpu_milli_per_gpu = _cpu_milli_per_gpu(self._usual)
        self.floors = _floors(self._usual, self.cpu_milli_per_gpu)
        self._top_level = len(self.floors) - 1
        self._able: dict[tuple[DeviceState, int], bool] = {}

    def level(self, cpu_milli: int) -> int:
        """Which level of free CPU this is; nodes on one level serve the same usual tasks."""
        return max(0, bisect_right(self.floors, cpu_milli) - 1)

    def fragments(self, profile: Profile, level: int) -> int:
        """What a node with these devices and at least that CPU has left but the usual cannot use.

        In thousandths of a GPU, summed over all usual tasks (divide by `total` for the mean).
        """
        known = profile.fragments.get(level)
        if known is None:
            known = profile.fragments[level] = self._fragments(profile, self.floors[level])
        return known

    def judge(self, profile: Profile) -> int:
        """The fragmentation of devices beside plenty of CPU."""
        return self.fragments(profile, self._top_level)

    def steps_gained(self, before: tuple[Profile, int], after: tuple[Profile, int]) -> int:
        """By how many coarse steps fragmentation falls between two (profile, level) pairs."""
        gained = self.fragments(*before) - self.fragments(*after)
        return gained // (STEP_MILLI * self.total)

    def imbalance(self, cpu_milli: int, left_milli: int) -> int:
        """How far the free CPU is from what the free GPUs would usually need."""
        return abs(cpu_milli - self.cpu_wanted(left_milli))

    def cpu_wanted(self, left_milli: int) -> int:
        """The CPU that this much GPU usually needs."""
        return self.cpu_milli_per_gpu * left_milli // WHOLE_GPU_MILLI

    def _fragments(self, profile: Profile, cpu_milli: int) -> int:
        total = 0
        for place, ask in enumerate(self._usual):
            if ask.gpus is None or ask.cpu_milli > cpu_milli:
                total += ask.count * profile.left_milli
            else:
                total += ask.count * self._useless_to(place, ask.gpus, profile)
        return total

    def _useless_to(self, place: int, gpus: GpuAsk, profile: Profile) -> int:
        able = [state for state in profile.states if self._is_able(state, place, gpus)]
        devices_needed = gpus.count if gpus.slice is None else 1
        if len(able) < devices_needed:
            return profile.left_milli
        return profile.left_milli - sum(state.left_milli for state in able)

    def _is_able(self, state: DeviceState, place: int, gpus: GpuAsk) -> bool:
        key = (state, place)
        known = self._able.get(key)
        if known is None:
            known = self._able[key] = _accepts(gpus, state.model, state.memory_mib) and bool(
                choices(state, gpus.slice, may_cut=True)
            )
        return known


def _accepts(gpus: GpuAsk, model: GpuModel, memory_mib: int) -> bool:
    return (not gpus.models or model in gpus.models) and memory_mib >= gpus.min_memory_mib


def _cpu_milli_per_gpu(usual: list[_Usual]) -> int:
    cpu = sum(ask.cpu_milli * ask.count for ask in usual)
    gpu = sum(_gpu_milli(ask.gpus) * ask.count for ask in usual)
    return cpu * WHOLE_GPU_MILLI // gpu if gpu else 0


def _gpu_milli(gpus: GpuAsk | None) -> int:
    return Ask(gpus=gpus).amount(None).gpu_milli


def _floors(usual: list[_Usual], cpu_milli_per_gpu: int) -> list[int]:
    """The CPU amounts at which a level begins: where a usual task begins to fit, and between."""
    asked = sorted({ask.cpu_milli for ask in usual})
    balanced = [cpu_milli_per_gpu * gpus for gpus in range(1, 9)]
    thinned = asked[:: 1 + len(asked) // CPU_LEVELS]
    return sorted({0, *thinned, *balanced})
