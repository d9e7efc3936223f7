"""BestFit, DotProd and FGD, as the ATC'23 artefact has them, to the last rounding.

A policy gives every node that fits a whole number; the highest wins, then the lowest rank. What a
node is worth to a kind of task changes only when the node does, so each kind keeps its nodes in a
heap and looks again at those that changed since it last looked.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple, Protocol

from bench.packing.protocol import Order, Task, Workload
from muster.model.gpu import WHOLE_GPU_MILLI

MOST_CPU_MILLI = 128_000
MOST_GPU_MILLI = 8_000
USUAL_PER_CENT = 95

Left = tuple[int, ...]
"""What each GPU of a node has left, in thousandths."""


class Machine:
    """What one node has left."""

    __slots__ = ("cpu_milli", "left", "memory_mib", "model", "version")

    def __init__(self, cpu_milli: int, memory_mib: int, gpus: int, model: str) -> None:
        self.cpu_milli = cpu_milli
        self.memory_mib = memory_mib
        self.left: Left = (WHOLE_GPU_MILLI,) * gpus
        self.model = model
        self.version = 0

    def fits(self, task: Task) -> bool:
        if self.cpu_milli < task.cpu_milli or self.memory_mib < task.memory_mib:
            return False
        if task.models and self.model not in task.models:
            return False
        return sum(left >= task.gpu_milli for left in self.left) >= task.gpus

    def give(self, task: Task, devices: Sequence[int]) -> None:
        self.cpu_milli -= task.cpu_milli
        self.memory_mib -= task.memory_mib
        self.left = without(self.left, devices, task.gpu_milli)
        self.version += 1


class Judgement(NamedTuple):
    """What a node is worth to a task, and which devices it would get."""

    score: int
    devices: tuple[int, ...]


class Judge(Protocol):
    """A published policy."""

    def judge(self, machine: Machine, task: Task) -> Judgement:
        """What this node, on which the task fits, is worth to it."""
        ...


_Candidate = tuple[int, int, int, int, tuple[int, ...]]
"""The score turned round, rank, place of the node, its version when it was judged, the devices."""


class Replay:
    """All nodes under one policy."""

    def __init__(self, workload: Workload, order: Order, judge: Judge) -> None:
        self._judge = judge
        self._ranks = order.ranks
        self._machines = [
            Machine(node.cpu_milli, node.memory_mib, node.gpus, node.model)
            for node in workload.nodes
        ]
        self._changed = list(range(len(self._machines)))
        self._heaps: dict[Task, list[_Candidate]] = {}
        self._read: dict[Task, int] = {}

    def place(self, task: Task) -> bool:
        """Give the task the best room, if there is any."""
        heap = self._candidates(task)
        while heap and self._machines[heap[0][2]].version != heap[0][3]:
            heappop(heap)
        if not heap:
            return False
        _, _, place, _, devices = heap[0]
        self._machines[place].give(task, devices)
        self._changed.append(place)
        return True

    def _candidates(self, task: Task) -> list[_Candidate]:
        heap = self._heaps.setdefault(task, [])
        for place in set(self._changed[self._read.get(task, 0) :]):
            machine = self._machines[place]
            if machine.fits(task):
                score, devices = self._judge.judge(machine, task)
                heappush(heap, (-score, self._ranks[place], place, machine.version, devices))
        self._read[task] = len(self._changed)
        return heap


class BestFit:
    """The node that has least left."""

    def judge(self, machine: Machine, task: Task) -> Judgement:
        cpu = (machine.cpu_milli - task.cpu_milli) / MOST_CPU_MILLI * 0.5
        gpu = (sum(machine.left) - task.demand_milli) / MOST_GPU_MILLI * 0.5
        return Judgement(int((1.0 - (cpu + gpu)) * 100), tightest(machine.left, task))


class DotProd:
    """The node whose free amounts point away from what the task asks for."""

    def judge(self, machine: Machine, task: Task) -> Judgement:
        cpu = (machine.cpu_milli / MOST_CPU_MILLI) * (task.cpu_milli / MOST_CPU_MILLI)
        gpu = (sum(machine.left) / MOST_GPU_MILLI) * (task.demand_milli / MOST_GPU_MILLI)
        return Judgement(int(100 * (1 - (cpu + gpu) / 2)), tightest(machine.left, task))


class Usual(NamedTuple):
    """A usual task, and its part of all that usually come."""

    cpu_milli: int
    gpu_milli: int
    gpus: int
    models: tuple[str, ...]
    part: float


class Fgd:
    """Fragmentation gradient descent: the node whose fragmentation rises least."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._usual = usual(tasks)
        self._floors = sorted({each.cpu_milli for each in self._usual})
        self._fragments: dict[tuple[str, int, Left], float] = {}
        self._judged: dict[tuple[str, int, int, Left, int, int], Judgement] = {}

    def judge(self, machine: Machine, task: Task) -> Judgement:
        before = bisect_right(self._floors, machine.cpu_milli)
        after = bisect_right(self._floors, machine.cpu_milli - task.cpu_milli)
        key = (machine.model, before, after, machine.left, task.gpus, task.gpu_milli)
        known = self._judged.get(key)
        if known is None:
            known = self._judged[key] = self._find(machine, task, before, after)
        return known

    def _find(self, machine: Machine, task: Task, before: int, after: int) -> Judgement:
        now = self._fragmented(machine.model, before, machine.left)
        best: Judgement | None = None
        for devices in _choices(machine.left, task):
            left = without(machine.left, devices, task.gpu_milli)
            gained = now - self._fragmented(machine.model, after, left)
            score = int(1 / (1 + math.exp(-gained / 1000)) * 100)
            if best is None or score > best.score:
                best = Judgement(score, devices)
        if best is None:
            raise ValueError(task)
        return best

    def _fragmented(self, model: str, level: int, left: Left) -> float:
        key = (model, level, tuple(sorted(left)))
        known = self._fragments.get(key)
        if known is None:
            floor = self._floors[level - 1] if level else -1
            known = self._fragments[key] = self._find_fragmented(model, floor, left)
        return known

    def _find_fragmented(self, model: str, cpu_milli: int, left: Left) -> float:
        """Summed kind by kind, then over the kinds: no change must come out as exactly none."""
        whole = sum(left)
        kinds = [0.0] * 6
        for each in self._usual:
            kind = _kind(each, model, cpu_milli, left)
            is_served = kind == SERVED
            unused = sum(part for part in left if part < each.gpu_milli) if is_served else whole
            kinds[LACKS_GPU if is_served else kind] += each.part * unused
        return kinds[0] + kinds[1] + kinds[2] + kinds[3] + kinds[4] + kinds[5]


