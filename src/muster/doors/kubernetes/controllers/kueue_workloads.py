"""Workloads of Kueue: what each job, or pod, that names a queue looks like to it.

Muster admits jobs and not Workloads: these follow, so that whoever reads them knows how it stands.
"""

import hashlib
from collections.abc import Sequence

from muster.doors.kubernetes.controllers.changes import NOTHING, Create, Draft, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster, controller_uid, kind_name
from muster.doors.kubernetes.controllers.conditions import found, is_true
from muster.doors.kubernetes.controllers.kubeflow.framework import count_of
from muster.doors.kubernetes.controllers.owning import owner_reference
from muster.doors.kubernetes.controllers.pods import condition, is_leaving, phase
from muster.doors.kubernetes.foreign.kinds import KUEUE_WORKLOAD, LOCAL_QUEUE
from muster.doors.kubernetes.objects.kinds import POD
from muster.doors.kubernetes.objects.times import stamp
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    copied,
    items,
    labels_of,
    name_of,
    namespace_of,
    part,
    uid_of,
)
from muster.doors.kubernetes.pods.queue_marks import KUEUE_LABEL
from muster.model.value import Instant

SOURCE = "kueue-workload-controller"
RESERVED, ADMITTED, FINISHED = "QuotaReserved", "Admitted", "Finished"
_HASH = 5


def shown(owner: JsonObject, cluster: Cluster, now: Instant) -> Outcome:
    """The Workload of one job or pod that names a queue, as it stands now."""
    queue = labels_of(owner).get(KUEUE_LABEL)
    is_part = kind_name(owner) == POD.qualified_kind and controller_uid(owner)
    if not queue or is_part or is_leaving(owner):
        return NOTHING
    draft, name = Draft(owner, SOURCE), workload_name(owner)
    held = cluster.get(KUEUE_WORKLOAD, namespace_of(owner), name)
    if held is None:
        draft.make(Create(object=_new(owner, queue, name)))
        return draft.outcome()
    new = {**held, "status": _status(held, owner, cluster, now)}
    if new != held:
        draft.update_status(new)
    return draft.outcome()


def workload_name(owner: JsonObject) -> str:
    """As Kueue calls it: its kind, its name, and something that no other has."""
    kind = str(owner.get("kind", "")).lower()
    mark = hashlib.sha256(f"{kind}/{uid_of(owner)}".encode()).hexdigest()[:_HASH]
    return f"{kind}-{name_of(owner)}"[: 253 - _HASH - 1] + f"-{mark}"


def _new(owner: JsonObject, queue: str, name: str) -> JsonObject:
    return {
        "apiVersion": KUEUE_WORKLOAD.api_version,
        "kind": KUEUE_WORKLOAD.kind,
        "metadata": {
            "name": name,
            "namespace": namespace_of(owner),
            "labels": {"kueue.x-k8s.io/job-uid": uid_of(owner)},
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": {"queueName": queue, "active": True, "podSets": _pod_sets(owner)},
    }


def _pod_sets(owner: JsonObject) -> list[JsonObject]:
    """How many pods of which template, without what is in the templates."""
    spec = part(owner, "spec")
    field = next((each for each in spec if each.endswith("ReplicaSpecs")), None)
    if field is not None:
        roles = part(spec, field)
        return [{"name": role.lower(), "count": count_of(part(roles, role))} for role in roles]
    tasks = items(owner, "spec", "tasks")
    if tasks:
        return [{"name": str(each.get("name")), "count": count_of(each)} for each in tasks]
    return [{"name": "main", "count": int(spec.get("parallelism") or 1)}]


def _status(held: JsonObject, owner: JsonObject, cluster: Cluster, now: Instant) -> JsonObject:
    old = part(held, "status")
    pods = _pods(owner, cluster)
    queue = cluster.get(LOCAL_QUEUE, namespace_of(owner), str(part(held, "spec")["queueName"]))
    above = "" if queue is None else str(part(queue, "spec").get("clusterQueue"))
    is_placed = any(part(each, "spec").get("nodeName") for each in pods)
    over = _end(owner)
    conditions = items(old, "conditions")
    if is_placed or (over and is_true(conditions, ADMITTED)):
        told = ((RESERVED, RESERVED, f"Quota reserved in ClusterQueue {above}"),)
        told += ((ADMITTED, ADMITTED, "The workload is admitted"),)
        said = [_said(conditions, each, now, is_so=True) for each in told]
    else:
        why = _why(owner, pods, queue)
        said = [_said(conditions, (each, "Pending", why), now, is_so=False) for each in (RESERVED,)]
        if is_true(conditions, ADMITTED):
            said.append(_said(conditions, (ADMITTED, "NoReservation", why), now, is_so=False))
    if over:
        said.append(_said(conditions, (FINISHED, *over), now, is_so=True))
    status: JsonObject = {"conditions": said}
    if is_true(said, ADMITTED):
        sets = [{"name": each["name"], "count": each["count"]} for each in _pod_sets(owner)]
        status["admission"] = {"clusterQueue": above, "podSetAssignments": sets}
    return status


def _pods(owner: JsonObject, cluster: Cluster) -> Sequence[JsonObject]:
    if kind_name(owner) == POD.qualified_kind:
        return (owner,)
    return cluster.controlled(POD, namespace_of(owner), uid_of(owner))


def _why(owner: JsonObject, pods: Sequence[JsonObject], queue: JsonObject | None) -> str:
    """Why nothing of it has room yet, as its pods say."""
    if queue is None:
        return f"LocalQueue {labels_of(owner).get(KUEUE_LABEL)} doesn't exist"
    for each in pods:
        scheduled = condition(each, "PodScheduled")
        if scheduled is not None and scheduled.get("message"):
            return str(scheduled["message"])
    return "it waits for its turn"


def _end(owner: JsonObject) -> tuple[str, str] | None:
    """How it ended, in Kueue's word and in its own; None as long as it goes on."""
    state = phase(owner) if kind_name(owner) == POD.qualified_kind else ""
    state = state or str(part(owner, "status", "state").get("phase") or "")
    conditions = items(owner, "status", "conditions")
    for type_, words in _ENDS.items():
        known = found(conditions, type_)
        if state == type_ or (known is not None and known.get("status") == "True"):
            message = "" if known is None else str(known.get("message") or "")
            return words, message or f"it is {words.lower()}"
    return None


_ENDS = {
    "Complete": "Succeeded",
    "Completed": "Succeeded",
    "Succeeded": "Succeeded",
    "Failed": "Failed",
    "Aborted": "Failed",
    "Terminated": "Failed",
}


def _said(
    conditions: Sequence[JsonObject], words: tuple[str, str, str], now: Instant, *, is_so: bool
) -> JsonObject:
    type_, reason, message = words
    status = "True" if is_so else "False"
    old = found(conditions, type_)
    if old is not None and (old["status"], old.get("message")) == (status, message):
        return copied(old)
    is_same = old is not None and old["status"] == status
    since = old["lastTransitionTime"] if old is not None and is_same else stamp(now)
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }
