"""How queues of Kueue are: what waits and runs in them, and what it uses. Pure."""

from collections.abc import Iterable

from muster.controller.messages import QueueUse
from muster.doors.kubernetes.importing.amounts import resource_of, written
from muster.doors.kubernetes.objects.times import stamp
from muster.doors.kubernetes.objects.value import JsonObject, items, part
from muster.model.value import Instant


def queue_status(obj: JsonObject, use: QueueUse | None, now: Instant) -> JsonObject:
    """The status of a ClusterQueue or a LocalQueue; use: None where it is no queue yet."""
    old = part(obj, "status")
    if use is None:
        why = "ClusterQueueDoesNotExist", "Can't submit new workloads to clusterQueue"
        return {**old, "conditions": [_active(old, why, now, is_so=False)]}
    why = "Ready", "Can admit new workloads"
    if obj.get("kind") == "LocalQueue":
        why = "Ready", "Can submit new workloads to localQueue"
    usage = _usage(obj, use)
    found: JsonObject = {
        "conditions": [_active(old, why, now, is_so=True)],
        "pendingWorkloads": use.waiting,
        "reservingWorkloads": use.running,
        "admittedWorkloads": use.running,
    }
    return {**found, "flavorsUsage": usage, "flavorsReservation": usage} if usage else found


def _active(old: JsonObject, why: tuple[str, str], now: Instant, *, is_so: bool) -> JsonObject:
    reason, message = why
    status = "True" if is_so else "False"
    same = [each for each in items(old, "conditions") if each.get("status") == status]
    before: JsonObject = same[0] if same else {}
    return {
        "type": "Active",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": before.get("lastTransitionTime") or stamp(now),
    }


def _usage(obj: JsonObject, use: QueueUse) -> list[JsonObject]:
    """What is used of each flavor, by the lines of the queue's quota."""
    used = {resource_of(each.quota.scope): each for each in use.quotas}
    found: list[JsonObject] = []
    for group in items(part(obj, "spec"), "resourceGroups"):
        for flavor in items(group, "flavors"):
            names = _names(flavor)
            told = [
                {"name": name, "total": written(used[name].quota.scope, used[name].used)}
                for name in names
                if name in used
            ]
            found.append({"name": str(flavor.get("name")), "resources": told})
    return found


def _names(flavor: JsonObject) -> Iterable[str]:
    return [str(each.get("name")) for each in items(flavor, "resources")]
