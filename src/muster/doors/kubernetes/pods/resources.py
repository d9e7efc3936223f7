"""What a pod asks for: what its containers ask for at the same time, as Kubernetes counts it."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, cast

from muster.doors.kubernetes.objects.value import JsonObject, items, part
from muster.doors.kubernetes.pods import quantities

CPU = "cpu"
MEMORY = "memory"
STORAGE = "ephemeral-storage"
GPU = "nvidia.com/gpu"
MIG_PREFIX = "nvidia.com/mig-"
STANDARD = frozenset({CPU, MEMORY, STORAGE})
QOS_RESOURCES = (CPU, MEMORY)

Amounts = dict[str, Decimal]


def requests_of(spec: JsonObject) -> Amounts:
    """What the pod as a whole requests, its overhead included."""
    return _together(spec, "requests")


def limits_of(spec: JsonObject) -> Amounts:
    """What the pod as a whole is limited to, for resources that each container limits."""
    return _together(spec, "limits")


def shown_requests(spec: JsonObject) -> dict[str, str]:
    """The same as text, each amount as its first container writes it."""
    return _shown(spec, requests_of(spec), "requests")


def shown_limits(spec: JsonObject) -> dict[str, str]:
    """The same as text, each amount as its first container writes it."""
    return _shown(spec, limits_of(spec), "limits")


def is_gpu(name: str) -> bool:
    """Is it a resource of GPUs, or of parts of them?"""
    return name == GPU or name.startswith(MIG_PREFIX)


def is_sidecar(container: Mapping[str, Any]) -> bool:
    """An init container that goes on beside the others."""
    return container.get("restartPolicy") == "Always"


def qos_class(spec: JsonObject) -> str:
    """Guaranteed, Burstable or BestEffort."""
    containers = (*items(spec, "initContainers"), *items(spec, "containers"))
    asked = [_qos_lists(each) for each in (*containers, spec)]
    if not any(requests or limits for requests, limits in asked):
        return "BestEffort"
    own = asked[:-1] if not any(asked[-1]) else asked[-1:]
    if all(set(limits) == set(QOS_RESOURCES) and requests == limits for requests, limits in own):
        return "Guaranteed"
    return "Burstable"


def _qos_lists(container: Any) -> tuple[Amounts, Amounts]:
    requests = _counted(part(container, "resources", "requests"))
    limits = _counted(part(container, "resources", "limits"))
    return requests, limits


def _counted(listed: Mapping[str, Any]) -> Amounts:
    named = {name: listed[name] for name in QOS_RESOURCES if name in listed}
    return {name: value for name, value in quantities.totals(named).items() if value}


def _together(spec: JsonObject, which: str) -> Amounts:
    """The larger of what the main containers want at once, and each init container in its turn."""
    inits = cast("list[JsonObject]", items(spec, "initContainers"))
    at_once = _sum(part(each, "resources", which) for each in items(spec, "containers"))
    beside: Amounts = {}
    most: Amounts = {}
    for each in inits:
        own = quantities.totals(part(each, "resources", which))
        if is_sidecar(each):
            beside = _added(beside, own)
            most = _larger(most, beside)
        else:
            most = _larger(most, _added(beside, own))
    found = _larger(_added(at_once, beside), most)
    whole = quantities.totals(part(spec, "resources", which))
    overhead = quantities.totals(part(spec, "overhead"))
    found = {**found, **whole}
    return {
        name: value + overhead.get(name, Decimal(0))
        for name, value in _added(found, dict.fromkeys(overhead, Decimal(0))).items()
    }


def _shown(spec: JsonObject, amounts: Amounts, which: str) -> dict[str, str]:
    containers = (*items(spec, "containers"), *items(spec, "initContainers"))
    likes = {
        name: str(text)
        for each in reversed(containers)
        for name, text in part(each, "resources", which).items()
    }
    return {
        name: quantities.shown(value, like=likes.get(name, "")) for name, value in amounts.items()
    }


def _sum(lists: Iterable[Mapping[str, Any]]) -> Amounts:
    return quantities.totals(*lists)


def _added(one: Amounts, other: Amounts) -> Amounts:
    return {name: one.get(name, Decimal(0)) + other.get(name, Decimal(0)) for name in one | other}


def _larger(one: Amounts, other: Amounts) -> Amounts:
    nothing = Decimal(0)
    return {name: max(one.get(name, nothing), other.get(name, nothing)) for name in one | other}
