"""What a Node object says that its node in Muster is to have: labels, taints, and its state. Pure.

Muster's taints keep tasks from starting. One of effect NoExecute, which pods also leave for, is a
taint of its own, so that a pod that tolerates one of the two does not tolerate the other.
"""

from muster.doors.kubernetes.objects.value import JsonObject, items, labels_of, part
from muster.doors.kubernetes.pods.nodes_of import labels_of_node
from muster.doors.kubernetes.pods.where_of import NO_EXECUTE, taint_key
from muster.lifecycle.marks import own
from muster.model.cluster import Node, NodeState, Pool, Taint

OF_STATE = "node.kubernetes.io/"
"""Taints that begin so follow from how a node is."""

Marks = tuple[dict[str, str], tuple[Taint, ...]]


def marks_of(obj: JsonObject, node: Node, pool: Pool | None) -> Marks:
    """The labels and taints of the object that the node does not have of its own."""
    bare = own(node)
    derived = labels_of_node(bare, pool)
    labels = {key: value for key, value in labels_of(obj).items() if key not in derived}
    taints = tuple(
        Taint(key=taint_key(str(each["key"]), str(each["effect"])), value=each.get("value") or "")
        for each in items(obj, "spec", "taints")
        if each.get("effect") in ("NoSchedule", NO_EXECUTE)
        and not str(each["key"]).startswith(OF_STATE)
    )
    return labels, taints


def state_of(obj: JsonObject, node: Node) -> NodeState:
    """Cordoned is draining; a node that is down comes back by itself."""
    if node.state is NodeState.DOWN:
        return node.state
    is_cordoned = bool(part(obj, "spec").get("unschedulable"))
    return NodeState.DRAINING if is_cordoned else NodeState.UP
