"""Autoscalers of autoscaling/v1, which older kubectls write: the same in the words of v2. Pure."""

from muster.doors.kubernetes.objects.value import JsonObject, copied, items, part

OLD, NEW = "autoscaling/v1", "autoscaling/v2"
KINDS = ("HorizontalPodAutoscaler", "HorizontalPodAutoscalerList")
_ASKED = "targetCPUUtilizationPercentage"
_SEEN = "currentCPUUtilizationPercentage"


def as_new(obj: JsonObject) -> JsonObject:
    """An autoscaler of v1 as one of v2; anything else as it is."""
    if obj.get("apiVersion") != OLD or obj.get("kind") not in KINDS:
        return obj
    new: JsonObject = {**copied(obj), "apiVersion": NEW}
    percent = part(new, "spec").pop(_ASKED, None)
    if percent is not None:
        target = {"type": "Utilization", "averageUtilization": percent}
        metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
        new["spec"]["metrics"] = [metric]
    return new


def as_old(obj: JsonObject) -> JsonObject:
    """An autoscaler of v2, or a list of them, as v1 writes it; what v1 cannot say is left out."""
    if obj.get("apiVersion") != NEW or obj.get("kind") not in KINDS:
        return obj
    old: JsonObject = {**copied(obj), "apiVersion": OLD}
    if "items" in old:
        old["items"] = [
            as_old({**each, "apiVersion": NEW, "kind": KINDS[0]}) for each in old["items"]
        ]
        return old
    spec, status = part(old, "spec"), part(old, "status")
    for metric in items(spec, "metrics"):
        asked = part(metric, "resource", "target").get("averageUtilization")
        if part(metric, "resource").get("name") == "cpu" and asked is not None:
            spec[_ASKED] = asked
    for metric in items(status, "currentMetrics"):
        seen = part(metric, "resource", "current").get("averageUtilization")
        if part(metric, "resource").get("name") == "cpu" and seen is not None:
            status[_SEEN] = seen
    for each, name in ((spec, "metrics"), (spec, "behavior"), (status, "currentMetrics")):
        each.pop(name, None)
    status.pop("conditions", None)
    return old
