"""Least service first: who had little GPU-time goes before who had much, and may take its room."""

import pytest

from muster.model.policy import OrderWeights, Policy, PreemptPolicy
from muster.model.value import replace
from muster.schedule.explain.explanation import explain
from muster.schedule.plan import Planner
from stories.world import World

BY_SERVICE = Policy(
    order=OrderWeights(fair_share=0, age=0, service=10_000),
    preempt=PreemptPolicy(by_service=True),
)

WITH_DUES = replace(BY_SERVICE, preempt=PreemptPolicy(by_service=True, waited_percent=25))


def world_of_one_node(policy: Policy = BY_SERVICE) -> World:
    world = World(policy)
    world.has_nodes("n1", gpus=8)
    return world


def test_a_new_job_stops_the_one_that_had_the_most() -> None:
    world = world_of_one_node()
    world.runs("for_an_hour", on="n1", gpus=4, ran=60)
    world.runs("for_a_day", on="n1", gpus=4, ran=24 * 60)
    world.submits("new", gpus=4)

    outcome = world.plans()

    assert outcome.cleared() == ["new"]
    assert outcome.preempted() == ["for_a_day"]


def test_nobody_is_stopped_for_one_on_the_same_level() -> None:
    world = world_of_one_node()
    world.runs("begun", on="n1", gpus=8, ran=19)
    world.submits("new", gpus=8)

    assert world.plans().waiting() == ["new"]


def test_room_is_taken_when_a_running_job_has_risen_a_level() -> None:
    world = world_of_one_node()
    world.runs("begun", on="n1", gpus=8, ran=19)
    world.submits("new", gpus=8)
    world.plans()

    world.passes(minutes=1)

    assert world.plans().preempted() == ["begun"]


def test_who_was_stopped_does_not_take_its_room_back_before_the_other_had_as_much() -> None:
    world = world_of_one_node()
    world.runs("old", on="n1", gpus=8, ran=45)
    world.submits("new", gpus=8)
    world.goes_on()
    world.goes_on()

    world.passes(minutes=38)
    assert world.goes_on().waiting() == ["old"]

    world.passes(minutes=60)
    assert world.goes_on().preempted() == ["new"]


def test_who_has_waited_long_is_not_stopped_before_it_ran_for_its_part_of_that() -> None:
    world = world_of_one_node(WITH_DUES)
    world.submits("long", gpus=8)
    world.passes(minutes=8 * 60)
    world.goes_on()
    world.passes(minutes=119)
    world.submits("new", gpus=8)

    assert world.plans().preempted() == []
    assert explained(world, "long").endswith(
        " It waited for 8h, and they do not stop it before it ran for 2h on end."
    )

    world.passes(minutes=1)
    assert world.plans().preempted() == ["long"]


def test_other_classes_need_not_heed_how_long_a_job_has_waited() -> None:
    world = world_of_one_node(WITH_DUES)
    world.has_class("urgent", priority=100, preempts=("normal",))
    world.submits("long", gpus=8)
    world.passes(minutes=8 * 60)
    world.goes_on()
    world.passes(minutes=1)
    world.submits("now", gpus=8, job_class="urgent")

    assert world.plans().preempted() == ["long"]


def test_large_jobs_have_had_more_in_the_same_time() -> None:
    world = world_of_one_node()
    world.runs("large", on="n1", gpus=8, ran=30)
    world.submits("small", gpus=1)

    assert world.plans().preempted() == ["large"]


def test_service_counts_within_a_class_and_classes_come_first() -> None:
    world = world_of_one_node()
    world.has_class("urgent", priority=100)
    world.runs("served_much", on="n1", gpus=8, ran=24 * 60, job_class="urgent")
    world.submits("new", gpus=8)

    assert world.plans().preempted() == []


def test_a_job_that_may_not_be_stopped_is_not() -> None:
    world = world_of_one_node()
    world.runs("served_much", on="n1", gpus=8, ran=24 * 60, preemptible=False)
    world.submits("new", gpus=8)

    assert world.plans().preempted() == []


@pytest.mark.parametrize("policy", [Policy(), Policy(order=OrderWeights(service=10_000))])
def test_nobody_is_stopped_unless_the_site_says_so(policy: Policy) -> None:
    world = world_of_one_node(policy)
    world.runs("served_much", on="n1", gpus=8, ran=24 * 60)
    world.submits("new", gpus=8)

    assert world.plans().preempted() == []


def test_the_explanation_says_what_a_job_had_and_its_level() -> None:
    world = world_of_one_node()
    world.runs("begun", on="n1", gpus=8, ran=19)
    world.submits("new", gpus=8)

    new, begun = (explained(world, name) for name in ("new", "begun"))
    assert new.endswith(" It has not run yet and stands on level 13; lower levels go first.")
    assert begun.endswith(
        " It has run for 19m so far and stands on level 13; lower levels go first."
    )


def explained(world: World, name: str) -> str:
    snapshot = world.scene.snapshot()
    planner = Planner(world.policy)
    made = planner.plan(snapshot)
    return explain(snapshot, made, world.names[name], planner.backlog()).text
