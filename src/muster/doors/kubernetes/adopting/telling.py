"""What users of another cluster are told of their pods there. Pure."""

from muster.doors.kubernetes.objects.times import stamp
from muster.doors.kubernetes.objects.value import JsonObject, items, uid_of
from muster.model.value import Instant

_SCHEDULED = "PodScheduled"


def waits(pod: JsonObject, text: str, now: Instant) -> JsonObject | None:
    """The change that says in a pod's status why it has no node; None where it says so already.

    Autoscalers look for these words as well.
    """
    conditions = items(pod, "status", "conditions")
    before = next((each for each in conditions if each.get("type") == _SCHEDULED), None)
    if before is not None and before.get("message") == text:
        return None
    since = None if before is None else before.get("lastTransitionTime")
    condition: JsonObject = {
        "type": _SCHEDULED,
        "status": "False",
        "reason": "Unschedulable",
        "message": text,
        "lastTransitionTime": since or stamp(now),
    }
    return {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": [condition]}}
