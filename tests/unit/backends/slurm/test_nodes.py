import pytest

from muster.backends.fleet import Taken, without
from muster.backends.slurm.nodes import Fleet, Partition, duration, nodes, partitions
from muster.model.cluster import Node, NodeState
from muster.model.placement import DeviceShare
from muster.model.resources import Resources
from muster.model.value import ClusterName, DeviceId, GpuModel, PoolName
from unit.backends.slurm.given import node

GPU = Partition(name="gpu", is_default=True)
FLEET = Fleet(cluster=ClusterName("lab"), partitions=(GPU, Partition(name="cpu")))
LINE = (
    "NodeName=n1 Arch=x86_64 CPUAlloc=0 CPUEfctv=64 CPUTot=64 ActiveFeatures=nvlink,a "
    "Gres=gpu:a100:2(S:0-1) OS=Linux 6.1 #1 SMP RealMemory=512000 State=IDLE "
    "Partitions=cpu,gpu  Reason=none"
)


def seen(text: str, fleet: Fleet) -> tuple[Node, ...]:
    return tuple(each.node for each in nodes(text, fleet))


def test_a_node_is_in_the_default_one_of_its_partitions() -> None:
    (found,) = seen(LINE, FLEET)

    assert (found.id, found.pool, found.state) == ("n1", PoolName("gpu"), NodeState.UP)
    assert (found.cpu_milli, found.memory_mib) == (64_000, 512_000)
    assert [each.model for each in found.devices] == ["A100-40GB", "A100-40GB"]
    assert found.labels == {"nvlink": "", "a": ""}


def test_the_administrator_says_which_gpu_a_type_is() -> None:
    fleet = Fleet(
        cluster=ClusterName("lab"), partitions=(GPU,), models={"a100": GpuModel("A100-80GB")}
    )

    (found,) = seen(LINE, fleet)

    assert found.devices[0].model == "A100-80GB"
    assert found.devices[0].memory_mib == 81_920


def test_nodes_of_other_partitions_are_not_ours() -> None:
    only = Fleet(cluster=ClusterName("lab"), partitions=(GPU,), only=("cpu",))

    assert seen(LINE, only) == ()


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("MIXED", NodeState.UP),
        ("IDLE+PLANNED", NodeState.UP),
        ("IDLE*", NodeState.DOWN),
        ("DOWN+DRAIN", NodeState.DOWN),
        ("IDLE+DRAIN", NodeState.DRAINING),
        ("ALLOCATED+DRAINING", NodeState.DRAINING),
        ("INVAL", NodeState.DOWN),
    ],
)
def test_the_state_is_what_it_can_do(said: str, state: NodeState) -> None:
    (found,) = seen(LINE.replace("State=IDLE", f"State={said}"), FLEET)

    assert found.state is state
    assert bool(found.reason) is (state is not NodeState.UP)


def test_others_take_those_devices_that_we_do_not_hold() -> None:
    taken = Taken(amount=Resources(cpu_milli=4_000, memory_mib=1_024, gpu_milli=2_000))

    left = without(node("n1"), taken, [DeviceShare(device=DeviceId("n1/gpu3"))])

    assert [each.index for each in left.devices] == [0, 3]
    assert (left.cpu_milli, left.memory_mib) == (60_000, 510_976)


def test_partitions_come_with_their_longest_time() -> None:
    text = (
        "PartitionName=b Default=NO MaxTime=1-00:00:00 State=UP\n"
        "PartitionName=a Default=YES MaxTime=UNLIMITED State=UP\n"
    )

    assert partitions(text) == (
        Partition(name="a", is_default=True),
        Partition(name="b", max_time=duration("1-00:00:00")),
    )
    assert duration("1-00:00:00") == 86_400_000
    assert duration("30:00") == 1_800_000
    assert duration("UNLIMITED") is None


def test_numbers_that_are_none_offer_nothing_and_end_nobody() -> None:
    (found,) = seen(LINE.replace("RealMemory=512000", "RealMemory=lots"), FLEET)

    assert found.memory_mib == 0


def test_nothing_starts_in_a_partition_that_is_not_up() -> None:
    (closed,) = partitions("PartitionName=gpu Default=YES MaxTime=UNLIMITED State=DRAIN\n")
    fleet = Fleet(cluster=ClusterName("lab"), partitions=(closed,))

    (found,) = nodes(LINE, fleet)

    assert found.node.state is NodeState.DRAINING
    assert found.node.reason == "partition gpu is DRAIN"


def test_a_prefix_is_before_all_names_and_slurms_own_is_kept() -> None:
    fleet = Fleet(cluster=ClusterName("lab"), partitions=(Partition(name="gpu"),), prefix="b-")

    (found,) = nodes(LINE, fleet)

    assert (found.node.id, found.node.pool, found.name) == ("b-n1", "b-gpu", "n1")
    assert found.node.devices[0].id == "b-n1/gpu0"
