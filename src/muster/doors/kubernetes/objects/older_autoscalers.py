"""Autoscalers of autoscaling/v1: the same objects as those of v2, in other words. Pure.

What v1 has no fields for stands in annotations, as Kubernetes has it, so that who reads and writes
an autoscaler in v1 loses nothing of it. Their values are in the words of v2.
"""

import json
from typing import Any

from muster.doors.kubernetes.objects.kinds import HORIZONTAL_POD_AUTOSCALER
from muster.doors.kubernetes.objects.parsing import UnreadableError, demand_shallow, parse_json
from muster.doors.kubernetes.objects.schemas.types import schema_of
from muster.doors.kubernetes.objects.shaping import Shaped, WrongShapeError
from muster.doors.kubernetes.objects.value import JsonObject, copied, is_map, items, metadata, part

OLD, NEW = "autoscaling/v1", "autoscaling/v2"
_ASKED = "targetCPUUtilizationPercentage"
_SEEN = "currentCPUUtilizationPercentage"
_PREFIX = "autoscaling.alpha.kubernetes.io/"
_ANNOTATED = {
    "metrics": ("spec", "metrics"),
    "behavior": ("spec", "behavior"),
    "current-metrics": ("status", "currentMetrics"),
    "conditions": ("status", "conditions"),
}
"""What is annotated, and where it stands in v2."""


def newer_autoscaler(obj: JsonObject) -> JsonObject:
    """An autoscaler of v1 as one of v2. An annotation that says nothing of use stays one."""
    new: JsonObject = {**copied(obj), "apiVersion": NEW}
    for name in _ANNOTATED:
        new = _with_annotated(new, name)
    spec, status = part(new, "spec"), part(new, "status")
    asked, seen = spec.pop(_ASKED, None), status.pop(_SEEN, None)
    if asked is not None:
        target = {"type": "Utilization", "averageUtilization": asked}
        metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
        spec["metrics"] = [metric, *items(spec, "metrics")]
    if seen is not None and not items(status, "currentMetrics"):
        current = {"averageUtilization": seen}
        resource = {"name": "cpu", "current": current}
        status["currentMetrics"] = [{"type": "Resource", "resource": resource}]
    return new


def _with_annotated(obj: JsonObject, name: str) -> JsonObject:
    """With what one annotation says in its place, in the shape that it has there."""
    given = part(obj, "metadata", "annotations").get(_PREFIX + name)
    if not isinstance(given, str):
        return obj
    whole, field = _ANNOTATED[name]
    new = copied(obj)
    try:
        value: Any = parse_json(given.encode())
        demand_shallow(value)
        shaped = Shaped(schema_of(HORIZONTAL_POD_AUTOSCALER) or {}, {whole: {field: value}}).object
    except (UnreadableError, WrongShapeError):
        return obj
    if not value or (whole in new and not is_map(new[whole])):
        return obj
    new[whole] = {**part(new, whole), field: part(shaped, whole)[field]}
    annotations = part(new, "metadata", "annotations")
    del annotations[_PREFIX + name]
    if not annotations:
        del metadata(new)["annotations"]
    return new


def older_autoscaler(obj: JsonObject) -> JsonObject:
    """An autoscaler of v2 as v1 writes it."""
    old: JsonObject = {**copied(obj), "apiVersion": OLD}
    spec, status = part(old, "spec"), part(old, "status")
    metrics = items(spec, "metrics")
    first = next((each for each in metrics if _asked_of_cpu(each) is not None), None)
    if first is not None:
        spec[_ASKED] = _asked_of_cpu(first)
        spec["metrics"] = [each for each in metrics if each is not first]
    for metric in items(status, "currentMetrics"):
        seen = part(metric, "resource", "current").get("averageUtilization")
        if part(metric, "resource").get("name") == "cpu" and seen is not None:
            status[_SEEN] = seen
    said = {
        _PREFIX + name: json.dumps(value, separators=(",", ":"))
        for name, (whole, field) in _ANNOTATED.items()
        if (value := part(old, whole).pop(field, None))
    }
    if said:
        meta = old.setdefault("metadata", {})
        meta["annotations"] = {**(meta.get("annotations") or {}), **said}
    return old


def _asked_of_cpu(metric: JsonObject) -> int | None:
    """How busy processors are to be; None where a metric is about something else."""
    resource = part(metric, "resource")
    if resource.get("name") != "cpu":
        return None
    found: int | None = part(resource, "target").get("averageUtilization")
    return found
