"""On which nodes a pod may run, as far as its own wishes and the nodes' taints decide."""

from collections.abc import Iterable, Sequence

from muster.doors.kubernetes.controllers.selecting import selects_all
from muster.doors.kubernetes.objects.value import JsonObject, items, labels_of, name_of, part


def suits(pod_spec: JsonObject, node: JsonObject) -> bool:
    """Do its node selector and required node affinity have this node?"""
    if not selects_all(part(pod_spec, "nodeSelector"), labels_of(node)):
        return False
    required = part(
        pod_spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"
    )
    terms = items(required, "nodeSelectorTerms")
    return not terms or any(_term_holds(each, node) for each in terms)


def untolerated(
    taints: Iterable[JsonObject], tolerations: Sequence[JsonObject]
) -> list[JsonObject]:
    """The taints that nothing tolerates."""
    return [each for each in taints if not any(tolerates(one, each) for one in tolerations)]


def tolerates(toleration: JsonObject, taint: JsonObject) -> bool:
    """Does one toleration cover one taint?"""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and (
        (toleration.get("value") or "") == (taint.get("value") or "")
    )


def _term_holds(term: JsonObject, node: JsonObject) -> bool:
    fields = {"metadata.name": name_of(node)}
    expressions, by_field = items(term, "matchExpressions"), items(term, "matchFields")
    if not expressions and not by_field:
        return False
    return all(_holds(each, labels_of(node)) for each in expressions) and all(
        _holds(each, fields) for each in by_field
    )


def _holds(expression: JsonObject, values: dict[str, str]) -> bool:
    value = values.get(expression["key"])
    wanted = items(expression, "values")
    match expression["operator"]:
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _is_number(value) and int(value or 0) > int(wanted[0])
        case "Lt":
            return _is_number(value) and int(value or 0) < int(wanted[0])
        case _:
            return False


def _is_number(value: str | None) -> bool:
    return value is not None and value.removeprefix("-").isdecimal()
