"""Autoscalers, disruption budgets, quotas and priorities as rows."""

from muster.doors.kubernetes.objects.rules import Column, Printing
from muster.doors.kubernetes.objects.value import JsonObject, items, metadata, name_of, part
from muster.doors.kubernetes.tables.cells import (
    AGE,
    NAME,
    UNKNOWN,
    Cell,
    age,
    count,
    number,
    text,
)

MOST_METRICS = 2


def autoscaler_cells(autoscaler: JsonObject) -> list[Cell]:
    spec = part(autoscaler, "spec")
    target = part(spec, "scaleTargetRef")
    least = spec.get("minReplicas")
    return [
        name_of(autoscaler),
        f"{target.get('kind')}/{target.get('name')}",
        _targets(autoscaler),
        "<unset>" if least is None else str(least),
        spec.get("maxReplicas", 0),
        count(autoscaler, "currentReplicas"),
        age(autoscaler),
    ]


AUTOSCALERS = Printing(
    columns=(
        NAME,
        text("Reference"),
        text("Targets"),
        text("MinPods"),
        text("MaxPods"),
        text("Replicas"),
        AGE,
    ),
    cells=autoscaler_cells,
)


def budget_cells(budget: JsonObject) -> list[Cell]:
    spec = part(budget, "spec")
    return [
        name_of(budget),
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        count(budget, "disruptionsAllowed"),
        age(budget),
    ]


DISRUPTION_BUDGETS = Printing(
    columns=(
        NAME,
        text("Min Available"),
        text("Max Unavailable"),
        number("Allowed Disruptions"),
        AGE,
    ),
    cells=budget_cells,
)


def quota_cells(quota: JsonObject) -> list[Cell]:
    hard = part(quota, "status", "hard")
    used = part(quota, "status", "used")
    columns: dict[bool, list[str]] = {True: [], False: []}
    for resource in sorted(hard):
        is_limit = resource.startswith("limits.")
        columns[is_limit].append(f"{resource}: {used.get(resource, '0')}/{hard[resource]}")
    return [name_of(quota), ", ".join(columns[False]), ", ".join(columns[True]), age(quota)]


QUOTAS = Printing(columns=(NAME, text("Request"), text("Limit"), AGE), cells=quota_cells)


def priority_cells(priority: JsonObject) -> list[Cell]:
    return [
        name_of(priority),
        priority.get("value", 0),
        bool(priority.get("globalDefault")),
        age(priority),
        priority.get("preemptionPolicy") or "",
    ]


PRIORITY_CLASSES = Printing(
    columns=(
        NAME,
        number("Value"),
        Column(name="Global-Default", type="boolean"),
        AGE,
        text("PreemptionPolicy"),
    ),
    cells=priority_cells,
)


def created_cells(obj: JsonObject) -> list[Cell]:
    return [name_of(obj), str(metadata(obj).get("creationTimestamp") or UNKNOWN)]


CREATED = Printing(columns=(NAME, text("Created At")), cells=created_cells)
"""Kinds that have no row of their own: limit ranges, roles."""


def _targets(autoscaler: JsonObject) -> str:
    specs = items(autoscaler, "spec", "metrics")
    if not specs:
        return "<none>"
    states = items(autoscaler, "status", "currentMetrics")
    told = [
        _target(spec, states[place] if place < len(states) else {})
        for place, spec in enumerate(specs)
    ]
    shown = ", ".join(told[:MOST_METRICS])
    rest = len(told) - MOST_METRICS
    return f"{shown} + {rest} more..." if rest > 0 else shown


_FIELDS = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _target(spec: JsonObject, state: JsonObject) -> str:
    field = _FIELDS.get(spec.get("type", ""))
    if field is None:
        return "<unknown type>"
    wanted = part(spec, field, "target")
    current = part(state, field, "current")
    named = f"{part(spec, field).get('name')}: " if field.lower().endswith("resource") else ""
    if wanted.get("averageValue") is not None:
        suffix = " (avg)" if field in {"external", "object"} else ""
        return f"{named}{current.get('averageValue', UNKNOWN)}/{wanted['averageValue']}{suffix}"
    if named:
        return f"{named}{_percent(current, UNKNOWN)}/{_percent(wanted, '<auto>')}"
    return f"{current.get('value', UNKNOWN)}/{wanted.get('value')}"


def _percent(values: JsonObject, missing: str) -> str:
    percent = values.get("averageUtilization")
    return missing if percent is None else f"{percent}%"
