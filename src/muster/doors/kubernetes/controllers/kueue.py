"""Workloads with the name of a queue begin suspended, and go on when they are in it."""

from muster.doors.kubernetes.controllers.changes import NOTHING, Draft, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster
from muster.doors.kubernetes.controllers.pods import condition, is_leaving
from muster.doors.kubernetes.foreign.kinds import LOCAL_QUEUE
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    copied,
    labels_of,
    namespace_of,
    part,
)
from muster.model.value import Instant

QUEUE = "kueue.x-k8s.io/queue-name"
SOURCE = "batch/job-kueue-controller"


def admit(workload: JsonObject, cluster: Cluster, now: Instant) -> Outcome:  # noqa: ARG001 - as all are
    """Let it go on: its pods wait in the queue themselves, each with its reason."""
    named = labels_of(workload).get(QUEUE)
    new = copied(workload)
    where = part(new, "spec", "runPolicy") or part(new, "spec")
    if not named or not where.get("suspend") or is_leaving(workload):
        return NOTHING
    queue = cluster.get(LOCAL_QUEUE, namespace_of(workload), named)
    active = None if queue is None else condition(queue, "Active")
    draft = Draft(workload, SOURCE)
    if queue is None or active is None or active.get("status") != "True":
        return NOTHING
    where["suspend"] = False
    draft.update(new)
    draft.emit("Started", f"Admitted by clusterQueue {part(queue, 'spec').get('clusterQueue')}")
    return draft.outcome()
