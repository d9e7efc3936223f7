import pytest

from muster.backends.fleet import Taken
from muster.backends.slurm.gres import Gres, asked, devices, gres_in
from muster.backends.slurm.listing import Key, held_by_others
from muster.backends.slurm.submission import Manner, submission
from muster.model.gpu import Mig, MpsShare, Slice, TimeShare
from muster.model.launch import Launch
from muster.model.placement import DeviceShare
from muster.model.resources import Resources
from muster.model.value import DeviceId, GpuModel, NodeId, replace
from unit.backends.slurm.given import line, listed, run

MIXED = "gpu:a100:2(S:0-1),gpu:a100_1g.5gb:7(S:0),gpu:a100_3g.20gb:2"
SHARDS = "gpu:a100:4,shard:a100:16(S:0)"
PARTS = "gpu:a100:2,mps:a100:200"
KEY = Key(site="here", job=7, attempt=1)


def test_gres_are_read_with_types_and_what_else_is_said_is_left_out() -> None:
    assert gres_in(MIXED) == (
        Gres(name="gpu", type="a100", count=2),
        Gres(name="gpu", type="a100_1g.5gb", count=7),
        Gres(name="gpu", type="a100_3g.20gb", count=2),
    )
    assert gres_in("gpu:2,license:4K") == (
        Gres(name="gpu", type="", count=2),
        Gres(name="license", type="", count=4_096),
    )
    assert gres_in("(null)") == ()


def test_instances_stand_on_as_few_gpus_as_hold_them_after_the_whole_ones() -> None:
    found = devices("n1", gres_in(MIXED), {})

    assert [each.id for each in found] == [f"n1/gpu{index}" for index in range(4)]
    assert [each.mig is None for each in found] == [True, True, False, False]
    assert {each.model for each in found} == {"A100-40GB"}
    profiles = sorted(made.profile for each in found for made in each.mig or ())
    assert profiles == ["1g.5gb"] * 7 + ["3g.20gb"] * 2


def test_the_gpu_of_an_instance_is_one_that_can_be_cut_so() -> None:
    found = devices("n1", gres_in("gpu:a100_4g.40gb:1,gpu:h100_1g.12gb:1"), {})

    assert [each.model for each in found] == ["A100-80GB", "H100-94GB"]


def test_each_gpu_has_its_part_of_shards_and_of_mps() -> None:
    shared, parted = (devices("n1", gres_in(text), {})[0] for text in (SHARDS, PARTS))

    assert (shared.turns, shared.mps) == (4, False)
    assert (parted.turns, parted.mps) == (0, True)


@pytest.mark.parametrize(
    ("text", "slices", "wanted"),
    [
        ("gpu:a100:4", [(0, None), (1, None)], ("gpu:2",)),
        (MIXED, [(0, None), (1, None)], ("gpu:a100:2",)),
        ("gpu:a100:1,gpu:h100:2", [(0, None), (2, None)], ("gpu:a100:1", "gpu:h100:1")),
        (MIXED, [(2, Mig(profile="1g.5gb"))] * 2, ("gpu:a100_1g.5gb:2",)),
        (SHARDS, [(0, TimeShare(replicas=4))], ("shard:1",)),
        (SHARDS, [(0, TimeShare(replicas=2))], ("shard:2",)),
        (PARTS, [(0, MpsShare(milli=250))], ("mps:25",)),
    ],
)
def test_slurm_is_asked_in_its_own_words(
    text: str, slices: list[tuple[int, Slice | None]], wanted: tuple[str, ...]
) -> None:
    def share(index: int, part: Slice | None) -> tuple[int, DeviceShare]:
        return index, DeviceShare(device=DeviceId(f"n1/gpu{index}"), slice=part)

    assert asked([share(*each) for each in slices], gres_in(text)) == wanted


def test_a_part_of_a_gpu_is_asked_of_the_node() -> None:
    whole = run(Launch(argv=("true",)), ("n1", 1))
    (placement,) = whole.allocation.placements
    share = DeviceShare(device=DeviceId("n1/gpu0"), slice=MpsShare(milli=500))
    placed = replace(placement, devices=(share,))
    shared = replace(whole, allocation=replace(whole.allocation, placements=(placed,)))

    found = submission(shared, KEY, Manner(gres={NodeId("n1"): gres_in(PARTS)}))

    assert "--gres=mps:50" in found.options
    assert found.env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=20480M"


def test_the_instances_of_others_are_not_their_gpus() -> None:
    text = line(
        Comment="",
        tres_alloc="cpu=1,mem=500M,gres/gpu=3,gres/gpu:a100=1",
        tres_per_node="gres:gpu:a100:1,gres:gpu:a100_1g.5gb:2",
    )

    (taken,) = held_by_others(listed(text)).values()

    assert taken.mig == {"1g.5gb": 2}
    assert taken.amount.gpu_milli == 1_000


def test_who_shares_a_gpu_has_it_to_those_who_do_not_share_with_them() -> None:
    text = line(Comment="", tres_alloc="cpu=1,gres/shard=2", tres_per_node="gres:shard:2")

    (taken,) = held_by_others(listed(text)).values()

    assert taken == Taken(amount=Resources(cpu_milli=1_000, gpu_milli=1_000))


def test_an_administrator_says_of_which_gpu_instances_are() -> None:
    (found,) = devices("n1", gres_in("gpu:a100_1g.10gb:1"), {"a100": GpuModel("A100-80GB")})

    assert found.model == "A100-80GB"
