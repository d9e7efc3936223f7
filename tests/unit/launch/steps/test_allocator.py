import pytest

from muster.launch.steps.allocator import (
    ImpossibleStepError,
    StepAllocator,
    StepRequest,
)
from muster.launch.steps.shares import NodeShare

TWO = (
    NodeShare(node="n1", cpus=2, cpu_ids=(4, 5)),
    NodeShare(node="n2", cpus=3, component=1),
    NodeShare(node="n1", cpus=4, component=1, cpu_ids=(0, 1, 2, 3)),
)


def test_a_step_has_only_the_nodes_of_its_components() -> None:
    allocator = StepAllocator(TWO)

    first = allocator.take(0, [StepRequest(tasks=2)])
    second = allocator.take(1, [StepRequest(tasks=4, component=1)])

    assert first is not None
    assert second is not None
    assert [part.node for part in first] == [0]
    assert [(part.node, part.ranks) for part in second] == [(1, (0, 1, 2)), (2, (3,))]


def test_ranks_go_on_from_one_component_to_the_next() -> None:
    parts = StepAllocator(TWO).take(0, [StepRequest(tasks=2), StepRequest(tasks=2, component=1)])

    assert parts is not None
    assert [(part.request, part.ranks) for part in parts] == [(0, (0, 1)), (1, (2,)), (1, (3,))]


def test_a_step_has_room_in_all_its_components_or_waits() -> None:
    allocator = StepAllocator(TWO)
    both = [StepRequest(tasks=1), StepRequest(tasks=2, component=1, nodes=2)]
    allocator.take(0, [StepRequest(tasks=1, component=1, on=("n2",), nodes=1)])

    assert allocator.take(1, both) is None
    assert allocator.take(1, [StepRequest(tasks=2)]) is not None
    allocator.give_back(0)
    assert allocator.take(2, both) is None
    allocator.give_back(1)
    assert allocator.take(2, both) is not None


def test_what_one_component_lacks_is_lacking_for_ever() -> None:
    with pytest.raises(ImpossibleStepError):
        StepAllocator(TWO).take(0, [StepRequest(tasks=1), StepRequest(tasks=9, component=1)])
    with pytest.raises(ImpossibleStepError):
        StepAllocator(TWO).take(0, [StepRequest(tasks=1, on=("n2",))])


def test_parts_of_a_step_in_one_component_are_beside_each_other() -> None:
    allocator = StepAllocator([NodeShare(node=f"n{at}", cpus=1) for at in range(2)])

    parts = allocator.take(0, [StepRequest(nodes=1), StepRequest(nodes=1, relative=1)])

    assert parts is not None
    assert [(part.node, part.ranks) for part in parts] == [(0, (0,)), (1, (1,))]


def test_steps_that_take_only_what_they_asked_for_have_cpus_of_their_own() -> None:
    allocator = StepAllocator([NodeShare(node="n", cpus=4, cpu_ids=(0, 1, 2, 3))])

    taken = [allocator.take(number, [StepRequest(tasks=2, exact=True)]) for number in range(2)]
    shared = allocator.take(2, [StepRequest(tasks=1, overlap=True)])

    assert [parts and parts[0].cpu_ids for parts in taken] == [(0, 1), (2, 3)]
    assert shared is not None
    assert (shared[0].cpu_ids, shared[0].cpus) == ((0, 1, 2, 3), 4)
