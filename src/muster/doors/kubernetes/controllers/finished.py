"""Jobs that are over go when their time is up: ttlSecondsAfterFinished."""

from muster.doors.kubernetes.controllers.changes import NOTHING, Delete, Draft, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster
from muster.doors.kubernetes.controllers.conditions import found
from muster.doors.kubernetes.controllers.pods import is_leaving
from muster.doors.kubernetes.objects.times import after
from muster.doors.kubernetes.objects.value import JsonObject, items, part
from muster.model.value import Instant

SOURCE = "ttl-after-finished-controller"


def expire(job: JsonObject, cluster: Cluster, now: Instant) -> Outcome:  # noqa: ARG001 - as all are
    """Delete a Job that has been over for long enough, with its pods."""
    ttl_s = part(job, "spec").get("ttlSecondsAfterFinished")
    ended = _ended(job)
    if ttl_s is None or ended is None or is_leaving(job):
        return NOTHING
    at = after(ended["lastTransitionTime"], ttl_s)
    draft = Draft(job, SOURCE)
    if at is not None and at <= now:
        draft.remove(Delete(object=job, propagation="Foreground"))
    else:
        draft.look_again(at)
    return draft.outcome()


def _ended(job: JsonObject) -> JsonObject | None:
    """The condition that says that it is over."""
    conditions = items(job, "status", "conditions")
    for type_ in ("Complete", "Failed"):
        held = found(conditions, type_)
        if held is not None and held["status"] == "True":
            return held
    return None
