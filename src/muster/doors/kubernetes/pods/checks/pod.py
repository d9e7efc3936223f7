"""What is wrong with a pod as a whole, and with a change of one."""

from collections.abc import Iterator
from typing import cast

from muster.doors.kubernetes.objects.errors import (
    Cause,
    forbidden_field,
    invalid,
    not_supported,
    required,
)
from muster.doors.kubernetes.objects.value import JsonObject, copied, items, part
from muster.doors.kubernetes.pods.checks import names
from muster.doors.kubernetes.pods.checks.amounts import resources_causes
from muster.doors.kubernetes.pods.checks.containers import container_causes
from muster.doors.kubernetes.pods.checks.scheduling import (
    affinity_causes,
    gate_causes,
    label_causes,
    spread_causes,
    toleration_causes,
)
from muster.doors.kubernetes.pods.checks.volumes import volume_causes

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MOST_DEADLINE = 2**31 - 1
_MAY_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def pod_causes(pod: JsonObject, old: JsonObject | None) -> list[Cause]:
    """All that is wrong with a pod, or with what it is changed into."""
    spec = part(pod, "spec")
    causes = list(spec_causes(spec, "spec"))
    if old is not None:
        causes.extend(_change_causes(pod, old))
    elif spec.get("nodeName") and items(spec, "schedulingGates"):
        why = "cannot be set until all schedulingGates have been cleared"
        causes.append(forbidden_field("spec.nodeName", why))
    return causes


def spec_causes(spec: JsonObject, path: str) -> Iterator[Cause]:
    """All that is wrong with the spec of a pod, or of a template."""
    yield from volume_causes(spec, path)
    yield from container_causes(spec, path)
    yield from _choice_causes(spec, path)
    yield from label_causes(part(spec, "nodeSelector"), f"{path}.nodeSelector")
    yield from resources_causes(part(spec, "resources"), f"{path}.resources")
    yield from affinity_causes(spec, path)
    yield from gate_causes(spec, path)
    yield from spread_causes(spec, path)
    yield from _name_causes(spec, path)
    yield from _deadline_causes(spec, path)
    yield from toleration_causes(spec, path)
    yield from _alias_causes(spec, path)
    policy = spec.get("preemptionPolicy", "Never")
    if policy not in ("PreemptLowerPriority", "Never"):
        yield not_supported(f"{path}.preemptionPolicy", policy, ("Never", "PreemptLowerPriority"))


def _choice_causes(spec: JsonObject, path: str) -> Iterator[Cause]:
    restart, dns = spec.get("restartPolicy", ""), spec.get("dnsPolicy", "")
    if not restart:
        yield required(f"{path}.restartPolicy")
    elif restart not in RESTART_POLICIES:
        yield not_supported(f"{path}.restartPolicy", restart, RESTART_POLICIES)
    if dns and dns not in DNS_POLICIES:
        yield not_supported(f"{path}.dnsPolicy", dns, DNS_POLICIES)


def _name_causes(spec: JsonObject, path: str) -> Iterator[Cause]:
    for field, rule in (
        ("serviceAccountName", names.subdomain),
        ("nodeName", names.subdomain),
        ("hostname", names.label_name),
        ("subdomain", names.label_name),
        ("priorityClassName", names.subdomain),
        ("runtimeClassName", names.subdomain),
    ):
        name = str(spec.get(field) or "")
        if name:
            yield from (invalid(f"{path}.{field}", name, why) for why in rule(name))


def _deadline_causes(spec: JsonObject, path: str) -> Iterator[Cause]:
    seconds = spec.get("activeDeadlineSeconds")
    if seconds is not None and not 1 <= seconds <= _MOST_DEADLINE:
        why = f"must be between 1 and {_MOST_DEADLINE}, inclusive"
        yield invalid(f"{path}.activeDeadlineSeconds", seconds, why)


def _alias_causes(spec: JsonObject, path: str) -> Iterator[Cause]:
    for place, alias in enumerate(items(spec, "hostAliases")):
        for each in items(alias, "hostnames"):
            where = f"{path}.hostAliases[{place}].hostnames"
            yield from (invalid(where, each, why) for why in names.subdomain(str(each)))


def _change_causes(pod: JsonObject, old: JsonObject) -> Iterator[Cause]:
    new_spec, old_spec = part(pod, "spec"), part(old, "spec")
    yield from _gate_changes(new_spec, old_spec)
    yield from _deadline_changes(new_spec, old_spec)
    is_gated = bool(items(old_spec, "schedulingGates"))
    if _fixed(new_spec, gated=is_gated) != _fixed(old_spec, gated=is_gated) or not _only_added(
        new_spec, old_spec
    ):
        yield forbidden_field("spec", _MAY_CHANGE)


def _gate_changes(new_spec: JsonObject, old_spec: JsonObject) -> Iterator[Cause]:
    had = {each.get("name") for each in items(old_spec, "schedulingGates")}
    for place, gate in enumerate(items(new_spec, "schedulingGates")):
        if gate.get("name") not in had:
            yield forbidden_field(
                f"spec.schedulingGates[{place}].name",
                f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
            )


def _deadline_changes(new_spec: JsonObject, old_spec: JsonObject) -> Iterator[Cause]:
    now, before = new_spec.get("activeDeadlineSeconds"), old_spec.get("activeDeadlineSeconds")
    if before is None:
        return
    field = "spec.activeDeadlineSeconds"
    if now is None:
        yield invalid(field, None, "must not update from a positive integer to nil value")
    elif now > before:
        yield invalid(field, now, "must be less than or equal to previous value")


def _fixed(spec: JsonObject, *, gated: bool) -> JsonObject:
    """What may not change: all but these; while it is gated, its place may still be narrowed."""
    fixed = copied(spec)
    free = ["activeDeadlineSeconds", "tolerations", "schedulingGates"]
    if gated:
        free += ["nodeSelector", "affinity"]
    for name in free:
        fixed.pop(name, None)
    for name in ("containers", "initContainers"):
        for container in cast("list[JsonObject]", items(fixed, name)):
            container.pop("image", None)
    if fixed.get("terminationGracePeriodSeconds", 0) < 0:
        fixed["terminationGracePeriodSeconds"] = 1
    return {name: value for name, value in fixed.items() if value not in (None, [], {})}


def _only_added(new_spec: JsonObject, old_spec: JsonObject) -> bool:
    now = items(new_spec, "tolerations")
    return all(each in now for each in items(old_spec, "tolerations"))
