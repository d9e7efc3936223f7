"""How openb is replayed (FGD, ATC'23): tasks come one by one, never leave, and are not tried again.

After each task the load that arrived and the GPU that is allocated are noted, in per cent of all
GPUs. A curve has a point for each per cent of load: the mean of what was noted there.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from muster.model.gpu import WHOLE_GPU_MILLI
from muster.simulator.traces.traced import TracedJob, TracedNode

POINTS = 131
FULL_LOAD = 100
PAIRS = 8
LARGEST_BLOCK = 128


class Task(NamedTuple):
    """What one task asks for; equal ones are of one kind. `gpu_milli` is of each of its GPUs."""

    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    models: tuple[str, ...]

    @property
    def demand_milli(self) -> int:
        return self.gpus * self.gpu_milli

    @property
    def is_share(self) -> bool:
        return self.gpus == 1 and self.gpu_milli < WHOLE_GPU_MILLI


class Order(NamedTuple):
    """One run: in which order the tasks come (by place in the list), and the rank of each node."""

    tasks: Sequence[int]
    ranks: Sequence[int]


class Workload(NamedTuple):
    """The nodes by name, the tasks by name, and the runs by seed."""

    nodes: tuple[TracedNode, ...]
    tasks: tuple[Task, ...]
    orders: dict[int, Order]


Place = Callable[[Task], bool]
"""Gives a task its room for good, if there is any."""


def task_of(job: TracedJob) -> Task:
    """Without GPUs there is nothing to have a part of."""
    milli = job.gpu_milli if job.gpus else 0
    return Task(job.cpu_milli, job.memory_mib, job.gpus, milli, job.models)


def curve(workload: Workload, seed: int, place: Place) -> list[float]:
    """GPU allocated, in per cent, at each per cent of load from 0 to 130."""
    capacity_milli = WHOLE_GPU_MILLI * sum(node.gpus for node in workload.nodes)
    arrived_milli = allocated_milli = 0
    noted: list[list[float]] = [[] for _ in range(POINTS)]
    for index in workload.orders[seed].tasks:
        task = workload.tasks[index]
        arrived_milli += task.demand_milli
        if place(task):
            allocated_milli += task.demand_milli
        load = round(100 * arrived_milli / capacity_milli)
        if load < POINTS:
            noted[load].append(round(100 * allocated_milli / capacity_milli, 2))
    return [_mean(values) for values in noted]


def unallocated(allocated: Sequence[float]) -> float:
    """The headline: GPU per cent that nobody has when tasks for all of it have come."""
    return FULL_LOAD - allocated[FULL_LOAD]


def _mean(values: Sequence[float]) -> float:
    """The mean to two places as the published tables have it.

    They were made with NumPy. Halves are many here, and which way they are rounded hangs on the
    order of its sums; so that order is kept.
    """
    return round(_sum(values) / len(values) * 100) / 100 if values else 0.0


def _sum(values: Sequence[float]) -> float:
    count = len(values)
    if count < PAIRS:
        return _in_turn(0.0, values)
    if count > LARGEST_BLOCK:
        half = count // 2 // PAIRS * PAIRS
        return _sum(values[:half]) + _sum(values[half:])
    whole = count // PAIRS * PAIRS
    sums = [_in_turn(values[at], values[at + PAIRS : whole : PAIRS]) for at in range(PAIRS)]
    low = (sums[0] + sums[1]) + (sums[2] + sums[3])
    high = (sums[4] + sums[5]) + (sums[6] + sums[7])
    return _in_turn(low + high, values[whole:])


def _in_turn(start: float, values: Iterable[float]) -> float:
    """One after the other; newer Pythons add floats up more exactly in `sum`."""
    for value in values:
        start += value
    return start
