"""Where a pod may run: its rules about nodes, taints and other pods, as Muster writes them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster.doors.kubernetes.objects.errors import Cause, forbidden_field
from muster.doors.kubernetes.objects.value import JsonObject, items, part
from muster.model.job import (
    NODE_LEVEL,
    JobRule,
    LabelRule,
    Operator,
    Toleration,
    Where,
)
from muster.model.value import GpuModel, NodeId, PoolName, Value, replace

HOSTNAME = "kubernetes.io/hostname"
POOL = "muster.io/pool"
PRODUCT = "nvidia.com/gpu.product"
SAME_EVERYWHERE = {
    "kubernetes.io/os": "linux",
    "beta.kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    "beta.kubernetes.io/arch": "amd64",
}
"""Labels that all nodes show, and of which Muster's nodes know nothing."""
NO_EXECUTE = "NoExecute"
NAME_FIELD = "metadata.name"
_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.ABSENT,
}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_OWN_TAINTS = "node.kubernetes.io/"


class Place(Value):
    """Where tasks may land: rules, pools and GPU models; and what of it cannot be kept.

    models, pools: None where all will do.
    """

    where: Where = Where()
    models: tuple[GpuModel, ...] | None = None
    pools: tuple[PoolName, ...] | None = None
    refused: tuple[Cause, ...] = ()
    warnings: tuple[str, ...] = ()


def place_of(spec: JsonObject, products: Mapping[str, GpuModel]) -> Place:
    """What the spec of a pod says of its place. products: models by the labels that nodes show."""
    needed, refused = _required_terms(spec)
    selector = part(spec, "nodeSelector")
    rules = [LabelRule(key=key, values=(str(selector[key]),)) for key in sorted(selector)]
    place = Place(where=_tolerating(spec), refused=refused)
    for rule in (*rules, *needed):
        place = _narrowed(place, rule, products)
    node = str(spec.get("nodeName") or "")
    if node:
        place = _narrowed(place, LabelRule(key=HOSTNAME, values=(node,)), products)
    system = str(part(spec, "os").get("name") or "linux")
    if system != "linux":
        why = f"no node runs {system}"
        place = replace(place, refused=(*place.refused, forbidden_field("spec.os.name", why)))
    return _beside(_preferring(place, spec), spec)


def _narrowed(place: Place, rule: LabelRule, products: Mapping[str, GpuModel]) -> Place:
    """With one more rule. Some labels are names of things that Muster knows otherwise."""
    where = place.where
    if rule.key in SAME_EVERYWHERE and rule.accepts(SAME_EVERYWHERE):
        return place
    if rule.key == HOSTNAME and rule.operator is Operator.IN:
        return replace(place, where=replace(where, nodes=_both(where.nodes, _ids(rule))))
    if rule.key == HOSTNAME and rule.operator is Operator.NOT_IN:
        return replace(place, where=replace(where, not_nodes=(*where.not_nodes, *_ids(rule))))
    if rule.key == POOL and rule.operator is Operator.IN:
        named = tuple(map(PoolName, rule.values))
        return replace(place, pools=_of_both(place.pools, named))
    if rule.key == PRODUCT and rule.operator is Operator.IN:
        named = tuple(products.get(value, GpuModel(value)) for value in rule.values)
        return replace(place, models=_of_both(place.models, tuple(dict.fromkeys(named))))
    return replace(place, where=replace(where, require=(*where.require, rule)))


def _ids(rule: LabelRule) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, rule.values))


