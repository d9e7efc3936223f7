"""Conditions of a status: found, set and removed, each kind of object with its own times."""

from collections.abc import Sequence

from muster.doors.kubernetes.objects.value import JsonObject


def found(conditions: Sequence[JsonObject], type_: str) -> JsonObject | None:
    """The condition of a type."""
    return next((each for each in conditions if each.get("type") == type_), None)


def is_true(conditions: Sequence[JsonObject], type_: str) -> bool:
    """Is there such a condition, and does it hold?"""
    held = found(conditions, type_)
    return held is not None and held.get("status") == "True"


def without(conditions: Sequence[JsonObject], type_: str) -> list[JsonObject]:
    """All but the condition of a type."""
    return [each for each in conditions if each.get("type") != type_]


def with_last(conditions: Sequence[JsonObject], new: JsonObject) -> list[JsonObject]:
    """With a condition at the end, unless one says the same already: status and reason.

    It keeps the time since which its status holds.
    """
    old = found(conditions, new["type"])
    if old is not None and old["status"] == new["status"]:
        if old.get("reason") == new.get("reason"):
            return list(conditions)
        new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
    return [*without(conditions, new["type"]), new]
