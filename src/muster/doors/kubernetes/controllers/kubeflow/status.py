"""The status of a training job: conditions and counts, in the training operator's words."""

from collections.abc import Sequence

from muster.doors.kubernetes.controllers.conditions import found, is_true
from muster.doors.kubernetes.controllers.pods import is_leaving, phase
from muster.doors.kubernetes.objects.times import stamp
from muster.doors.kubernetes.objects.value import JsonObject, items
from muster.model.value import Instant

CREATED, RUNNING, RESTARTING = "Created", "Running", "Restarting"
SUCCEEDED, FAILED, SUSPENDED = "Succeeded", "Failed", "Suspended"


def is_finished(job: JsonObject) -> bool:
    """Is it over, well or not?"""
    conditions = items(job, "status", "conditions")
    return is_true(conditions, SUCCEEDED) or is_true(conditions, FAILED)


def with_condition(
    conditions: Sequence[JsonObject], new: JsonObject, now: Instant
) -> list[JsonObject]:
    """With a condition at the end, unless it says the same already; what it excludes changes."""
    old = found(conditions, new["type"])
    if is_true(conditions, FAILED):
        return list(conditions)
    if old is not None and (old["status"], old["reason"]) == (new["status"], new["reason"]):
        return list(conditions)
    is_same = old is not None and old["status"] == new["status"]
    since = old["lastTransitionTime"] if old is not None and is_same else stamp(now)
    kept = [each for each in (_beside(each, new) for each in conditions) if each is not None]
    return [*kept, {**new, "lastUpdateTime": stamp(now), "lastTransitionTime": since}]


def _beside(old: JsonObject, new: JsonObject) -> JsonObject | None:
    """What becomes of a condition when another is added: Running and Restarting exclude another."""
    type_, added = old["type"], new["type"]
    if type_ == added or {type_, added} == {RUNNING, RESTARTING}:
        return None
    if added in (FAILED, SUCCEEDED) and type_ == RUNNING:
        return {**old, "status": "False"}
    return old


def condition(type_: str, reason: str, message: str, *, is_so: bool) -> JsonObject:
    """A condition. reason: with the kind before it, `PyTorchJobRunning`."""
    return {
        "type": type_,
        "status": "True" if is_so else "False",
        "reason": reason,
        "message": message,
    }


def counts(pods: Sequence[JsonObject], selector: str) -> JsonObject:
    """How many replicas of a role are in which phase; zeros are left out."""
    told = {
        "active": sum(phase(pod) == "Running" and not is_leaving(pod) for pod in pods),
        "succeeded": sum(phase(pod) == "Succeeded" for pod in pods),
        "failed": sum(phase(pod) == "Failed" for pod in pods),
    }
    return {**{name: count for name, count in told.items() if count}, "selector": selector}
