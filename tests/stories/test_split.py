"""GPUs that their engine has split for good: each task has one of the equal parts, and no more."""

import pytest

from stories.words import GroupAsked
from stories.world import World

QUARTER: GroupAsked = {"mps": 250}
TURN: GroupAsked = {"time_share": 4}


def split(*, by_mps: bool, parts: int = 4) -> World:
    """One GPU that is split."""
    world = World()
    world.has_nodes("n1", gpus=1, parts=parts, parts_by_mps=by_mps)
    return world


@pytest.mark.parametrize(("by_mps", "part"), [(True, QUARTER), (False, TURN)])
def test_as_many_have_a_part_as_there_are(by_mps: bool, part: GroupAsked) -> None:
    world = split(by_mps=by_mps)
    world.submits_many("small", 5, **part)

    assert world.plans().started() == ["small1", "small2", "small3", "small4"]


@pytest.mark.parametrize("by_mps", [True, False])
@pytest.mark.parametrize(
    "other", [{"gpus": 1}, {"mps": 500}, {"mps": 250, "mps_memory_gib": 1}, {"time_share": 2}]
)
def test_nobody_has_all_of_it_or_another_part(by_mps: bool, other: GroupAsked) -> None:
    world = split(by_mps=by_mps)
    world.submits("other", **other)

    assert world.plans().started() == []


def test_a_third_is_as_many_percent_as_one_can_say() -> None:
    world = split(by_mps=True, parts=3)
    world.submits_many("third", 4, mps=330)

    assert world.plans().started() == ["third1", "third2", "third3"]


def test_who_needs_no_gpu_runs_beside_them() -> None:
    world = split(by_mps=False)
    world.submits("turn", **TURN)
    world.submits("plain", gpus=0)

    assert world.plans().started() == ["turn", "plain"]