LACKS_BOTH, LACKS_GPU, LACKS_CPU, NO_GPU, NO_GPU_LACKS_CPU, NO_ACCESS, SERVED = range(7)


def _kind(each: Usual, model: str, cpu_milli: int, left: Left) -> int:
    """In which way a node cannot serve a usual task."""
    has_cpu = cpu_milli >= each.cpu_milli
    if each.gpus == 0:
        return NO_GPU if has_cpu else NO_GPU_LACKS_CPU
    if each.models and model not in each.models:
        return NO_ACCESS
    if sum(part >= each.gpu_milli for part in left) >= each.gpus:
        return SERVED if has_cpu else LACKS_CPU
    return LACKS_GPU if has_cpu else LACKS_BOTH


def usual(tasks: Iterable[Task]) -> list[Usual]:
    """The kinds of task that make up 95 % of all, most frequent first; memory does not count."""
    all_tasks = list(tasks)
    counts = Counter((task.cpu_milli, task.gpu_milli, task.gpus, task.models) for task in all_tasks)
    total = len(all_tasks)
    kept: list[tuple[tuple[int, int, int, tuple[str, ...]], int]] = []
    covered = 0
    for kind, count in sorted(counts.items(), key=_by_count, reverse=True):
        if covered >= USUAL_PER_CENT * total / 100:
            break
        kept.append((kind, count))
        covered += count
    return [Usual(*kind, count / total / (covered / total)) for kind, count in kept]


def _by_count(
    counted: tuple[tuple[int, int, int, tuple[str, ...]], int],
) -> tuple[int, int, int, int, str]:
    (cpu_milli, gpu_milli, gpus, models), count = counted
    return count, cpu_milli, gpu_milli, gpus, "|".join(models)


def tightest(left: Left, task: Task) -> tuple[int, ...]:
    """The device that has least left for a share, else the first that are free."""
    if not task.is_share:
        return next(iter(_choices(left, task)))
    return (min((part, at) for at, part in enumerate(left) if part >= task.gpu_milli)[1],)


def without(left: Left, devices: Sequence[int], milli: int) -> Left:
    """What is left after a task took so much of each of these devices."""
    if not devices:
        return left
    return tuple(part - milli if at in devices else part for at, part in enumerate(left))


def _choices(left: Left, task: Task) -> list[tuple[int, ...]]:
    """The devices that a task could get: each that has enough for a share, else the first free."""
    able = [at for at, part in enumerate(left) if part >= task.gpu_milli]
    return [(at,) for at in able] if task.is_share else [tuple(able[: task.gpus])]
