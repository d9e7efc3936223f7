"""Autoscalers and disruption budgets: defaults, and what is refused."""

from collections.abc import Iterator

from muster.doors.kubernetes.controllers.autoscalers.behaviour import (
    DOWN_RULES,
    LONGEST_S,
    UP_RULES,
)
from muster.doors.kubernetes.controllers.specs.fields import (
    amount_causes,
    expression_causes,
    not_over_100_percent,
    one_of,
)
from muster.doors.kubernetes.objects.errors import (
    Cause,
    forbidden_field,
    invalid,
    not_supported,
    required,
)
from muster.doors.kubernetes.objects.value import JsonObject, copied, items, part

SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
LONGEST_PERIOD_S = 1800


def default_autoscaler(obj: JsonObject) -> JsonObject:
    """What an autoscaler has where its manifest is silent."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        cpu = {"name": "cpu", "target": target}
        spec["metrics"] = [{"type": "Resource", "resource": cpu}]
    if "behavior" in spec:
        behaviour = spec["behavior"]
        for name, rules in (("scaleUp", UP_RULES), ("scaleDown", DOWN_RULES)):
            behaviour[name] = {**copied(rules), **part(behaviour, name)}
    return obj


def autoscaler_causes(obj: JsonObject, old: JsonObject | None) -> list[Cause]:  # noqa: ARG001 - as all are
    """All that is wrong with an autoscaler."""
    spec = part(obj, "spec")
    causes: list[Cause] = []
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas") or 0
    if least < 1:
        words = "must be greater than or equal to 1"
        causes.append(invalid("spec.minReplicas", least, words))
    if most == 0:
        causes.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif most < 0:
        causes.append(invalid("spec.maxReplicas", most, "must be greater than or equal to 1"))
    if most < least:
        words = "must be greater than or equal to `minReplicas`"
        causes.append(invalid("spec.maxReplicas", most, words))
    target = part(spec, "scaleTargetRef")
    causes += [required(f"spec.scaleTargetRef.{n}") for n in ("kind", "name") if not target.get(n)]
    if not target.get("apiVersion"):
        at = "spec.scaleTargetRef.apiVersion"
        causes.append(invalid(at, "", "apiVersion must specify API group"))
    for place, metric in enumerate(items(spec, "metrics")):
        causes += _metric_causes(metric, f"spec.metrics[{place}]")
    for name in ("scaleUp", "scaleDown"):
        if name in part(spec, "behavior"):
            causes += _rules_causes(part(spec, "behavior", name), f"spec.behavior.{name}")
    return causes


def budget_causes(obj: JsonObject, old: JsonObject | None) -> list[Cause]:  # noqa: ARG001 - as all are
    """All that is wrong with a disruption budget."""
    spec = part(obj, "spec")
    causes: list[Cause] = []
    names = ("minAvailable", "maxUnavailable")
    if all(spec.get(name) is not None for name in names):
        causes.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
    for name in names:
        if spec.get(name) is not None:
            causes += amount_causes(spec[name], f"spec.{name}")
            causes += not_over_100_percent(spec[name], f"spec.{name}")
    causes += expression_causes(part(spec, "selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None:
        where = "spec.unhealthyPodEvictionPolicy"
        causes += one_of(policy, where, "AlwaysAllow", "IfHealthyBudget")
    return causes


def _metric_causes(metric: JsonObject, path: str) -> Iterator[Cause]:
    type_ = metric.get("type")
    if not type_:
        yield required(f"{path}.type", "must specify a metric source type")
    field = SOURCES.get(str(type_))
    if field is None:
        yield not_supported(f"{path}.type", type_, tuple(SOURCES))
        return
    if field not in metric:
        words = "must populate information for the given metric source"
        yield required(f"{path}.{field}", words)
    for other in SOURCES.values():
        if other != field and other in metric:
            words = "must populate the given metric source only"
            yield forbidden_field(f"{path}.{other}", words)
    if field in ("resource", "containerResource") and field in metric:
        yield from _resource_causes(part(metric, field), f"{path}.{field}")


def _resource_causes(source: JsonObject, path: str) -> Iterator[Cause]:
    if not source.get("name"):
        yield required(f"{path}.name", "must specify a resource name")
    target = part(source, "target")
    if not target.get("type"):
        yield required(f"{path}.target.type", "must specify a metric target type")
    if target.get("type") not in ("Utilization", "Value", "AverageValue"):
        words = "must be either Utilization, Value, or AverageValue"
        yield invalid(f"{path}.target.type", target.get("type", ""), words)
    percent, value = target.get("averageUtilization"), target.get("averageValue")
    if percent is not None and percent < 1:
        yield invalid(f"{path}.target.averageUtilization", percent, "must be greater than 0")
    if percent is None and value is None:
        words = "must set either a target raw value or a target utilization"
        yield required(f"{path}.target.averageUtilization", words)
    if percent is not None and value is not None:
        words = "may not set both a target raw value and a target utilization"
        yield forbidden_field(f"{path}.target.averageValue", words)


def _rules_causes(rules: JsonObject, path: str) -> Iterator[Cause]:
    window = rules.get("stabilizationWindowSeconds")
    where = f"{path}.stabilizationWindowSeconds"
    if window is not None and window < 0:
        yield invalid(where, window, "must be greater than or equal to zero")
    if window is not None and window > LONGEST_S:
        yield invalid(where, window, f"must be less than or equal to {LONGEST_S}")
    if rules.get("selectPolicy") is not None:
        yield from one_of(rules["selectPolicy"], f"{path}.selectPolicy", "Disabled", "Max", "Min")
    if not items(rules, "policies"):
        yield required(f"{path}.policies", "must specify at least one Policy")
    for place, policy in enumerate(items(rules, "policies")):
        yield from _policy_causes(policy, f"{path}.policies[{place}]")


def _policy_causes(policy: JsonObject, path: str) -> Iterator[Cause]:
    yield from one_of(policy.get("type"), f"{path}.type", "Percent", "Pods")
    for name in ("value", "periodSeconds"):
        if (policy.get(name) or 0) <= 0:
            yield invalid(f"{path}.{name}", policy.get(name, 0), "must be greater than zero")
    period = policy.get("periodSeconds") or 0
    if period > LONGEST_PERIOD_S:
        words = f"must be less than or equal to {LONGEST_PERIOD_S}"
        yield invalid(f"{path}.periodSeconds", period, words)
