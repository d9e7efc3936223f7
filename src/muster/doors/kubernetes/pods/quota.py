"""Resource quotas: how much the pods of a namespace may ask for together. Pure.

A ResourceQuota is a line of a queue's quota in other words: what it limits counts for all doors.
What only Kubernetes counts (objects, scopes) is looked at when a pod is created.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from muster.doors.kubernetes.objects.errors import Cause, StatusError, forbidden, invalid
from muster.doors.kubernetes.objects.kinds import POD, SERVICE
from muster.doors.kubernetes.objects.services import ports_and_balancers
from muster.doors.kubernetes.objects.value import JsonObject, Kind, items, name_of, part
from muster.doors.kubernetes.pods import quantities, resources
from muster.doors.kubernetes.pods.checks.amounts import is_extended
from muster.doors.kubernetes.pods.resources import CPU, GPU, MEMORY, MIG_PREFIX, STORAGE
from muster.model.queue import Meter, Queue, Quota, Scope
from muster.model.value import replace

PODS = "pods"
COUNT = "count/"
COUNT_PODS = f"{COUNT}pods"
SCOPES = frozenset(
    "BestEffort CrossNamespacePodAffinity NotBestEffort NotTerminating PriorityClass Terminating "
    "VolumeAttributesClass".split()
)
_REQUESTS, _LIMITS = "requests.", "limits."
_PLAIN = (CPU, MEMORY, STORAGE)
_WHOLE = 1_000
_MIB = 1_024**2


def charge_of(spec: JsonObject) -> dict[str, Decimal]:
    """What a pod with this spec counts as."""
    wanted, limits = resources.requests_of(spec), resources.limits_of(spec)
    found = {PODS: Decimal(1), COUNT_PODS: Decimal(1)}
    for name, value in wanted.items():
        found[f"{_REQUESTS}{name}"] = value
        if name in _PLAIN:
            found[name] = value
    for name, value in limits.items():
        if not is_extended(name):
            found[f"{_LIMITS}{name}"] = value
    return found


def refusal(
    pod: JsonObject, quotas: Iterable[JsonObject], used: Mapping[str, Mapping[str, Decimal]]
) -> StatusError | None:
    """Why the pod may not be created, in the words of Kubernetes; None where it may.

    used: by the name of the quota, what the namespace's other pods count as.
    """
    spec = part(pod, "spec")
    charge = charge_of(spec)
    for quota in sorted(quotas, key=name_of):
        if not matches(quota, spec):
            continue
        name = name_of(quota)
        hard = quantities.totals(part(quota, "spec", "hard"))
        missing = _unsaid(spec, hard)
        if missing:
            return forbidden(POD, name_of(pod), f"failed quota: {name}: must specify {missing}")
        over = _over(charge, hard, used.get(name, {}))
        if over:
            return forbidden(POD, name_of(pod), _words(name, over, part(quota, "spec", "hard")))
    return None


def object_charge(kind: Kind, obj: JsonObject) -> dict[str, Decimal]:
    """What an object that is no pod counts as."""
    found = {f"{COUNT}{kind.resource}": Decimal(1)}
    if not kind.group:
        found[kind.resource] = Decimal(1)
    if kind == SERVICE:
        found |= {name: Decimal(count) for name, count in ports_and_balancers(obj).items()}
    return found


def objects_usage(
    kind: Kind, count: int, services: Iterable[JsonObject] = ()
) -> dict[str, Decimal]:
    """What so many of a kind count as. services: they themselves, if they are Services."""
    found = {name: value * count for name, value in object_charge(kind, {}).items()}
    for each in services:
        for name, more in ports_and_balancers(each).items():
            found[name] += more
    return found


def count_refusal(
    kind: Kind, new: JsonObject, quotas: Iterable[JsonObject], used: Mapping[str, Decimal]
) -> StatusError | None:
    """Why an object that is no pod may not be created: there are as many as there may be."""
    charge = object_charge(kind, new)
    for quota in sorted(quotas, key=name_of):
        if is_scoped(quota):
            continue
        hard = part(quota, "spec", "hard")
        over = _over(charge, quantities.totals(hard), used)
        if over:
            return forbidden(kind, name_of(new), _words(name_of(quota), over, hard))
    return None


def is_scoped(quota: JsonObject) -> bool:
    """Does it count only some pods, and nothing else?"""
    return bool(items(quota, "spec", "scopes") or part(quota, "spec", "scopeSelector"))


def quota_causes(obj: JsonObject, _old: JsonObject | None) -> list[Cause]:
    """What is wrong with a quota."""
    found = [
        invalid(
            f"spec.hard[{name}]", quantities.canonical(text), "must be greater than or equal to 0"
        )
        for name, text in sorted(part(obj, "spec", "hard").items())
        if quantities.amount(text) < 0
    ]
    scopes = [str(each) for each in items(obj, "spec", "scopes")]
    if any(each not in SCOPES for each in scopes):
        found.append(invalid("spec.scopes", scopes, "unsupported scope"))
    return found


def matches(quota: JsonObject, spec: JsonObject) -> bool:
    """Does the quota count pods like this one?"""
    scopes = [str(each) for each in items(quota, "spec", "scopes")]
    if not all(_is_in_scope(each, spec) for each in scopes):
        return False
    rules = items(quota, "spec", "scopeSelector", "matchExpressions")
    return all(_is_selected(each, spec) for each in rules)


def _is_in_scope(scope: str, spec: JsonObject) -> bool:
    ends = spec.get("activeDeadlineSeconds") is not None
    best_effort = resources.qos_class(spec) == "BestEffort"
    known = {
        "Terminating": ends,
        "NotTerminating": not ends,
        "BestEffort": best_effort,
        "NotBestEffort": not best_effort,
        "PriorityClass": bool(spec.get("priorityClassName")),
    }
    return known.get(scope, False)


def _is_selected(rule: JsonObject, spec: JsonObject) -> bool:
    scope, operator = str(rule.get("scopeName")), rule.get("operator")
    if scope != "PriorityClass":
        return _is_in_scope(scope, spec)
    name, values = str(spec.get("priorityClassName") or ""), items(rule, "values")
    return {
        "In": name in values,
        "NotIn": name not in values,
        "Exists": bool(name),
        "DoesNotExist": not name,
    }.get(str(operator), False)


def _unsaid(spec: JsonObject, hard: Mapping[str, Decimal]) -> str:
    """`cpu for: a,b; memory for: a`: what the quota limits, each container must say."""
    lacking: dict[str, list[str]] = {}
    for container in (*items(spec, "containers"), *items(spec, "initContainers")):
        for name in sorted(hard):
            kind, resource = _kind_of(name)
            if kind and resource not in part(container, "resources", kind):
                lacking.setdefault(name, []).append(str(container.get("name")))
    return "; ".join(f"{name} for: {','.join(who)}" for name, who in lacking.items())


def _kind_of(name: str) -> tuple[str, str]:
    """`limits.cpu` is the limit of cpu; devices need not be said, for none is none of them."""
    if name in (CPU, MEMORY):
        return "requests", name
    for prefix, kind in ((_REQUESTS, "requests"), (_LIMITS, "limits")):
        resource = name.removeprefix(prefix)
        if name.startswith(prefix) and resource in (CPU, MEMORY):
            return kind, resource
    return "", ""


def _over(
    charge: Mapping[str, Decimal], hard: Mapping[str, Decimal], used: Mapping[str, Decimal]
) -> dict[str, tuple[Decimal, Decimal, Decimal]]:
    nothing = Decimal(0)
    return {
        name: (charge[name], used.get(name, nothing), most)
        for name, most in sorted(hard.items())
        if charge.get(name) and charge[name] + used.get(name, nothing) > most
    }


def _words(
    quota: str, over: Mapping[str, tuple[Decimal, Decimal, Decimal]], written: Mapping[str, Any]
) -> str:
    def listed(place: int) -> str:
        return ",".join(
            f"{name}={quantities.shown(amounts[place], like=_like(name, str(written[name])))}"
            for name, amounts in over.items()
        )

    return (
        f"exceeded quota: {quota}, requested: {listed(0)}, used: {listed(1)}, limited: {listed(2)}"
    )


def _like(name: str, written: str) -> str:
    """Memory is written in powers of 1,024, however the quota was."""
    return "Mi" if name.endswith(MEMORY) else written


def status_of_quota(quota: JsonObject, used: Mapping[str, Decimal]) -> JsonObject:
    """What the quota allows and what is used of it."""
    hard = part(quota, "spec", "hard")
    nothing = Decimal(0)
    return {
        "hard": dict(hard),
        "used": {
            name: quantities.shown(used.get(name, nothing), like=_like(name, str(hard[name])))
            for name in hard
        },
    }


def pod_usage(quota: JsonObject, pods: Iterable[JsonObject]) -> Mapping[str, str]:
    """What pods use of a quota, by resource, as the quota shows it."""
    used: dict[str, Decimal] = {}
    for pod in pods:
        spec = part(pod, "spec")
        is_over = part(pod, "status").get("phase") in {"Succeeded", "Failed"}
        if is_over or not matches(quota, spec):
            continue
        for name, charge in charge_of(spec).items():
            used[name] = used.get(name, Decimal(0)) + charge
    return part(status_of_quota(quota, used), "used")


def queue_with(queue: Queue, quotas: Iterable[JsonObject]) -> Queue:
    """The queue with the limits that its namespace's quotas set, for jobs through every door.

    Quotas with scopes count only some pods, and so set no limit for the queue as a whole.
    """
    hard: dict[str, Decimal] = {}
    for quota in quotas:
        if is_scoped(quota):
            continue
        for name, most in quantities.totals(part(quota, "spec", "hard")).items():
            hard[name] = min(most, hard.get(name, most))
    lines = {scope: value for name, most in hard.items() for scope, value in _line(name, most)}
    kept = tuple(_limited(line, lines.pop(line.scope, None)) for line in queue.quotas)
    added = tuple(Quota(scope=scope, limit=limit) for scope, limit in lines.items())
    pods = hard.get(PODS, hard.get(COUNT_PODS))
    return replace(
        queue,
        quotas=(*kept, *added),
        max_submitted=queue.max_submitted if pods is None else int(pods),
    )


def _limited(line: Quota, limit: int | None) -> Quota:
    return line if limit is None else replace(line, limit=limit)


def _line(name: str, most: Decimal) -> Iterable[tuple[Scope, int]]:
    """The line of a queue's quota that it is; none for what only Kubernetes counts."""
    plain = name.removeprefix(_REQUESTS)
    if plain == CPU:
        return ((Scope(meter=Meter.CPU), int(most * _WHOLE)),)
    if plain == MEMORY:
        return ((Scope(meter=Meter.MEMORY), int(most / _MIB)),)
    if name == f"{_REQUESTS}{GPU}":
        return ((Scope(meter=Meter.GPU), int(most * _WHOLE)),)
    if name.startswith(f"{_REQUESTS}{MIG_PREFIX}"):
        return ((Scope(meter=Meter.MIG, profile=plain.removeprefix(MIG_PREFIX)), int(most)),)
    return ()


def hard_of(queue: Queue) -> dict[str, str]:
    """The limits of a queue as a quota of Kubernetes would write them."""
    found: dict[str, str] = {}
    for line in queue.quotas:
        scope, limit = line.scope, line.limit
        if not isinstance(limit, int) or scope.pool is not None or scope.model is not None:
            continue
        match scope.meter:
            case Meter.CPU:
                found[f"{_REQUESTS}{CPU}"] = quantities.cpu(limit)
            case Meter.MEMORY:
                found[f"{_REQUESTS}{MEMORY}"] = quantities.memory(limit)
            case Meter.GPU:
                found[f"{_REQUESTS}{GPU}"] = quantities.shown(Decimal(limit) / _WHOLE)
            case Meter.MIG:
                found[f"{_REQUESTS}{MIG_PREFIX}{scope.profile}"] = str(limit)
    if queue.max_submitted is not None:
        found[PODS] = str(queue.max_submitted)
    return found
