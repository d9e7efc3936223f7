"""Parts of a GPU: MIG instances, MPS shares, time shares; one kind of use at a time."""

import pytest

from muster.model.cluster import Abilities
from muster.model.gpu import Enforcement, MigInstance
from muster.model.policy import Policy
from muster.model.queue import PreemptMode
from muster.model.reason import NeverFits
from stories.words import GroupAsked
from stories.world import World

CUT = ("1g.5gb@0", "1g.5gb@1", "2g.10gb@2", "3g.20gb@4")


def test_tenants_of_two_profiles_share_one_a100() -> None:
    world = World()
    world.has_nodes("n1", gpus=1, mig=CUT)
    world.submits("small", mig="1g.5gb")
    world.submits("large", mig="2g.10gb")

    outcome = world.plans()

    assert outcome.started() == ["small", "large"]
    assert outcome.repartitions() == []
    assert {share.device for share in outcome.devices("small") + outcome.devices("large")} == {
        "n1/0"
    }


def test_a_mig_instance_has_one_tenant() -> None:
    world = World(Policy(repartition=False))
    world.has_nodes("n1", gpus=1, mig=CUT)
    world.submits_many("j", 3, mig="1g.5gb")

    outcome = world.plans()

    assert len(outcome.started()) == 2
    assert {outcome.devices("j1")[0].start, outcome.devices("j2")[0].start} == {0, 1}


def test_one_task_may_have_several_instances() -> None:
    world = World(Policy(repartition=False))
    world.has_nodes("n1", gpus=1, mig=CUT)
    world.submits("pair", gpus=2, mig="1g.5gb")

    assert [share.start for share in world.plans().devices("pair")] == [0, 1]


def test_an_idle_gpu_is_cut_for_a_tenant_that_needs_a_slice() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.submits("small", mig="1g.5gb")

    outcome = world.plans()

    assert outcome.started() == ["small"]
    (cut,) = outcome.repartitions()
    start = outcome.devices("small")[0].start
    assert start is not None
    assert MigInstance(profile="1g.5gb", start=start) in (cut.instances or ())


def test_an_idle_gpu_is_cut_again_and_instances_in_use_stay() -> None:
    world = World()
    world.has_nodes("n1", gpus=1, mig=("1g.5gb@0", "1g.5gb@1", "1g.5gb@2", "1g.5gb@3"))
    world.runs("tenant", on="n1", mig="1g.5gb")
    world.submits("large", mig="3g.20gb")

    outcome = world.plans()

    assert outcome.started() == ["large"]
    (cut,) = outcome.repartitions()
    assert MigInstance(profile="1g.5gb", start=0) in (cut.instances or ())


def test_seven_small_tenants_fill_an_a100_and_the_eighth_waits() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.submits_many("j", 8, mig="1g.5gb")

    assert len(world.plans().started()) == 7


def test_the_cut_lasts_into_the_next_cycle() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.submits_many("first", 3, mig="2g.10gb")
    world.goes_on()
    world.submits("last", mig="1g.5gb")

    outcome = world.goes_on()

    assert outcome.started() == ["last"]


@pytest.mark.parametrize(
    ("profile", "fit"),
    [("1g.5gb+me", 1), ("2g.10gb", 3), ("3g.20gb", 2), ("4g.20gb", 1), ("7g.40gb", 1)],
)
def test_as_many_instances_fit_as_the_geometry_allows(profile: str, fit: int) -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.submits_many("j", 4, mig=profile)

    assert len(world.plans().started()) == fit


def test_a_gpu_is_not_cut_when_policy_forbids_it() -> None:
    world = World(Policy(repartition=False))
    world.has_nodes("n1", gpus=1)
    world.submits("small", mig="1g.5gb")

    assert world.plans().waiting() == ["small"]


def test_a_gpu_is_not_cut_where_the_cluster_cannot() -> None:
    world = World()
    world.has_cluster("c", abilities=Abilities(repartition=False))
    world.has_nodes("n1", gpus=1)
    world.submits("small", mig="1g.5gb")

    assert world.plans().waiting() == ["small"]


def test_a_gpu_is_not_cut_when_a_slice_is_free_elsewhere() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.has_nodes("n2", gpus=1, mig=CUT)
    world.submits("small", mig="1g.5gb")

    outcome = world.plans()

    assert outcome.repartitions() == []
    assert outcome.nodes("small") == ["n2"]


def test_an_idle_cut_gpu_is_made_whole_for_a_job_that_needs_all_of_it() -> None:
    world = World()
    world.has_nodes("n1", gpus=1, mig=CUT)
    world.submits("whole")

    outcome = world.plans()

    assert outcome.started() == ["whole"]
    assert [cut.instances for cut in outcome.repartitions()] == [None]


