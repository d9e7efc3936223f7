"""Kinds that are kept for others: their defaults, and a word where nothing here acts on them."""

from typing import Any

from muster.doors.kubernetes.objects.kinds import (
    API_SERVICE,
    CSI_DRIVER,
    FLOW_SCHEMA,
    INGRESS,
    MUTATING_POLICY,
    MUTATING_POLICY_BINDING,
    MUTATING_WEBHOOK,
    NETWORK_POLICY,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    PRIORITY_LEVEL,
    STORAGE_CLASS,
    VALIDATING_POLICY,
    VALIDATING_POLICY_BINDING,
    VALIDATING_WEBHOOK,
)
from muster.doors.kubernetes.objects.rules import Default, Prepare, Rules
from muster.doors.kubernetes.objects.value import JsonObject, Kind, copied, items, part
from muster.doors.kubernetes.objects.webhook_checks import webhook_causes

WITHOUT_EFFECT: dict[Kind, str] = {
    API_SERVICE: "requests are not passed on to other API servers",
    FLOW_SCHEMA: "requests are answered in the order in which they come",
    INGRESS: "no ingress controller runs here",
    MUTATING_POLICY_BINDING: "policies are kept, and not evaluated",
    NETWORK_POLICY: "pods have the machine's network, and nothing is kept from them",
    PERSISTENT_VOLUME: "pods have no volumes of their own: use hostPath or emptyDir",
    PERSISTENT_VOLUME_CLAIM: "nothing provides volumes: use hostPath or emptyDir",
    PRIORITY_LEVEL: "requests are answered in the order in which they come",
    VALIDATING_POLICY_BINDING: "policies are kept, and not evaluated",
}
"""Kinds that a client may create, and whose objects change nothing here, with why."""


def warnings_about(kind: Kind) -> tuple[str, ...]:
    """What a client is told who creates an object of this kind."""
    why = WITHOUT_EFFECT.get(kind)
    return (f"this {kind.kind} is kept, and has no effect: {why}",) if why else ()


def _fills(**fields: Any) -> Default:
    """Fill in these fields of the object itself."""

    def default(obj: JsonObject) -> JsonObject:
        return {**copied(fields), **obj}

    return default


def _fills_spec(**fields: Any) -> Default:
    """Fill in these fields of its spec."""

    def default(obj: JsonObject) -> JsonObject:
        return {**obj, "spec": {**copied(fields), **part(obj, "spec")}}

    return default


def _webhooks(obj: JsonObject) -> JsonObject:
    is_mutating = obj.get("kind") == "MutatingWebhookConfiguration"
    for webhook in items(obj, "webhooks"):
        webhook.setdefault("failurePolicy", "Fail")
        webhook.setdefault("matchPolicy", "Equivalent")
        webhook.setdefault("namespaceSelector", {})
        webhook.setdefault("objectSelector", {})
        webhook.setdefault("timeoutSeconds", 10)
        if is_mutating:
            webhook.setdefault("reinvocationPolicy", "Never")
        service = part(webhook, "clientConfig", "service")
        if service:
            service.setdefault("port", 443)
        for rule in items(webhook, "rules"):
            rule.setdefault("scope", "*")
    return obj


def _policy(obj: JsonObject) -> JsonObject:
    spec = obj.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    _match(part(spec, "matchConstraints"))
    if obj.get("kind") == "MutatingAdmissionPolicy":
        spec.setdefault("reinvocationPolicy", "Never")
    return obj


def _policy_binding(obj: JsonObject) -> JsonObject:
    _match(part(obj, "spec", "matchResources"))
    return obj


def _match(found: JsonObject) -> None:
    if not found:
        return
    found.setdefault("matchPolicy", "Equivalent")
    found.setdefault("namespaceSelector", {})
    found.setdefault("objectSelector", {})
    for rule in items(found, "resourceRules"):
        rule.setdefault("scope", "*")


def _began(phase: str) -> Prepare:
    """Its status begins so."""

    def prepare(obj: JsonObject, old: JsonObject | None) -> JsonObject:
        if old is None:
            obj["status"] = {"phase": phase}
        return obj

    return prepare


def _flow_schema(obj: JsonObject) -> JsonObject:
    obj.setdefault("spec", {}).setdefault("matchingPrecedence", 1_000)
    return obj


def _priority_level(obj: JsonObject) -> JsonObject:
    spec = obj.setdefault("spec", {})
    if spec.get("type") == "Limited":
        limited = spec.setdefault("limited", {})
        limited.setdefault("nominalConcurrencyShares", 30)
        limited.setdefault("lendablePercent", 0)
    return obj


_WEBHOOKS = Rules(default=_webhooks, validate=webhook_causes)
_POLICIES = Rules(default=_policy)
_BINDINGS = Rules(default=_policy_binding)

KEPT: dict[Kind, Rules] = {
    CSI_DRIVER: Rules(
        default=_fills_spec(
            attachRequired=True,
            fsGroupPolicy="ReadWriteOnceWithFSType",
            podInfoOnMount=False,
            requiresRepublish=False,
            seLinuxMount=False,
            storageCapacity=False,
            volumeLifecycleModes=["Persistent"],
        )
    ),
    FLOW_SCHEMA: Rules(default=_flow_schema),
    MUTATING_POLICY: _POLICIES,
    MUTATING_POLICY_BINDING: _BINDINGS,
    MUTATING_WEBHOOK: _WEBHOOKS,
    PERSISTENT_VOLUME: Rules(
        default=_fills_spec(persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem"),
        prepare=_began("Pending"),
    ),
    PERSISTENT_VOLUME_CLAIM: Rules(
        default=_fills_spec(volumeMode="Filesystem"), prepare=_began("Pending")
    ),
    PRIORITY_LEVEL: Rules(default=_priority_level),
    STORAGE_CLASS: Rules(default=_fills(reclaimPolicy="Delete", volumeBindingMode="Immediate")),
    VALIDATING_POLICY: _POLICIES,
    VALIDATING_POLICY_BINDING: _BINDINGS,
    VALIDATING_WEBHOOK: _WEBHOOKS,
}
"""A row for each of them that adds something."""
