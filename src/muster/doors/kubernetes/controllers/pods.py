"""What controllers ask about a pod, and the pods that they make of templates."""

from collections.abc import Iterable, Sequence

from muster.doors.kubernetes.objects.times import after, instant
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    items,
    metadata,
    name_of,
    part,
    uid_of,
)
from muster.model.value import SECOND, Instant

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
PHASE_RANK = {"Pending": 0, "Unknown": 1, "Running": 2}


def phase(pod: JsonObject) -> str:
    return str(part(pod, "status").get("phase") or "Pending")


def is_finished(pod: JsonObject) -> bool:
    """Has it ended, well or not?"""
    return phase(pod) in {"Succeeded", "Failed"}


def is_leaving(obj: JsonObject) -> bool:
    """Is it being deleted?"""
    return bool(metadata(obj).get("deletionTimestamp"))


def is_active(pod: JsonObject) -> bool:
    """Does it run, or will it?"""
    return not is_finished(pod) and not is_leaving(pod)


def is_terminating(pod: JsonObject) -> bool:
    """Is it being deleted, and has it not ended yet?"""
    return not is_finished(pod) and is_leaving(pod)


def condition(obj: JsonObject, type_: str) -> JsonObject | None:
    """One condition of an object."""
    for each in items(obj, "status", "conditions"):
        if each.get("type") == type_:
            return each
    return None


def is_ready(pod: JsonObject) -> bool:
    found = condition(pod, "Ready")
    return found is not None and found.get("status") == "True"


def available_at(pod: JsonObject, min_ready_s: int) -> Instant | None:
    """When it is, or will be, ready for so long; None while it is not ready."""
    found = condition(pod, "Ready")
    if found is None or found.get("status") != "True":
        return None
    if min_ready_s == 0:
        return instant(found.get("lastTransitionTime")) or Instant(0)
    return after(found.get("lastTransitionTime"), min_ready_s)


def is_available(pod: JsonObject, min_ready_s: int, now: Instant) -> bool:
    """Has it been ready for so long?"""
    if min_ready_s == 0:
        return is_ready(pod)
    since = available_at(pod, min_ready_s)
    return since is not None and since <= now


def next_available(pods: Iterable[JsonObject], min_ready_s: int, now: Instant) -> Instant | None:
    """When the next of those that are ready will have been so for long enough."""
    coming = (available_at(pod, min_ready_s) for pod in pods)
    return min((at for at in coming if at is not None and at > now), default=None)


def restarts(pod: JsonObject) -> int:
    """The most restarts of any of its containers."""
    return max((each.get("restartCount", 0) for each in container_statuses(pod)), default=0)


def container_statuses(pod: JsonObject) -> list[JsonObject]:
    """Of its containers, then of its init containers."""
    return [
        *items(pod, "status", "containerStatuses"),
        *items(pod, "status", "initContainerStatuses"),
    ]


def finished_at(pod: JsonObject) -> Instant:
    """When it ended, as well as that is known."""
    ends = [
        instant(part(each, "state", "terminated").get("finishedAt"))
        for each in items(pod, "status", "containerStatuses")
    ]
    known = [each for each in ends if each is not None]
    if known and len(known) == len(ends):
        return max(known)
    ready = condition(pod, "Ready")
    if ready is not None and ready.get("status") == "False":
        since = instant(ready.get("lastTransitionTime"))
        if since is not None:
            return since
    deleted = instant(metadata(pod).get("deletionTimestamp"))
    if deleted is not None:
        return Instant(deleted - (metadata(pod).get("deletionGracePeriodSeconds") or 0) * SECOND)
    return created_at(pod)


def created_at(obj: JsonObject) -> Instant:
    return instant(metadata(obj).get("creationTimestamp")) or Instant(0)


def first_to_go(
    pods: Iterable[JsonObject], *, neighbours: Sequence[JsonObject] = ()
) -> list[JsonObject]:
    """Pods in the order in which they are given up: those that have done least go first.

    neighbours: pods of the same owner; where many are on one node, those go before others.
    """
    crowd: dict[str, int] = {}
    for each in neighbours:
        if is_active(each):
            crowd[_node(each)] = crowd.get(_node(each), 0) + 1
    return sorted(pods, key=lambda pod: _worth(pod, crowd.get(_node(pod), 0)))


def _worth(pod: JsonObject, crowd: int) -> tuple[object, ...]:
    ready = condition(pod, "Ready") if is_ready(pod) else None
    ready_since = instant(ready.get("lastTransitionTime")) if ready else None
    return (
        bool(_node(pod)),
        PHASE_RANK.get(phase(pod), 1),
        ready is not None,
        _deletion_cost(pod),
        -crowd,
        -(ready_since or 0),
        -restarts(pod),
        -created_at(pod),
        uid_of(pod),
        name_of(pod),
    )


def _node(pod: JsonObject) -> str:
    return str(part(pod, "spec").get("nodeName") or "")


def _deletion_cost(pod: JsonObject) -> int:
    try:
        return int(annotations_of(pod).get(DELETION_COST, 0))
    except ValueError:
        return 0
