from typing import Any

from muster.lifecycle.marks import marked, own
from muster.model.cluster import Node, Taint
from muster.model.value import ClusterName, NodeId, PoolName


def a_node(**known: Any) -> Node:
    return Node(
        id=NodeId("n1"),
        cluster=ClusterName("c"),
        pool=PoolName("p"),
        cpu_milli=1_000,
        memory_mib=1_000,
        **known,
    )


NODE = a_node(labels={"disk": "ssd"}, taints=(Taint(key="old"),))


def test_what_was_given_comes_beside_what_there_is() -> None:
    found = marked(NODE, {"zone": "a"}, (Taint(key="gpu", value="bad"),))

    assert found.labels == {"disk": "ssd", "zone": "a"}
    assert found.taints == (Taint(key="old"), Taint(key="gpu", value="bad"))
    assert own(found) == NODE


def test_what_is_given_next_takes_the_place_of_what_was() -> None:
    found = marked(marked(NODE, {"zone": "a"}, (Taint(key="gpu"),)), {"rack": "7"}, ())

    assert found.labels == {"disk": "ssd", "rack": "7"}
    assert found.taints == (Taint(key="old"),)


def test_nobody_gives_a_node_another_fact() -> None:
    found = marked(NODE, {"disk": "none"}, (Taint(key="old"),))

    assert found == NODE
    assert marked(a_node(), {}, ()) == a_node()
