"""What others hold is missing: also of GPUs that are split, whose parts nobody can tell apart."""

from muster.backends.fleet import Taken, without
from muster.model.cluster import Node
from muster.model.gpu import Device, TimeShare
from muster.model.placement import DeviceShare
from muster.model.resources import Resources
from muster.model.value import ClusterName, DeviceId, GpuModel, NodeId, PoolName

TWO = tuple(
    Device(
        id=DeviceId(f"gpu{index}"),
        index=index,
        model=GpuModel("A100-40GB"),
        memory_mib=40_960,
        turns=4,
        mps=False,
        split=True,
    )
    for index in range(2)
)
NODE = Node(
    id=NodeId("n1"),
    cluster=ClusterName("pods"),
    pool=PoolName("pods"),
    cpu_milli=8_000,
    memory_mib=8_192,
    devices=TWO,
)
OURS = DeviceShare(device=DeviceId("gpu0"), slice=TimeShare(replicas=4))


def left(parts: int, *ours: DeviceShare) -> list[tuple[str, bool]]:
    """The GPUs that are left when others have so many parts, and whether they take work."""
    found = without(NODE, Taken(amount=Resources(gpu_milli=1_000 * parts)), ours)
    return [(each.id, each.healthy) for each in found.devices]


def test_others_have_as_few_gpus_as_their_parts_come_to() -> None:
    assert left(0) == [("gpu0", True), ("gpu1", True)]
    assert left(1) == left(4) == [("gpu0", True)]
    assert left(5) == []


def test_where_parts_of_ours_and_of_others_meet_no_more_are_given_away() -> None:
    assert left(4, OURS) == [("gpu0", True)]
    assert left(5, OURS) == [("gpu0", False)]
