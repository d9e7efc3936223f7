"""Tasks that belong together: one rack, or as few switches as can be."""

from muster.model.reason import NeverFits, NoRoom
from stories.world import World


def two_racks() -> World:
    world = World()
    world.has_nodes("a1", "a2", where=("z1", "ra"))
    world.has_nodes("b1", "b2", where=("z1", "rb"))
    return world


def test_a_rack_local_job_of_sixteen_gpus_gets_one_rack() -> None:
    world = two_racks()
    world.runs("other", on="a1")
    world.submits("train", tasks=2, gpus=8, together="rack")

    assert world.plans().nodes("train") == ["b1", "b2"]


def test_a_rack_local_job_waits_rather_than_straddle_two_racks() -> None:
    world = two_racks()
    world.runs("left", on="a1")
    world.runs("right", on="b1")
    world.submits("train", tasks=2, gpus=8, together="rack")

    why = world.plans().why("train")

    assert isinstance(why, NoRoom)
    assert (why.placed, why.wanted) == (1, 2)


def test_a_rack_local_job_larger_than_every_rack_says_so() -> None:
    world = two_racks()
    world.submits("huge", tasks=3, gpus=8, together="rack")

    assert isinstance(world.plans().why("huge"), NeverFits | NoRoom)


def test_a_job_that_would_rather_have_one_rack_gets_it_where_it_can() -> None:
    world = two_racks()
    world.runs("other", on="a1")
    world.submits("train", tasks=2, gpus=8, rather_together="rack")

    assert world.plans().nodes("train") == ["b1", "b2"]


def test_a_job_that_would_rather_have_one_rack_starts_without() -> None:
    world = two_racks()
    world.runs("left", on="a1")
    world.runs("right", on="b1")
    world.submits("train", tasks=2, gpus=8, rather_together="rack")

    assert world.plans().nodes("train") == ["a2", "b2"]


def test_inside_a_zone_a_job_crosses_as_few_racks_as_it_can() -> None:
    world = World()
    world.has_nodes("a1", where=("z1", "ra"))
    world.has_nodes("b1", where=("z1", "rb"))
    world.has_nodes("c1", "c2", where=("z1", "rc"))
    world.submits("train", tasks=3, gpus=8, together="zone")

    nodes = world.plans().nodes("train")

    assert {"c1", "c2"} < set(nodes)


def test_without_a_wish_a_gang_still_crosses_few_racks() -> None:
    world = World()
    world.has_nodes("a1", where=("z1", "ra"))
    world.has_nodes("b1", where=("z1", "rb"))
    world.has_nodes("c1", "c2", where=("z1", "rc"))
    world.submits("train", tasks=2, gpus=8)

    assert world.plans().nodes("train") == ["c1", "c2"]


def test_racks_of_the_same_name_in_two_zones_are_two_racks() -> None:
    world = World()
    world.has_nodes("a1", where=("z1", "r1"))
    world.has_nodes("b1", where=("z2", "r1"))
    world.submits("train", tasks=2, gpus=8, together="rack")

    assert world.plans().waiting() == ["train"]


def test_a_small_rack_local_job_leaves_the_empty_rack_to_a_larger_one() -> None:
    world = two_racks()
    world.runs("other", on="a1", gpus=8)
    world.submits("small", tasks=1, gpus=8, together="rack")
    world.submits("large", tasks=2, gpus=8, together="rack")

    outcome = world.plans()

    assert outcome.nodes("small") == ["a2"]
    assert outcome.nodes("large") == ["b1", "b2"]


def test_pools_may_name_their_own_levels() -> None:
    world = World()
    world.has_pool("fast", levels=("block", "nvlink"))
    world.has_nodes("g1", "g2", pool="fast", gpus=4, where=("b1", "d1"))
    world.has_nodes("g3", "g4", pool="fast", gpus=4, where=("b1", "d2"))
    world.runs("other", on="g1")
    world.submits("train", tasks=2, gpus=4, together="nvlink")

    assert world.plans().nodes("train") == ["g3", "g4"]


def test_a_level_that_a_pool_does_not_have_cannot_be_required_there() -> None:
    world = World()
    world.has_pool("flat", levels=())
    world.has_nodes("f1", "f2", pool="flat", where=())
    world.submits("train", tasks=2, gpus=8, together="rack")

    assert world.plans().waiting() == ["train"]
