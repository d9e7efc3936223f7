"""All tasks of all groups, or nothing; elastic jobs start smaller and grow."""

from muster.model.cluster import Abilities
from muster.model.plan import NoEstimate
from muster.model.policy import Policy
from muster.model.reason import NeverFits, NoRoom
from stories.words import group
from stories.world import World


def test_a_gang_of_eight_with_room_for_seven_holds_nothing() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.runs("one", on="n1", gpus=1)
    world.submits("gang", tasks=8)

    outcome = world.plans()

    assert outcome.started() == []
    assert outcome.why("gang") == NoRoom(group="main", placed=7, wanted=8, nodes=1)


def test_what_a_waiting_gang_leaves_is_free_for_a_job_that_does_not_delay_it() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.runs("one", on="n1", gpus=1, minutes=60)
    world.submits("gang", tasks=8, minutes=60)
    world.submits("quick", gpus=7, minutes=30)

    assert world.plans().started() == ["quick"]


def test_the_gang_starts_whole_when_the_last_gpu_is_free() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.runs("one", on="n1", gpus=1)
    world.submits("gang", tasks=8)
    world.goes_on()

    world.finishes("one")

    assert len(world.plans().placements("gang")) == 8


def test_a_gang_spreads_over_as_many_nodes_as_it_takes() -> None:
    world = World()
    world.has_nodes("n1", "n2", gpus=8)
    world.submits("gang", tasks=4, gpus=4)

    assert world.plans().nodes("gang") == ["n1", "n2"]


def test_a_task_lies_on_one_node_whole() -> None:
    world = World()
    world.has_nodes("n1", "n2", gpus=4)
    world.submits("wide", gpus=8)

    outcome = world.plans()

    assert outcome.why("wide") == NeverFits(group="main", wanted=1, at_most=0)
    assert outcome.expected("wide") is NoEstimate.NEVER


def test_a_gang_larger_than_the_cluster_says_so() -> None:
    world = World()
    world.has_nodes("n1", "n2", gpus=4)
    world.submits("huge", tasks=9)

    outcome = world.plans()

    assert outcome.why("huge") == NeverFits(group="main", wanted=9, at_most=8)
    assert outcome.expected("huge") is NoEstimate.NEVER


def test_all_groups_of_a_job_start_or_none_does() -> None:
    world = World()
    world.has_nodes("n1", gpus=4, cpu=16)
    world.runs("other", on="n1", gpus=0, cpu=8)
    servers = group("server", tasks=2, gpus=0, cpu=8)
    world.submits("job", groups=(group("worker", tasks=4), servers))

    outcome = world.plans()

    why = outcome.why("job")
    assert isinstance(why, NoRoom)
    assert (why.group, why.placed, why.wanted) == ("server", 1, 2)


def test_groups_of_a_job_find_their_own_kind_of_node() -> None:
    world = World()
    world.has_nodes("n1", gpus=4, cpu=8)
    world.has_nodes("c1", gpus=0, cpu=64, pool="cpu")
    servers = group("server", tasks=2, gpus=0, cpu=32)
    world.submits("job", groups=(group("worker", tasks=4), servers))

    assert world.plans().nodes("job") == ["c1", "n1"]


def test_an_elastic_job_starts_smaller() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.runs("other", on="n1", gpus=2)
    world.submits("elastic", tasks=8, at_least=4)

    assert len(world.plans().placements("elastic")) == 6


def test_an_elastic_job_waits_below_its_least_size() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.runs("other", on="n1", gpus=5)
    world.submits("elastic", tasks=8, at_least=4)

    why = world.plans().why("elastic")

    assert isinstance(why, NoRoom)
    assert (why.placed, why.wanted) == (3, 4)


def test_an_elastic_job_starts_as_large_as_its_queue_allows() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.has_queue("nlp", limit=5)
    world.submits("elastic", tasks=8, at_least=4, queue="nlp")

    assert len(world.plans().placements("elastic")) == 5


def test_a_running_elastic_job_grows_into_free_room() -> None:
    world = World()
    world.has_cluster("c", abilities=Abilities(resize=True))
    world.has_nodes("n1", gpus=8)
    world.runs("elastic", on="n1", tasks=8, at_least=4)

    assert world.plans().grown("elastic") == 4


def test_a_running_job_does_not_grow_where_the_cluster_cannot_resize() -> None:
    world = World()
    world.has_cluster("c", abilities=Abilities(resize=False))
    world.has_nodes("n1", gpus=8)
    world.runs("elastic", on="n1", tasks=8, at_least=4)

    assert world.plans().grown("elastic") == 0


def test_a_running_job_does_not_grow_if_policy_says_no() -> None:
    world = World(Policy(grow=False))
    world.has_cluster("c", abilities=Abilities(resize=True))
    world.has_nodes("n1", gpus=8)
    world.runs("elastic", on="n1", tasks=8, at_least=4)

    assert world.plans().grown("elastic") == 0


def test_a_running_job_does_not_grow_onto_a_gpu_that_is_still_cut() -> None:
    world = World()
    world.has_cluster("c", abilities=Abilities(resize=True))
    world.has_nodes("n1", gpus=1)
    world.has_nodes("n2", gpus=1, mig=("1g.5gb@0",))
    world.runs("elastic", on="n1", tasks=2, at_least=1)

    outcome = world.plans()

    assert outcome.grown("elastic") == 0
    assert outcome.repartitions() == []


def test_a_job_that_can_start_goes_before_one_that_could_grow() -> None:
    world = World()
    world.has_cluster("c", abilities=Abilities(resize=True))
    world.has_nodes("n1", gpus=8)
    world.runs("elastic", on="n1", tasks=8, at_least=4)
    world.submits("new", gpus=3)

    outcome = world.plans()

    assert outcome.started() == ["new"]
    assert outcome.grown("elastic") == 1


def test_growing_does_not_delay_a_job_that_waits_for_room() -> None:
    world = World()
    world.has_cluster("c", abilities=Abilities(resize=True))
    world.has_nodes("n1", gpus=8)
    world.runs("short", on="n1", gpus=2, minutes=10)
    world.runs("elastic", on="n1", tasks=4, at_least=2)
    world.submits("waits", gpus=6)

    outcome = world.plans()

    assert outcome.expected("waits") == 10
    assert outcome.grown("elastic") == 0
