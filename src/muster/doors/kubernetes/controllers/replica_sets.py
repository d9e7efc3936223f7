"""ReplicaSets and ReplicationControllers: as many pods as wanted, no more and no fewer."""

from collections.abc import Sequence

from muster.doors.kubernetes.controllers.amounts import without_zeros
from muster.doors.kubernetes.controllers.changes import Draft, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster, controller_uid
from muster.doors.kubernetes.controllers.conditions import found, without
from muster.doors.kubernetes.controllers.owning import claimed, named, pod_from
from muster.doors.kubernetes.controllers.pods import (
    first_to_go,
    is_active,
    is_available,
    is_leaving,
    is_ready,
    is_terminating,
    next_available,
)
from muster.doors.kubernetes.controllers.selecting import selects_all
from muster.doors.kubernetes.objects.kinds import POD, REPLICA_SET
from muster.doors.kubernetes.objects.times import stamp
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    items,
    labels_of,
    metadata,
    name_of,
    namespace_of,
    part,
    uid_of,
)
from muster.model.value import Instant

SOURCES = {
    "ReplicaSet": "replicaset-controller",
    "ReplicationController": "replication-controller",
}
MOST_AT_ONCE = 500
"""As many pods are created or deleted in one look; the next look does the rest."""


def sync(replica_set: JsonObject, cluster: Cluster, now: Instant) -> Outcome:
    """Create or delete pods until there are as many as wanted, and say how many there are."""
    draft = Draft(replica_set, SOURCES[replica_set["kind"]])
    pods = claimed(draft, cluster, POD)
    active = [pod for pod in pods if is_active(pod)]
    wanted = part(replica_set, "spec").get("replicas", 1)
    if not is_leaving(replica_set):
        _create(draft, cluster, now, wanted - len(active))
        _delete(draft, cluster, active, len(active) - wanted)
    status = _status(replica_set, cluster, pods, now)
    if status != part(replica_set, "status"):
        draft.update_status({**replica_set, "status": status})
    draft.look_again(next_available(active, _min_ready_s(replica_set), now))
    return draft.outcome()


def _create(draft: Draft, cluster: Cluster, now: Instant, missing: int) -> None:
    owner = draft.about
    for ordinal in range(min(missing, MOST_AT_ONCE)):
        pod = named(pod_from(owner["spec"]["template"], owner), cluster, now, ordinal=ordinal)
        draft.create(pod, "SuccessfulCreate", f"Created pod: {name_of(pod)}")


def _delete(draft: Draft, cluster: Cluster, active: Sequence[JsonObject], surplus: int) -> None:
    if surplus <= 0:
        return
    related = _pods_of_siblings(draft.about, cluster)
    for pod in first_to_go(active, neighbours=related)[: min(surplus, MOST_AT_ONCE)]:
        draft.delete(pod, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")


def _pods_of_siblings(replica_set: JsonObject, cluster: Cluster) -> list[JsonObject]:
    """Pods of every ReplicaSet that the same Deployment manages."""
    space, manager = namespace_of(replica_set), controller_uid(replica_set)
    siblings = cluster.controlled(REPLICA_SET, space, manager) if manager else [replica_set]
    return [pod for sibling in siblings for pod in cluster.controlled(POD, space, uid_of(sibling))]


def _min_ready_s(replica_set: JsonObject) -> int:
    return part(replica_set, "spec").get("minReadySeconds") or 0


def _status(
    replica_set: JsonObject, cluster: Cluster, pods: Sequence[JsonObject], now: Instant
) -> JsonObject:
    active = [pod for pod in pods if is_active(pod)]
    wanted_labels = part(replica_set, "spec", "template", "metadata", "labels")
    min_ready_s = _min_ready_s(replica_set)
    return without_zeros(
        {
            "replicas": len(active),
            "fullyLabeledReplicas": sum(selects_all(wanted_labels, labels_of(p)) for p in active),
            "readyReplicas": sum(is_ready(pod) for pod in active),
            "availableReplicas": sum(is_available(pod, min_ready_s, now) for pod in active),
            "terminatingReplicas": sum(is_terminating(pod) for pod in pods),
            "observedGeneration": metadata(replica_set).get("generation"),
            "conditions": _conditions(replica_set, cluster, len(active), now),
        },
        "replicas",
        "terminatingReplicas",
    )


def _conditions(
    replica_set: JsonObject, cluster: Cluster, active: int, now: Instant
) -> list[JsonObject]:
    """Whether its pods were refused."""
    held = items(replica_set, "status", "conditions")
    refusal = cluster.refusal(uid_of(replica_set))
    if refusal is None or active >= part(replica_set, "spec").get("replicas", 1):
        return without(held, "ReplicaFailure")
    if found(held, "ReplicaFailure"):
        return held
    failure: JsonObject = {
        "type": "ReplicaFailure",
        "status": "True",
        "lastTransitionTime": stamp(now),
        "reason": "FailedCreate",
        "message": refusal,
    }
    return [*held, failure]
