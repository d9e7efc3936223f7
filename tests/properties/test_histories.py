"""What is true of worlds that go on for a while."""

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from muster.model.job import JobState
from muster.model.policy import OrderWeights, Policy
from muster.model.value import HOUR
from properties.strategies import requests, worlds
from stories.world import World

SOME = settings(max_examples=max(10, settings().max_examples // 5))
"""A history is many plans, so fewer of them are played."""


@SOME
@given(worlds(), st.data())
def test_memory_of_the_cycles_before_does_not_change_the_plan(
    world: World, data: DataObject
) -> None:
    """`World.plans` compares the planner that remembers with one that does not."""
    for cycle in range(4):
        world.goes_on(slowly=data.draw(st.booleans()))
        world.passes(minutes=data.draw(st.sampled_from((0, 5, 40))))
        for number in range(data.draw(st.integers(0, 2))):
            world.submits(f"new{cycle}.{number}", **data.draw(requests(world)))
        running = [
            name
            for name, job in world.names.items()
            if job in world.scene.jobs and world.scene.jobs[job].state is JobState.RUNNING
        ]
        for name in data.draw(st.lists(st.sampled_from(running), unique=True)) if running else ():
            world.finishes(name)


@SOME
@given(
    nodes=st.integers(1, 2),
    gpus=st.sampled_from((2, 4)),
    stream=st.lists(
        st.tuples(st.integers(1, 2), st.sampled_from((10, 30, 60)), st.sampled_from(("a", "b"))),
        min_size=1,
        max_size=6,
    ),
    heavy=st.booleans(),
)
def test_no_job_starves_behind_a_stream_of_others(
    nodes: int, gpus: int, stream: list[tuple[int, int, str]], heavy: bool
) -> None:
    """Two newcomers every ten minutes, from users who had nothing yet, for as long as it takes."""
    world = World(Policy(order=OrderWeights(age_full=HOUR)))
    world.has_nodes(*(f"n{number}" for number in range(nodes)), gpus=gpus)
    world.has_queue("a", weight=3)
    world.has_queue("b")
    if heavy:
        world.uses("a", "target", gpu_hours=100)
    world.submits("target", user="target", queue="a", tasks=nodes, gpus=gpus, minutes=60)
    for cycle in range(72):
        for number in range(2):
            size, minutes, queue = stream[(2 * cycle + number) % len(stream)]
            name = f"j{cycle}.{number}"
            world.submits(name, gpus=size, minutes=minutes, queue=queue, user=name)
        if "target" in world.goes_on().started():
            return
        world.passes(minutes=10)
    raise AssertionError("the job never started")
