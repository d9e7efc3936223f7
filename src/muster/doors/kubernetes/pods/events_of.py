"""What happened to a pod, as events that `kubectl describe` shows. Pure.

The waiting of a job, with its estimate and what would help, is told here too.
"""

import hashlib
from collections.abc import Iterator

from muster.doors.kubernetes.objects.times import instant, micro_stamp, stamp
from muster.doors.kubernetes.objects.value import JsonObject, items, metadata, part
from muster.model.explanation import Explanation
from muster.model.pod import PodNote
from muster.model.value import Instant, Value, replace

SCHEDULER, KUBELET, MUSTER = "default-scheduler", "kubelet", "muster"
SCHEDULING = "Scheduling"


class PodEvent(Value, kw_only=True):
    """One thing that happened, and how often since `first_at`."""

    source: str
    reason: str
    text: str
    at: Instant
    warning: bool = False
    container: str = ""
    count: int = 1
    first_at: Instant | None = None
    node: str = ""


def event_object(pod: JsonObject, event: PodEvent) -> JsonObject:
    """The event as an object that belongs to the pod."""
    meta = metadata(pod)
    involved: JsonObject = {
        "kind": "Pod",
        "namespace": meta.get("namespace"),
        "name": meta.get("name"),
        "uid": meta.get("uid"),
        "apiVersion": "v1",
    }
    if event.container:
        involved["fieldPath"] = field_path(pod, event.container)
    if event.source == SCHEDULER:
        involved["resourceVersion"] = meta.get("resourceVersion")
    source: JsonObject = {"component": event.source}
    if event.node:
        source["host"] = event.node
    found: JsonObject = {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {
            "name": f"{meta.get('name')}.{_mark(pod, event)}",
            "namespace": meta.get("namespace"),
            "creationTimestamp": stamp(event.first_at or event.at),
        },
        "involvedObject": involved,
        "reason": event.reason,
        "message": event.text,
        "source": source,
        "firstTimestamp": stamp(event.first_at or event.at),
        "lastTimestamp": stamp(event.at),
        "count": event.count,
        "type": "Warning" if event.warning else "Normal",
        "eventTime": None,
        "reportingComponent": event.source,
        "reportingInstance": event.node,
    }
    if event.source != SCHEDULER:
        return found
    del found["count"]
    return {**found, **_series(event)}


def _series(event: PodEvent) -> JsonObject:
    """Schedulers write events in their newer form, which has one time and says what was done."""
    return {
        "action": {"Scheduled": "Binding", "Preempted": "Preempting"}.get(event.reason, SCHEDULING),
        "eventTime": micro_stamp(event.first_at or event.at),
        "firstTimestamp": None,
        "lastTimestamp": None,
        "source": {},
        "reportingInstance": f"{SCHEDULER}-muster",
    }


def field_path(pod: JsonObject, container: str) -> str:
    """`spec.containers{main}`."""
    spec = part(pod, "spec")
    inits = {str(each.get("name")) for each in items(spec, "initContainers")}
    return f"spec.{'initContainers' if container in inits else 'containers'}{{{container}}}"


def scheduled(pod: JsonObject, node: str, at: Instant) -> PodEvent:
    """It has its place."""
    meta = metadata(pod)
    where = f"{meta.get('namespace')}/{meta.get('name')}"
    text = f"Successfully assigned {where} to {node}"
    return PodEvent(source=SCHEDULER, reason="Scheduled", text=text, at=at)


def preempted(by: str, node: str, at: Instant) -> PodEvent:
    """It leaves, so that another has room."""
    text = f"Preempted by {by} on node {node}"
    return PodEvent(source=SCHEDULER, reason="Preempted", text=text, at=at)


def waits(text: str, since: Instant, at: Instant) -> PodEvent:
    """It waits, in the words of Kubernetes."""
    return PodEvent(
        source=SCHEDULER,
        reason="FailedScheduling",
        text=text,
        at=at,
        first_at=since,
        warning=True,
    )


def rejected(pod: JsonObject, reason: str, text: str) -> PodEvent:
    """The node that it names does not take it."""
    at = instant(part(pod, "status").get("startTime")) or Instant(0)
    node = str(part(pod, "spec").get("nodeName"))
    return PodEvent(source=KUBELET, reason=reason, text=text, at=at, warning=True, node=node)


def too_long(at: Instant) -> PodEvent:
    """It ended because its time was over."""
    text = "Pod was active on the node longer than the specified deadline"
    return PodEvent(source=KUBELET, reason="DeadlineExceeded", text=text, at=at)


def explained(explanation: Explanation, at: Instant) -> Iterator[PodEvent]:
    """Why it waits in Muster's words, when it starts, and what would help."""
    yield PodEvent(source=MUSTER, reason="Explained", text=explanation.text, at=at)
    if isinstance(explanation.expected, int):
        when = f"Expected to start at {stamp(explanation.expected)}."
        yield PodEvent(source=MUSTER, reason="ExpectedStart", text=when, at=at)
    for each in explanation.alternatives:
        yield PodEvent(source=MUSTER, reason="WouldHelp", text=each.text, at=at)


def added(before: PodEvent | None, event: PodEvent) -> PodEvent:
    """Both as one event, for things that are told together."""
    return event if before is None else replace(event, text=f"{before.text} {event.text}")


def lasting(pod: JsonObject, event: PodEvent) -> JsonObject:
    """The event under a name that stays while what it says changes."""
    found = event_object(pod, event)
    mark = hashlib.sha256(_told(pod, event).encode()).hexdigest()[:16]
    metadata(found)["name"] = f"{metadata(pod).get('name')}.{mark}"
    return found


def noted(note: PodNote, node: str) -> PodEvent:
    """Something that happened in it while it ran."""
    return PodEvent(
        source=KUBELET,
        reason=note.reason,
        text=note.text,
        at=Instant(note.at),
        warning=note.warning,
        container=note.container,
        count=note.count,
        first_at=Instant(note.first_at or note.at),
        node=node,
    )


def _mark(pod: JsonObject, event: PodEvent) -> str:
    """The same for the same thing: so that it is counted, and not told again.

    Another one for another pod of the same name: describe shows those of the pod that is.
    Clients show what happened within a second in the order of names, so these begin with the time.
    """
    digest = hashlib.sha256(f"{_told(pod, event)}/{event.text}".encode())
    if event.source != KUBELET and event.reason not in _IN_ORDER:
        # Why it waits is looked at again and again.
        return digest.hexdigest()[:16]
    first = event.at if event.first_at is None else event.first_at
    turn = _IN_ORDER.index(event.reason) if event.reason in _IN_ORDER else len(_IN_ORDER)
    within = turn * _WITHIN_TURN + int.from_bytes(digest.digest()[:4], "big") % _WITHIN_TURN
    return f"{first * _NANOSECONDS + within:016x}"


_IN_ORDER = ("Scheduled", "Pulling", "Pulled", "ErrImageNeverPull", "Created", "Started")
_WITHIN_TURN = 100_000
_NANOSECONDS = 1_000_000
"""In a millisecond: names of Kubernetes' events count them."""


def _told(pod: JsonObject, event: PodEvent) -> str:
    return f"{metadata(pod).get('uid')}/{event.source}/{event.reason}/{event.container}"
