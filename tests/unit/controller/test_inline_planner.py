"""Explanations by the planner in this process."""

from muster.controller.planner.client import InlinePlanner
from stories.world import World


def test_nobody_is_told_to_ask_for_room_that_the_same_plan_gave_away() -> None:
    world = World()
    world.has_nodes("n1", "n2", gpus=4)
    # Smaller and shorter jobs come first: asked for fewer GPUs, the last one had come before.
    for name in ("first", "second", "third"):
        world.submits(name, gpus=4, minutes=20, expected_minutes=5)
    snapshot, planner = world.scene.snapshot(), InlinePlanner()

    planner.plan(snapshot, world.policy)
    found = planner.explain(world.names["third"])

    assert found.alternatives == ()
    assert len(found.blockers) == 1


def test_the_next_plan_is_as_if_nothing_had_been_explained() -> None:
    world = World()
    world.has_nodes("n1", gpus=4)
    for name in ("first", "second"):
        world.submits(name, gpus=4, minutes=20, expected_minutes=5)
    snapshot, planner = world.scene.snapshot(), InlinePlanner()
    made = planner.plan(snapshot, world.policy)

    planner.explain(world.names["second"])

    assert planner.plan(snapshot, world.policy) == made
