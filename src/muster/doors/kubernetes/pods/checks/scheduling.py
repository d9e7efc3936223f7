"""What is wrong with where a pod wants to run."""

from collections.abc import Iterator, Mapping
from typing import Any

from muster.doors.kubernetes.objects.errors import (
    Cause,
    duplicate,
    forbidden_field,
    invalid,
    not_supported,
    required,
)
from muster.doors.kubernetes.objects.value import JsonObject, items, part
from muster.doors.kubernetes.pods.checks import names

NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
SELECTOR_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_MOST_WEIGHT = 100
_WITH_VALUES = ("In", "NotIn")
_BARE = ("Exists", "DoesNotExist")
_ONE_VALUE = ("Gt", "Lt")


def label_causes(labels: Mapping[str, Any], field: str) -> Iterator[Cause]:
    """Of keys and values of labels."""
    for key in sorted(labels):
        yield from (invalid(field, key, why) for why in names.qualified(key))
        yield from (invalid(field, labels[key], why) for why in names.label_value(str(labels[key])))


def affinity_causes(spec: JsonObject, path: str) -> Iterator[Cause]:
    """Of rules about nodes, and about other pods."""
    at = f"{path}.affinity"
    node = part(spec, "affinity", "nodeAffinity")
    needed = part(node, "requiredDuringSchedulingIgnoredDuringExecution")
    if node and needed:
        where = f"{at}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        if not items(needed, "nodeSelectorTerms"):
            yield required(
                f"{where}.nodeSelectorTerms", "must have at least one node selector term"
            )
        for place, term in enumerate(items(needed, "nodeSelectorTerms")):
            yield from _term_causes(term, f"{where}.nodeSelectorTerms[{place}]")
    preferred = items(node, "preferredDuringSchedulingIgnoredDuringExecution")
    for place, each in enumerate(preferred):
        where = f"{at}.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[{place}]"
        yield from _weight_causes(each, where)
        yield from _term_causes(part(each, "preference"), f"{where}.preference")
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _neighbour_causes(part(spec, "affinity", kind), f"{at}.{kind}")


def _term_causes(term: JsonObject, where: str) -> Iterator[Cause]:
    for place, rule in enumerate(items(term, "matchExpressions")):
        yield from _rule_causes(rule, f"{where}.matchExpressions[{place}]", NODE_OPERATORS)


def _rule_causes(rule: JsonObject, where: str, operators: tuple[str, ...]) -> Iterator[Cause]:
    operator, values = rule.get("operator", ""), items(rule, "values")
    if operator in _WITH_VALUES and not values:
        yield required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _BARE and values:
        yield forbidden_field(
            f"{where}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        )
    elif operator in _ONE_VALUE and operators is NODE_OPERATORS and len(values) != 1:
        yield required(
            f"{where}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"
        )
    if operator not in operators:
        # Two validators of Kubernetes say it differently.
        yield invalid(f"{where}.operator", operator, "not a valid selector operator")
    key = str(rule.get("key") or "")
    yield from (invalid(f"{where}.key", key, why) for why in names.qualified(key))


def _weight_causes(each: JsonObject, where: str) -> Iterator[Cause]:
    weight = each.get("weight", 0)
    if not 1 <= weight <= _MOST_WEIGHT:
        yield invalid(f"{where}.weight", weight, "must be in the range 1-100")


def _neighbour_causes(rules: JsonObject, at: str) -> Iterator[Cause]:
    needed = "requiredDuringSchedulingIgnoredDuringExecution"
    for place, term in enumerate(items(rules, needed)):
        yield from _neighbour_term_causes(term, f"{at}.{needed}[{place}]")
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    for place, each in enumerate(items(rules, preferred)):
        where = f"{at}.{preferred}[{place}]"
        yield from _weight_causes(each, where)
        yield from _neighbour_term_causes(part(each, "podAffinityTerm"), f"{where}.podAffinityTerm")


def _neighbour_term_causes(term: JsonObject, where: str) -> Iterator[Cause]:
    yield from selector_causes(part(term, "labelSelector"), f"{where}.labelSelector")
    key = str(term.get("topologyKey") or "")
    if not key:
        yield required(f"{where}.topologyKey", "can not be empty")
    yield from (invalid(f"{where}.topologyKey", key, why) for why in names.qualified(key) if key)


def selector_causes(selector: JsonObject, where: str) -> Iterator[Cause]:
    """Of a selector of labels."""
    yield from label_causes(part(selector, "matchLabels"), f"{where}.matchLabels")
    for place, rule in enumerate(items(selector, "matchExpressions")):
        yield from _rule_causes(rule, f"{where}.matchExpressions[{place}]", SELECTOR_OPERATORS)


def gate_causes(spec: JsonObject, path: str) -> Iterator[Cause]:
    """Of what keeps a pod from being scheduled."""
    seen: set[str] = set()
    for place, gate in enumerate(items(spec, "schedulingGates")):
        where, name = f"{path}.schedulingGates[{place}]", str(gate.get("name") or "")
        yield from (invalid(where, name, why) for why in names.qualified(name))
        if name in seen:
            yield duplicate(where, name)
        seen.add(name)


def spread_causes(spec: JsonObject, path: str) -> Iterator[Cause]:
    """Of rules about how evenly pods are spread."""
    for place, rule in enumerate(items(spec, "topologySpreadConstraints")):
        where = f"{path}.topologySpreadConstraints[{place}]"
        skew = rule.get("maxSkew", 0)
        if skew <= 0:
            yield invalid(f"{where}.maxSkew", skew, "must be greater than zero")
        if not rule.get("topologyKey"):
            yield required(f"{where}.topologyKey", "can not be empty")
        kind = rule.get("whenUnsatisfiable", "")
        if kind not in ("DoNotSchedule", "ScheduleAnyway"):
            yield not_supported(
                f"{where}.whenUnsatisfiable", kind, ("DoNotSchedule", "ScheduleAnyway")
            )
        yield from selector_causes(part(rule, "labelSelector"), f"{where}.labelSelector")


def toleration_causes(spec: JsonObject, path: str) -> Iterator[Cause]:
    """Of taints that do not keep the pod away."""
    for place, each in enumerate(items(spec, "tolerations")):
        where = f"{path}.tolerations[{place}]"
        key, operator = str(each.get("key") or ""), each.get("operator") or "Equal"
        if key:
            yield from (invalid(f"{where}.key", key, why) for why in names.qualified(key))
        elif operator != "Exists":
            why = "operator must be Exists when `key` is empty, which means"
            yield invalid(
                f"{where}.operator",
                each.get("operator", ""),
                f'{why} "match all values and all keys"',
            )
        if each.get("tolerationSeconds") is not None and each.get("effect") != "NoExecute":
            yield invalid(
                f"{where}.effect",
                each.get("effect", ""),
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            )
        yield from _operator_causes(each, operator, where)
        effect = each.get("effect", "")
        if effect and effect not in EFFECTS:
            yield not_supported(f"{where}.effect", effect, EFFECTS)


def _operator_causes(each: JsonObject, operator: str, where: str) -> Iterator[Cause]:
    value = str(each.get("value") or "")
    if operator == "Equal":
        yield from (invalid(f"{where}.operator", value, why) for why in names.label_value(value))
    elif operator == "Exists":
        if value:
            yield invalid(
                f"{where}.operator", value, "value must be empty when `operator` is 'Exists'"
            )
    else:
        yield not_supported(f"{where}.operator", operator, ("Equal", "Exists"))
