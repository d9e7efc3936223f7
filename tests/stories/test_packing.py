"""Which of the nodes that fit: what remains should be of use to the jobs that usually come."""

from muster.model.policy import Packing, Policy
from stories.world import World


def test_small_jobs_are_packed_so_that_a_node_stays_free_for_a_large_one() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.submits_many("small", 4, gpus=2)
    world.goes_on()
    world.submits("large", gpus=8)

    assert world.plans().started() == ["large"]


def test_spreading_does_the_opposite() -> None:
    world = World(Policy(packing=Packing.SPREAD))
    world.has_nodes("n1", "n2")
    world.submits_many("small", 4, gpus=2)

    outcome = world.goes_on()
    world.submits("large", gpus=8)

    assert [outcome.nodes(name) for name in outcome.started()].count(["n1"]) == 2
    assert world.plans().waiting() == ["large"]


def test_a_job_fills_the_gap_that_fits_it() -> None:
    world = World()
    world.has_nodes("n1", "n2", "n3")
    world.runs("four", on="n2", gpus=4)
    world.runs("six", on="n3", gpus=6)
    world.submits("pair", gpus=2)

    assert world.plans().nodes("pair") == ["n3"]


def test_a_small_job_goes_where_what_remains_suits_what_usually_comes() -> None:
    world = World()
    world.usually_sees(10, gpus=4)
    world.has_nodes("n1", "n2")
    world.runs("three", on="n1", gpus=3)
    world.runs("four", on="n2", gpus=4)
    world.submits("one", gpus=1)

    assert world.plans().nodes("one") == ["n1"]


def test_shares_are_put_on_a_gpu_that_is_shared_already() -> None:
    world = World()
    world.has_nodes("n1", "n2", gpus=2)
    world.runs("half", on="n2", mps=500)
    world.submits("quarter", mps=250)

    outcome = world.plans()

    assert outcome.devices("quarter")[0].device == "n2/0"


def test_slices_are_put_on_a_gpu_that_is_cut_already() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.has_nodes("n2", gpus=1, mig=("1g.5gb@0",))
    world.runs("tenant", on="n2", mig="1g.5gb")
    world.submits("large", mig="3g.20gb")

    assert world.plans().nodes("large") == ["n2"]


def test_a_job_without_gpus_keeps_off_gpu_nodes_where_it_can() -> None:
    world = World()
    world.has_nodes("n1", cpu=16)
    world.has_nodes("c1", gpus=0, cpu=16)
    world.submits("compile", gpus=0, cpu=16)

    assert world.plans().nodes("compile") == ["c1"]


def test_a_job_that_takes_any_gpu_leaves_the_scarce_ones_to_who_needs_them() -> None:
    world = World()
    world.usually_sees(10, gpus=1, gpu_memory_gib=60)
    world.has_nodes("n1", gpus=1, model="A100-80GB")
    world.has_nodes("n2", gpus=1, model="A100-40GB")
    world.submits("any")

    assert world.plans().nodes("any") == ["n2"]
