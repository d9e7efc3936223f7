"""The openb benchmark in small: the ports, the curve, and our planner beside them."""

import pytest

from bench.packing.ours import Planner
from bench.packing.ports import BestFit, DotProd, Fgd, Judge, Machine, Replay, usual
from bench.packing.protocol import Order, Task, Workload, curve, unallocated
from muster.model.value import GpuModel
from muster.simulator.traces.traced import TracedNode

HALF = Task(cpu_milli=1_000, memory_mib=1, gpus=1, gpu_milli=500, models=())
WHOLE = Task(cpu_milli=4_000, memory_mib=1, gpus=1, gpu_milli=1_000, models=())
PAIR = Task(cpu_milli=8_000, memory_mib=1, gpus=2, gpu_milli=1_000, models=())
NO_GPU = Task(cpu_milli=2_000, memory_mib=1, gpus=0, gpu_milli=0, models=())


def test_a_task_that_fits_nowhere_counts_as_arrived_and_is_dropped() -> None:
    workload = _workload((PAIR, PAIR, HALF), nodes=1)

    allocated = curve(workload, 42, Replay(workload, workload.orders[42], BestFit()).place)

    assert allocated[100] == 100.0
    assert unallocated(allocated) == 0.0


@pytest.mark.parametrize("judge", [BestFit(), Fgd([HALF, WHOLE, PAIR])])
def test_a_share_goes_to_the_gpu_that_is_shared_already(judge: Judge) -> None:
    machine = Machine(16_000, 100, 2, "V7")
    machine.give(HALF, (1,))

    assert judge.judge(machine, HALF).devices == (1,)


def test_best_fit_takes_the_fuller_node_and_dot_prod_the_one_with_less_of_what_is_asked() -> None:
    empty, fuller = Machine(16_000, 100, 2, "V7"), Machine(16_000, 100, 2, "V7")
    fuller.give(WHOLE, (0,))

    for judge in (BestFit(), DotProd()):
        assert judge.judge(fuller, WHOLE).score >= judge.judge(empty, WHOLE).score


def test_no_change_of_fragmentation_is_exactly_the_middle_score() -> None:
    machine = Machine(16_000, 100, 0, "")

    assert Fgd([HALF, WHOLE]).judge(machine, NO_GPU).score == 50


def test_usual_are_the_most_frequent_up_to_95_per_cent() -> None:
    found = usual([HALF] * 90 + [WHOLE] * 6 + [PAIR] * 4)

    assert [each.gpu_milli for each in found] == [500, 1_000]
    assert sum(each.part for each in found) == pytest.approx(1.0)


def test_a_node_of_a_model_that_is_not_accepted_does_not_fit() -> None:
    machine = Machine(16_000, 100, 2, "V7")

    assert not machine.fits(WHOLE._replace(models=("V9",)))
    assert machine.fits(WHOLE._replace(models=("V9", "V7")))


def test_our_planner_keeps_a_node_whole_for_tasks_with_several_gpus() -> None:
    workload = _workload((WHOLE, WHOLE, PAIR), nodes=2)
    planner = Planner(workload)

    assert [planner.place(task) for task in workload.tasks] == [True, True, True]
    assert not planner.place(HALF)


def _workload(tasks: tuple[Task, ...], nodes: int) -> Workload:
    machines = tuple(
        TracedNode(name=f"n{place}", cpu_milli=16_000, memory_mib=100, gpus=2, model=GpuModel("V7"))
        for place in range(nodes)
    )
    order = Order(range(len(tasks)), range(nodes))
    return Workload(machines, tasks, {42: order})
