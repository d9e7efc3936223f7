"""An object that we keep up to date, such as a Node, with what is so now and what others wrote."""

from muster.doors.kubernetes.objects.value import (
    JsonObject,
    copied,
    items,
    labels_of,
    metadata,
    part,
)


def refreshed(old: JsonObject, wanted: JsonObject) -> JsonObject:
    """Our spec and status, labels of both, and what only others say that a node has."""
    new = copied(old)
    new["spec"] = wanted["spec"]
    metadata(new)["labels"] = {**labels_of(old), **labels_of(wanted)}
    status = part(wanted, "status")
    before = part(old, "status")
    new["status"] = {**status, "conditions": _same_times(status, before)}
    for name in ("capacity", "allocatable"):
        # What somebody else says that it has, such as licences, stays.
        others = {key: each for key, each in part(before, name).items() if _is_foreign(key)}
        new["status"][name] = {**part(status, name), **others}
    return new


def _same_times(status: JsonObject, old: JsonObject) -> list[JsonObject]:
    """Conditions that are as they were say so since when they were."""
    before: dict[str, JsonObject] = {
        str(each.get("type")): each for each in items(old, "conditions")
    }
    found: list[JsonObject] = []
    for each in items(status, "conditions"):
        was = before.get(str(each["type"]), {})
        if was.get("status") == each["status"]:
            times = ("lastHeartbeatTime", "lastTransitionTime")
            found.append({**each, **{name: was[name] for name in times}})
        else:
            found.append(each)
    return found


def _is_foreign(resource: str) -> bool:
    return "/" in resource and not resource.startswith("nvidia.com/")
