from muster.backends.slurm.topology import Topology, topology
from muster.model.value import NodeId

TREE = (
    "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=node[1-2]\n"
    "SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=node3\n"
    "SwitchName=spine Level=1 LinkSpeed=1 Nodes=node[1-3] Switches=leaf[1-2]\n"
)


def test_switches_are_racks_and_what_is_above_them() -> None:
    found = topology(TREE)

    assert found.levels == ("block", "rack")
    assert found.places == {
        NodeId("node1"): ("spine", "leaf1"),
        NodeId("node2"): ("spine", "leaf1"),
        NodeId("node3"): ("spine", "leaf2"),
    }


def test_a_tree_in_which_some_nodes_are_deeper_than_others_says_nothing() -> None:
    assert topology(TREE + "SwitchName=alone Level=0 Nodes=node9\n") == Topology()


def test_garbage_says_nothing() -> None:
    assert topology("SwitchName=x Level=-1 Nodes=[[\n\0\nslurm: error\n") == Topology()
    assert topology("SwitchName=x Level=0 Nodes=n[1-\n") == Topology()
