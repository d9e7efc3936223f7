"""Steps share an attempt's room and never more than that."""

from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as some

from muster.launch.steps.allocator import (
    ImpossibleStepError,
    StepAllocator,
    StepRequest,
    StepShare,
)
from muster.launch.steps.shares import NodeShare

few = some.integers(0, 3)
rooms = some.lists(
    some.builds(
        NodeShare,
        node=some.sampled_from("abcd"),
        cpus=some.integers(1, 6),
        memory_mib=some.sampled_from([0, 100]),
        gpus=few.map(lambda count: tuple(f"GPU-{at}" for at in range(count))),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda node: node.node,
)
wishes = some.builds(
    StepRequest,
    tasks=some.integers(1, 4),
    nodes=some.sampled_from([None, None, 1, 2]),
    tasks_per_node=some.sampled_from([None, None, 1, 2]),
    cpus_per_task=some.sampled_from([1, 1, 2]),
    memory_mib=some.sampled_from([0, 0, 40, 101]),
    gpus=some.sampled_from([None, None, None, 0, 2]),
    gpus_per_node=some.sampled_from([None, 0, 0, 1, 2]),
    gpus_per_task=some.sampled_from([None, None, None, None, 1]),
    exact=some.sampled_from([True, True, True, False]),
    overlap=some.sampled_from([False, False, True]),
    overcommit=some.booleans(),
    cyclic=some.booleans(),
    on=some.sampled_from([(), (), (), (), (), (), (), ("a",)]),
    off=some.sampled_from([(), (), (), (), ("a",)]),
    relative=some.sampled_from([0, 0, 0, 1]),
)
"""Most of what is rare is left out most of the time, or hardly any wish would come true."""

# A wish, or which of the steps ends.
moves = some.lists(
    some.one_of(wishes, wishes, wishes, some.integers(0, 9)), min_size=2, max_size=12
)


@example(
    [NodeShare(node="a", cpus=4)],
    [StepRequest(exact=True), StepRequest(exact=True, overcommit=True, tasks=5)],
)
@given(rooms, moves)
def test_no_cpu_or_gpu_is_given_twice(
    nodes: list[NodeShare], course: list[StepRequest | int]
) -> None:
    shared = StepAllocator(nodes)
    held: dict[int, tuple[StepRequest, tuple[StepShare, ...]]] = {}
    for number, move in enumerate(course):
        if isinstance(move, int):
            if held:
                gone = sorted(held)[move % len(held)]
                shared.give_back(gone)
                del held[gone]
        elif (parts := taken(shared, number, move)) is not None:
            held[number] = (move, parts)
        assert_fits(nodes, [entry for entry in held.values() if not entry[0].overlap])


@given(rooms, wishes)
def test_every_rank_has_one_place(nodes: list[NodeShare], wish: StepRequest) -> None:
    parts = taken(StepAllocator(nodes), 0, wish)
    if parts is None:
        return

    ranks = sorted(rank for part in parts for rank in part.ranks)
    assert ranks == list(range(wish.tasks))
    assert all(part.ranks for part in parts)
    assert len({part.node for part in parts}) == len(parts)


@given(rooms, moves, wishes)
def test_who_has_to_wait_would_fit_alone(
    nodes: list[NodeShare], course: list[StepRequest | int], wish: StepRequest
) -> None:
    shared = StepAllocator(nodes)
    for number, move in enumerate(course):
        if isinstance(move, StepRequest):
            taken(shared, number, move)
    try:
        waits = shared.take(99, (wish,)) is None
    except ImpossibleStepError:
        assert taken(StepAllocator(nodes), 0, wish) is None
        return
    if waits:
        assert taken(StepAllocator(nodes), 0, wish) is not None


def taken(shared: StepAllocator, number: int, wish: StepRequest) -> tuple[StepShare, ...] | None:
    try:
        return shared.take(number, (wish,))
    except ImpossibleStepError:
        return None


def assert_fits(
    nodes: list[NodeShare], held: list[tuple[StepRequest, tuple[StepShare, ...]]]
) -> None:
    for at, node in enumerate(nodes):
        here = [part for _, parts in held for part in parts if part.node == at]
        gpus = Counter(gpu for part in here for gpu in part.gpus)
        assert all(count == 1 for count in gpus.values())
        assert all(0 <= gpu < len(node.gpus) for gpu in gpus)
        assert sum(part.cpus for part in here) <= node.cpus
        if node.memory_mib:
            assert sum(part.memory_mib for part in here) <= node.memory_mib
