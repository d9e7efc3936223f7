"""The scale of a workload: how many replicas it has and is to have, as an object of its own."""

from typing import Any

from muster.doors.kubernetes.controllers.selecting import is_empty, selector_of, shown_selector
from muster.doors.kubernetes.objects.errors import Cause, invalid
from muster.doors.kubernetes.objects.value import JsonObject, copied, metadata, part
from muster.model.value import Value

FIELDS = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class Scaling(Value):
    """Where a kind keeps how many are wanted, how many there are, and how they are selected."""

    wanted: tuple[str, ...] = ("spec", "replicas")
    found: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ("spec", "selector")


USUAL = Scaling()


def scale_of(workload: JsonObject, scaling: Scaling = USUAL) -> JsonObject:
    """As `kubectl scale` and autoscalers read it."""
    about = {name: metadata(workload)[name] for name in FIELDS if name in metadata(workload)}
    wanted = _at(workload, scaling.wanted, 1)
    selector = _at(workload, scaling.selector, None)
    if scaling == USUAL:
        selector = selector_of(workload)
    status: JsonObject = {"replicas": _at(workload, scaling.found, 0)}
    if isinstance(selector, str):
        status["selector"] = selector
    elif not is_empty(selector):
        status["selector"] = shown_selector(selector)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": about,
        "spec": {"replicas": wanted} if wanted else {},
        "status": status,
    }


def scaled_to(workload: JsonObject, scale: JsonObject, scaling: Scaling = USUAL) -> JsonObject:
    """The workload with the number of replicas that a scale names."""
    changed = copied(workload)
    place = changed
    for name in scaling.wanted[:-1]:
        place = place.setdefault(name, {})
    place[scaling.wanted[-1]] = part(scale, "spec").get("replicas") or 0
    return changed


def _at(obj: JsonObject, path: tuple[str, ...], default: Any) -> Any:
    return part(obj, *path[:-1]).get(path[-1], default) if path else default


def scale_causes(scale: JsonObject) -> list[Cause]:
    """What is wrong with a scale."""
    wanted = part(scale, "spec").get("replicas") or 0
    if wanted < 0:
        return [invalid("spec.replicas", wanted, "must be greater than or equal to 0")]
    return []