def _both(before: tuple[NodeId, ...], now: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    """Nodes of both lists; where they have none in common, a name that no node has."""
    if not before:
        return now
    return tuple(each for each in before if each in now) or (NodeId("-"),)


def _of_both(before: tuple[Any, ...] | None, now: tuple[Any, ...]) -> tuple[Any, ...]:
    if before is None:
        return now
    return tuple(each for each in before if each in now) or ("-",)


def _required_terms(spec: JsonObject) -> tuple[tuple[LabelRule, ...], tuple[Cause, ...]]:
    """The rules that all must hold. Of several terms one is enough, which Muster cannot say."""
    at = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    terms = items(spec, "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms")
    read = [tuple(_rules(term, f"{at}[{place}]")) for place, term in enumerate(terms)]
    refused = tuple(each for term in read for each in term if isinstance(each, Cause))
    if refused or not read:
        return (), refused
    rules = [tuple(each for each in term if isinstance(each, LabelRule)) for term in read]
    if len(rules) == 1:
        return rules[0], ()
    joined = _joined(rules)
    if joined is None:
        why = "Muster keeps one term, or several that name values of one label"
        return (), (forbidden_field(at, why),)
    return (joined,), ()


def _joined(terms: Sequence[tuple[LabelRule, ...]]) -> LabelRule | None:
    """One rule for several terms, where each is about values of the same label."""
    if any(len(term) != 1 or term[0].operator is not Operator.IN for term in terms):
        return None
    if len({term[0].key for term in terms}) > 1:
        return None
    values = tuple(dict.fromkeys(value for term in terms for value in term[0].values))
    return LabelRule(key=terms[0][0].key, values=values)


def _rules(term: JsonObject, at: str) -> Iterator[LabelRule | Cause]:
    for name in ("matchExpressions", "matchFields"):
        for place, rule in enumerate(items(term, name)):
            key, operator = str(rule.get("key")), str(rule.get("operator"))
            where = f"{at}.{name}[{place}]"
            if operator not in _OPERATORS:
                yield forbidden_field(f"{where}.operator", f"Muster cannot compare with {operator}")
            elif name == "matchFields" and key != NAME_FIELD:
                yield forbidden_field(f"{where}.key", f"only {NAME_FIELD} can be matched")
            else:
                label = HOSTNAME if name == "matchFields" else key
                values = tuple(map(str, items(rule, "values")))
                yield LabelRule(key=label, operator=_OPERATORS[operator], values=values)


def _preferring(place: Place, spec: JsonObject) -> Place:
    """With what it would rather have; what weighs most comes first."""
    at = f"spec.affinity.nodeAffinity.{_PREFERRED}"
    terms = items(spec, "affinity", "nodeAffinity", _PREFERRED)
    order = sorted(range(len(terms)), key=lambda each: -int(terms[each].get("weight", 0)))
    prefer: list[LabelRule] = []
    refused: list[Cause] = []
    for number in order:
        term = part(terms[number], "preference")
        for each in _rules(term, f"{at}[{number}].preference"):
            prefer.append(each) if isinstance(each, LabelRule) else refused.append(each)
    return replace(
        place,
        where=replace(place.where, prefer=tuple(prefer)),
        refused=(*place.refused, *refused),
    )


def _tolerating(spec: JsonObject) -> Where:
    """Taints of Muster keep tasks from starting; one of NoExecute has a name of its own there."""
    found = [
        Toleration(
            key=taint_key(str(each["key"]), effect) if each.get("key") else None,
            value=str(each.get("value") or "") if _compares(each) else None,
        )
        for each in items(spec, "tolerations")
        for effect in ("NoSchedule", NO_EXECUTE)
        if each.get("effect") in (None, "", effect)
        and not str(each.get("key") or "").startswith(_OWN_TAINTS)
    ]
    found = list(dict.fromkeys(found))
    return Where(tolerate=tuple(found))


def taint_key(key: str, effect: str) -> str:
    """How Muster calls a taint: who tolerates one effect does not tolerate the other."""
    return f"{key}:{effect}" if effect == NO_EXECUTE else key


def _compares(toleration: JsonObject) -> bool:
    return toleration.get("operator") in (None, "", "Equal")


def _beside(place: Place, spec: JsonObject) -> Place:
    near: list[JobRule] = []
    far: list[JobRule] = []
    refused = list(place.refused)
    for kind, rules in (("podAffinity", near), ("podAntiAffinity", far)):
        for number, term in enumerate(items(spec, "affinity", kind, _REQUIRED)):
            found = _neighbours(term, f"spec.affinity.{kind}.{_REQUIRED}[{number}]")
            rules.append(found) if isinstance(found, JobRule) else refused.append(found)
    where = replace(place.where, near=tuple(near), apart=tuple(far))
    warned = tuple(
        f"spec.topologySpreadConstraints[{number}] has no effect: pods are not spread by it"
        for number, _ in enumerate(items(spec, "topologySpreadConstraints"))
    )
    return replace(place, where=where, refused=tuple(refused), warnings=warned)


def _neighbours(term: JsonObject, at: str) -> JobRule | Cause:
    """Pods with one label, and how near counts."""
    labels = {key: str(value) for key, value in part(term, "labelSelector", "matchLabels").items()}
    for rule in items(term, "labelSelector", "matchExpressions"):
        values = items(rule, "values")
        if rule.get("operator") != "In" or len(values) != 1:
            return forbidden_field(f"{at}.labelSelector", "Muster keeps rules about one label")
        labels[str(rule.get("key"))] = str(values[0])
    if len(labels) != 1:
        return forbidden_field(f"{at}.labelSelector", "Muster keeps rules about one label")
    key, value = next(iter(labels.items()))
    return JobRule(key=key, value=value, level=level_of(str(term.get("topologyKey"))))


def level_of(topology_key: str) -> str:
    """The level of a topology that a label of nodes names: `topology.kubernetes.io/rack`."""
    return NODE_LEVEL if topology_key == HOSTNAME else topology_key.rpartition("/")[2]