def test_a_gpu_with_a_mig_tenant_is_not_made_whole() -> None:
    world = World()
    world.has_nodes("n1", gpus=1, mig=CUT)
    world.runs("tenant", on="n1", mig="1g.5gb")
    world.submits("whole")

    assert world.plans().waiting() == ["whole"]


def test_a_profile_that_the_model_does_not_have_never_fits() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.submits("wrong", mig="1g.18gb")

    assert isinstance(world.plans().why("wrong"), NeverFits)


def test_a_profile_finds_the_model_that_has_it() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.has_nodes("h1", gpus=1, model="H200-141GB", pool="h200")
    world.submits("right", mig="1g.18gb")

    assert world.plans().nodes("right") == ["h1"]


def test_a_tenant_of_a_mig_instance_is_requeued_where_others_would_be_suspended() -> None:
    world = World()
    world.has_nodes("n1", gpus=1, mig=CUT)
    world.has_class("normal", mode="suspend")
    world.has_class("urgent", priority=100, preempts=("normal",))
    world.runs("tenant", on="n1", mig="1g.5gb")
    world.submits("inference", job_class="urgent")

    preempting = world.goes_on()
    cutting = world.goes_on()
    world.finishes("inference")

    assert preempting.preemption("tenant").mode is PreemptMode.REQUEUE
    assert (cutting.started(), cutting.waiting()) == (["inference"], ["tenant"])
    assert [cut.instances for cut in cutting.repartitions()] == [None]
    assert world.plans().started() == ["tenant"]


def test_a_tenant_of_an_mps_share_is_suspended_like_any_other() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.has_class("urgent", priority=100, preempts=("normal",))
    world.runs("tenant", on="n1", mps=500, mode="suspend")
    world.submits("inference", job_class="urgent")

    assert world.plans().preemption("tenant").mode is PreemptMode.SUSPEND


WHOLE: GroupAsked = {}
MIG: GroupAsked = {"mig": "1g.5gb"}
MPS: GroupAsked = {"mps": 250}
TIME: GroupAsked = {"time_share": 4}


@pytest.mark.parametrize(
    ("first", "second"),
    [(a, b) for a in (WHOLE, MIG, MPS, TIME) for b in (WHOLE, MIG, MPS, TIME) if a != b],
)
def test_two_kinds_of_use_never_mix_on_one_gpu(first: GroupAsked, second: GroupAsked) -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.submits("first", **first)
    world.goes_on()
    world.submits("second", **second)

    assert world.plans().waiting() == ["second"]


def test_mps_shares_add_up_to_one_gpu() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.submits_many("half", 3, mps=500)

    assert len(world.plans().started()) == 2


@pytest.mark.parametrize("part", [MPS, TIME], ids=["mps", "time"])
def test_shares_of_one_task_are_on_devices_of_their_own(part: GroupAsked) -> None:
    world = World()
    world.has_nodes("n1", gpus=2)
    world.submits("pair", **{**part, "gpus": 2})
    world.submits("three", **{**part, "gpus": 3})

    outcome = world.plans()

    assert outcome.started() == ["pair"]
    assert outcome.waiting() == ["three"]


def test_mps_tenants_share_the_memory_of_the_gpu_too() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.submits_many("hungry", 3, mps=100, mps_memory_gib=20)

    assert len(world.plans().started()) == 2


def test_time_shares_give_as_many_turns_as_they_say() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.submits_many("turn", 5, time_share=4)

    assert len(world.plans().started()) == 4


def test_time_shares_of_different_size_do_not_share_a_gpu() -> None:
    world = World()
    world.has_nodes("n1", gpus=2)
    world.submits_many("four", 2, time_share=4)
    world.submits_many("two", 2, time_share=2)

    outcome = world.plans()

    devices = {name: outcome.devices(name)[0].device for name in outcome.started()}
    assert devices["four1"] == devices["four2"] != devices["two1"] == devices["two2"]


@pytest.mark.parametrize(
    ("asked", "enforced"),
    [
        (WHOLE, Enforcement.HARDWARE),
        (MIG, Enforcement.HARDWARE),
        (MPS, Enforcement.DRIVER),
        (TIME, Enforcement.NONE),
    ],
)
def test_each_placement_says_how_its_limit_is_kept(
    asked: GroupAsked, enforced: Enforcement
) -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.submits("job", **asked)

    assert [share.enforced for share in world.plans().devices("job")] == [enforced]


@pytest.mark.parametrize(
    ("asked", "abilities"),
    [
        (MIG, Abilities(mig=False)),
        (MPS, Abilities(mps=False)),
        (TIME, Abilities(time_share=False)),
    ],
)
def test_a_slice_goes_only_where_the_cluster_can_make_it(
    asked: GroupAsked, abilities: Abilities
) -> None:
    world = World()
    world.has_cluster("c", abilities=abilities)
    world.has_nodes("n1", gpus=1)
    world.submits("job", **asked)

    assert world.plans().waiting() == ["job"]
