"""Events are kept for an hour after they were last seen."""

from muster.doors.kubernetes.controllers.changes import Delete, Draft, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster
from muster.doors.kubernetes.objects.times import after
from muster.doors.kubernetes.objects.value import JsonObject, metadata, part
from muster.model.value import Instant

SOURCE = "event-controller"
KEPT_S = 3_600


def forget(event: JsonObject, cluster: Cluster, now: Instant) -> Outcome:  # noqa: ARG001 - as all are
    """Delete an event that was last seen long ago."""
    last = event.get("lastTimestamp") or part(event, "series").get("lastObservedTime")
    told = last or event.get("eventTime") or metadata(event).get("creationTimestamp")
    until = after(told, KEPT_S)
    draft = Draft(event, SOURCE)
    if until is not None and until <= now:
        draft.remove(Delete(object=event))
    else:
        draft.look_again(until)
    return draft.outcome()
