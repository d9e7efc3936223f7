import pytest

from controller.desk import Desk
from muster.controller.messages import Caller
from muster.controller.use_cases.service import NodeChange
from muster.lifecycle.refusal import NodeIsDown
from muster.model.cluster import NodeState
from muster.model.errors import RefusedError
from muster.model.event import NodeChanged
from muster.model.value import Instant, NodeId, UserName

NODE = NodeId("n1")
ROOT = UserName("root")


def test_a_node_that_is_down_is_known_and_cannot_be_drained() -> None:
    desk = Desk(nodes=1, gpus=1)
    desk.applies(NodeChanged(at=Instant(0), node=NODE, state=NodeState.DOWN, by=ROOT))
    drain = NodeChange(Caller(user=ROOT, door="test"), NODE, NodeState.DRAINING, "new fans")

    with pytest.raises(RefusedError, match="comes back by itself") as refused:
        desk.simulation.journal.write(drain.apply).result()

    assert refused.value.reason == NodeIsDown(node=NODE)
