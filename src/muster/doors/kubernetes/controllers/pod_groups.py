"""PodGroups say how their pods are: in which phase, and how many of them."""

from muster.doors.kubernetes.controllers.changes import NOTHING, Draft, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster
from muster.doors.kubernetes.controllers.pods import is_finished, is_leaving, phase
from muster.doors.kubernetes.objects.kinds import POD
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    name_of,
    namespace_of,
    part,
)
from muster.doors.kubernetes.pods.gang_marks import group_named_by, least_of
from muster.model.value import Instant

SOURCE = "podgroup-controller"


def count(group: JsonObject, cluster: Cluster, now: Instant) -> Outcome:  # noqa: ARG001 - as all are
    """Its status, by the pods that name it."""
    if is_leaving(group):
        return NOTHING
    mark = (str(group["apiVersion"]).partition("/")[0], name_of(group))
    pods = [each for each in cluster.list(POD, namespace_of(group)) if group_named_by(each) == mark]
    counts = {
        name.lower(): sum(phase(each) == name for each in pods)
        for name in ("Running", "Succeeded", "Failed")
    }
    going = [each for each in pods if not is_finished(each)]
    state = "Pending"
    if pods and not going:
        state = "Failed" if counts["failed"] else "Completed"
    elif sum(counts.values()) >= least_of(group) or counts["running"]:
        state = "Running"
    new = {**group, "status": {**part(group, "status"), "phase": state, **counts}}
    draft = Draft(group, SOURCE)
    if new != group:
        draft.update_status(new)
    return draft.outcome()
