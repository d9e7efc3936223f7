"""Many jobs that ask for the same: what keeps one keeps all, and no job between them is missed."""

from muster.model.plan import NoEstimate
from muster.model.reason import Behind, NoRoom
from stories.world import World


def crowded() -> World:
    """Two nodes with one GPU free on each, beside jobs without a known end."""
    world = World()
    world.has_nodes("n1", "n2", gpus=4)
    world.runs("old1", user="old", on="n1", gpus=3)
    world.runs("old2", user="old", on="n2", gpus=3)
    return world


def test_a_small_job_between_many_large_ones_has_its_turn() -> None:
    world = crowded()
    world.submits_many("before", 5, user="ann", gpus=2)
    world.submits("small", user="bob", gpus=1)
    world.submits_many("after", 5, user="ann", gpus=2)

    outcome = world.plans()

    assert outcome.started() == ["small"]
    assert len(outcome.waiting()) == 10


def test_all_of_a_crowd_learn_the_same_reason() -> None:
    world = crowded()
    world.submits_many("large", 12, user="ann", gpus=2)

    outcome = world.plans()

    reasons = {outcome.why(name) for name in outcome.waiting()}
    assert reasons == {NoRoom(group="main", placed=0, wanted=1, nodes=2)}
    assert {outcome.expected(name) for name in outcome.waiting()} == {NoEstimate.UNBOUNDED}


def test_small_jobs_of_several_users_start_in_turn_among_large_ones() -> None:
    world = crowded()
    for user in ("ann", "bob", "eve"):
        world.submits_many(f"{user}-large", 3, user=user, gpus=2)
        world.submits(f"{user}-small", user=user, gpus=1)
        world.submits_many(f"{user}-more", 3, user=user, gpus=2)

    outcome = world.plans()

    assert outcome.started() == ["ann-small", "bob-small"]
    assert outcome.why("eve-small") == NoRoom(group="main", placed=0, wanted=1, nodes=2)


def test_a_crowd_behind_a_dated_job_waits_behind_it() -> None:
    world = World()
    world.has_nodes("n1", gpus=4)
    world.runs("train", on="n1", gpus=2, minutes=60)
    world.submits("big", gpus=4, minutes=60)
    world.submits_many("small", 40, gpus=1, minutes=90)

    outcome = world.plans()

    assert outcome.started() == []
    assert outcome.expected("big") == 60
    reasons = {type(outcome.why(name)) for name in outcome.waiting() if name != "big"}
    assert reasons == {Behind}


def test_jobs_of_a_crowd_take_what_comes_free_one_after_the_other() -> None:
    world = crowded()
    world.submits_many("large", 6, user="ann", gpus=2)
    world.goes_on()

    world.finishes("old1")

    assert len(world.plans().started()) == 2
