import pytest

from controller.desk import Desk
from muster.controller.messages import Caller
from muster.controller.use_cases.service import NodeChange
from muster.lifecycle.refusal import NodeIsDown
from muster.model.cluster import NodeState
from muster.model.errors import RefusedError
from muster.model.event import NodeChanged, NodeSeen
from muster.model.value import Instant, NodeId, UserName, replace

NODE = NodeId("n1")
ROOT = UserName("root")


def test_a_node_that_is_down_is_known_and_cannot_be_drained() -> None:
    desk = Desk(nodes=1, gpus=1)
    desk.applies(NodeChanged(at=Instant(0), node=NODE, state=NodeState.DOWN, by=ROOT))
    drain = NodeChange(Caller(user=ROOT, door="test"), NODE, NodeState.DRAINING, "new fans")

    with pytest.raises(RefusedError, match="comes back by itself") as refused:
        desk.simulation.journal.write(drain.apply).result()

    assert refused.value.reason == NodeIsDown(node=NODE)


def test_a_node_that_its_cluster_takes_back_takes_work_again() -> None:
    desk = Desk(nodes=1, gpus=1)
    there = desk.simulation.journal.record.nodes[NODE]
    drained = replace(there, state=NodeState.DRAINING, reason="cordoned")
    desk.applies(NodeSeen(at=Instant(0), node=drained))

    desk.applies(NodeSeen(at=Instant(0), node=there))

    assert desk.simulation.journal.record.nodes[NODE].state is NodeState.UP


def test_a_node_that_a_person_drained_stays_so_whatever_its_cluster_says() -> None:
    desk = Desk(nodes=1, gpus=1)
    there = desk.simulation.journal.record.nodes[NODE]
    drain = NodeChange(Caller(user=ROOT, door="test"), NODE, NodeState.DRAINING, "new fans")
    desk.simulation.journal.write(drain.apply).result()

    desk.applies(NodeSeen(at=Instant(0), node=there))

    found = desk.simulation.journal.record.nodes[NODE]
    assert (found.state, found.drained_by) == (NodeState.DRAINING, ROOT)
