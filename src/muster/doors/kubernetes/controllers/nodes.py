"""Taints that follow from what a node says of itself, and pods that leave because of taints."""

from muster.doors.kubernetes.controllers.changes import NOTHING, Delete, Draft, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster
from muster.doors.kubernetes.controllers.conditions import found
from muster.doors.kubernetes.controllers.placing import tolerates
from muster.doors.kubernetes.controllers.pods import is_finished, is_leaving
from muster.doors.kubernetes.objects.kinds import NODE
from muster.doors.kubernetes.objects.times import after, stamp
from muster.doors.kubernetes.objects.value import JsonObject, items, name_of, namespace_of, part
from muster.model.value import Instant

SOURCE = "taint-eviction-controller"
PREFIX = "node.kubernetes.io/"

# Condition and its status: the taint.
OF_CONDITIONS = {
    ("Ready", "False"): "not-ready",
    ("Ready", "Unknown"): "unreachable",
    ("MemoryPressure", "True"): "memory-pressure",
    ("DiskPressure", "True"): "disk-pressure",
    ("PIDPressure", "True"): "pid-pressure",
    ("NetworkUnavailable", "True"): "network-unavailable",
}
DRIVES_PODS_AWAY = ("not-ready", "unreachable")
OURS = {PREFIX + name for name in (*OF_CONDITIONS.values(), "unschedulable")}


def taint(node: JsonObject, cluster: Cluster, now: Instant) -> Outcome:  # noqa: ARG001 - as all are
    """Give a node the taints that follow from its state, and take those that no longer do."""
    wanted = _wanted(node)
    held = items(node, "spec", "taints")
    kept = [each for each in held if each["key"] not in OURS or _pair(each) in wanted]
    there = {_pair(each) for each in kept}
    added = [
        {"effect": effect, "key": key, "timeAdded": stamp(now)}
        for key, effect in wanted
        if (key, effect) not in there
    ]
    if not added and len(kept) == len(held):
        return NOTHING
    spec = {key: value for key, value in part(node, "spec").items() if key != "taints"}
    if kept + added:
        spec["taints"] = kept + added
    draft = Draft(node, SOURCE)
    draft.update({**node, "spec": spec})
    return draft.outcome()


def evict(pod: JsonObject, cluster: Cluster, now: Instant) -> Outcome:
    """Delete a pod that does not tolerate a taint of its node, when its patience is over."""
    where = part(pod, "spec").get("nodeName")
    node = cluster.get(NODE, "", where) if where else None
    if node is None or is_leaving(pod) or is_finished(pod):
        return NOTHING
    times = [_leaves_at(each, pod) for each in items(node, "spec", "taints") if _expels(each)]
    due = [each for each in times if each is not None]
    draft = Draft(pod, SOURCE)
    if due and min(due) <= now:
        words = f"Marking for deletion Pod {namespace_of(pod)}/{name_of(pod)}"
        draft.update_status(_told_to_leave(pod, now))
        draft.emit("TaintManagerEviction", words)
        draft.remove(Delete(object=pod))
    elif due:
        draft.look_again(min(due))
    return draft.outcome()


def _wanted(node: JsonObject) -> list[tuple[str, str]]:
    names: list[tuple[str, str]] = []
    if part(node, "spec").get("unschedulable"):
        names.append(("unschedulable", "NoSchedule"))
    for (type_, status), name in OF_CONDITIONS.items():
        held = found(items(node, "status", "conditions"), type_)
        if held is not None and held.get("status") == status:
            names.append((name, "NoSchedule"))
            if name in DRIVES_PODS_AWAY:
                names.append((name, "NoExecute"))
    return [(PREFIX + name, effect) for name, effect in names]


def _pair(taint_: JsonObject) -> tuple[str, str]:
    return taint_["key"], taint_["effect"]


def _expels(taint_: JsonObject) -> bool:
    return taint_.get("effect") == "NoExecute"


def _leaves_at(taint_: JsonObject, pod: JsonObject) -> Instant | None:
    """When a pod must leave because of a taint; None if it may stay for ever."""
    tolerated = [each for each in items(pod, "spec", "tolerations") if tolerates(each, taint_)]
    if not tolerated:
        return Instant(0)
    patience = [each["tolerationSeconds"] for each in tolerated if "tolerationSeconds" in each]
    if not patience:
        return None
    return after(taint_.get("timeAdded"), max(0, min(patience))) or Instant(0)


def _told_to_leave(pod: JsonObject, now: Instant) -> JsonObject:
    status = part(pod, "status")
    reason: JsonObject = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastTransitionTime": stamp(now),
        "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint",
    }
    others = [e for e in items(pod, "status", "conditions") if e["type"] != "DisruptionTarget"]
    return {**pod, "status": {**status, "conditions": [*others, reason]}}
