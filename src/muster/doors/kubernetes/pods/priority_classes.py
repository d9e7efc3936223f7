"""What a PriorityClass must be. Pure."""

from collections.abc import Iterator

from muster.doors.kubernetes.objects.errors import Cause, forbidden_field, not_supported
from muster.doors.kubernetes.objects.value import JsonObject, name_of
from muster.doors.kubernetes.pods.admission import SYSTEM_CLASSES

HIGHEST = 1_000_000_000
POLICIES = ("Never", "PreemptLowerPriority")
_RESERVED = "priority class names with 'system-' prefix are reserved for system use only"


def defaulted_class(obj: JsonObject) -> JsonObject:
    """With the policy that is usual."""
    return {**obj, "preemptionPolicy": obj.get("preemptionPolicy") or "PreemptLowerPriority"}


def class_causes(obj: JsonObject, old: JsonObject | None) -> list[Cause]:
    """All that is wrong with it."""
    return list(_new(obj) if old is None else _changed(obj, old))


def _new(obj: JsonObject) -> Iterator[Cause]:
    name, value = name_of(obj), int(obj.get("value") or 0)
    if name.startswith("system-"):
        if name not in SYSTEM_CLASSES:
            why = f"{_RESERVED}. error: {name} is not a known system priority class"
            yield forbidden_field("metadata.name", why)
    elif value > HIGHEST:
        why = f"maximum allowed value of a user defined priority is {HIGHEST}"
        yield forbidden_field("value", why)
    if obj["preemptionPolicy"] not in POLICIES:
        yield not_supported("preemptionPolicy", obj["preemptionPolicy"], POLICIES)


def _changed(obj: JsonObject, old: JsonObject) -> Iterator[Cause]:
    if (obj.get("value") or 0) != (old.get("value") or 0):
        yield forbidden_field("value", "may not be changed in an update.")
    if obj["preemptionPolicy"] != old.get("preemptionPolicy"):
        yield forbidden_field("preemptionPolicy", "may not be changed in an update.")
