"""Events are kept for an hour after they were last seen or written."""

from collections.abc import Iterator

from muster.doors.kubernetes.controllers.changes import Delete, Draft, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster
from muster.doors.kubernetes.objects.times import after
from muster.doors.kubernetes.objects.value import JsonObject, items, metadata, part
from muster.model.value import Instant

SOURCE = "event-controller"
KEPT_S = 3_600


def forget(event: JsonObject, cluster: Cluster, now: Instant) -> Outcome:  # noqa: ARG001 - as all are
    """Delete an event that was last seen, or last written, long ago."""
    draft = Draft(event, SOURCE)
    times = [at for each in _times(event) if (at := after(each, KEPT_S)) is not None]
    if times and max(times) <= now:
        draft.remove(Delete(object=event))
    else:
        draft.look_again(max(times, default=None))
    return draft.outcome()


def _times(event: JsonObject) -> Iterator[str | None]:
    """All that it tells of: who writes of what was long ago does not want it gone at once."""
    yield event.get("lastTimestamp")
    yield part(event, "series").get("lastObservedTime")
    yield event.get("eventTime")
    yield metadata(event).get("creationTimestamp")
    for each in items(event, "metadata", "managedFields"):
        yield each.get("time")
