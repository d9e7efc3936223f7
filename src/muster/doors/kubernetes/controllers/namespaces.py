"""Namespaces: what each has from the start, and how one is emptied before it goes."""

from collections import Counter
from collections.abc import Mapping, Sequence

from muster.doors.kubernetes.controllers.changes import (
    NOTHING,
    Create,
    Delete,
    Draft,
    Outcome,
)
from muster.doors.kubernetes.controllers.cluster import Cluster, kind_name
from muster.doors.kubernetes.controllers.conditions import found
from muster.doors.kubernetes.controllers.pods import is_leaving
from muster.doors.kubernetes.objects.kinds import CONFIG_MAP, KINDS, SERVICE_ACCOUNT
from muster.doors.kubernetes.objects.times import stamp
from muster.doors.kubernetes.objects.value import JsonObject, items, name_of, part
from muster.model.value import Instant

SOURCE = "namespace-controller"
KEPT_BY = "kubernetes"
"""The finalizer that holds a namespace until it is empty."""

ROOT_CA = "kube-root-ca.crt"
ROOT_CA_WORDS = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal"
    " endpoints such as the internal service IP or kubernetes.default.svc. No other usage is"
    " guaranteed across distributions of Kubernetes clusters."
)

# Type: reason and message while nothing is wrong.
ALL_WELL = {
    "NamespaceDeletionDiscoveryFailure": (
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": (
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
}
_RESOURCES = {each.qualified_kind: f"{each.plural}.{each.group}" for each in KINDS}


def furnish(namespace: JsonObject, cluster: Cluster, root_ca: str) -> Outcome:
    """Give a namespace the account its pods run as, and what they need to trust the server."""
    if is_leaving(namespace):
        return NOTHING
    space = name_of(namespace)
    draft = Draft(namespace, SOURCE)
    if cluster.get(SERVICE_ACCOUNT, space, "default") is None:
        account = {"name": "default", "namespace": space}
        draft.make(
            Create(object={"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
        )
    held = cluster.get(CONFIG_MAP, space, ROOT_CA)
    if held is None:
        draft.make(Create(object=_root_ca_map(space, root_ca)))
    elif held.get("data") != {"ca.crt": root_ca}:
        draft.update({**held, "data": {"ca.crt": root_ca}})
    return draft.outcome()


def empty(namespace: JsonObject, cluster: Cluster, now: Instant) -> Outcome:
    """Delete what is in a namespace that goes: pods first, then the rest; then let it go."""
    if not is_leaving(namespace) or KEPT_BY not in items(namespace, "spec", "finalizers"):
        return NOTHING
    draft = Draft(namespace, SOURCE)
    within = cluster.within(name_of(namespace))
    pods = [each for each in within if kind_name(each) == "Pod"]
    for each in pods or within:
        if not is_leaving(each):
            draft.remove(Delete(object=each))
    # While pods end nothing is said of what remains; the rest is not looked at yet.
    remaining = [] if pods else [each for each in within if items(each, "metadata", "finalizers")]
    status = _status(namespace, remaining, now)
    if status != part(namespace, "status"):
        namespace = {**namespace, "status": status}
        draft.update_status(namespace)
    if not within:
        left = [each for each in items(namespace, "spec", "finalizers") if each != KEPT_BY]
        draft.update({**namespace, "spec": {**namespace["spec"], "finalizers": left}})
    return draft.outcome()


def _root_ca_map(space: str, root_ca: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": ROOT_CA,
            "namespace": space,
            "annotations": {"kubernetes.io/description": ROOT_CA_WORDS},
        },
        "data": {"ca.crt": root_ca},
    }


def _status(namespace: JsonObject, remaining: Sequence[JsonObject], now: Instant) -> JsonObject:
    troubles: dict[str, tuple[str, str]] = {}
    if remaining:
        kinds = Counter(kind_name(each) for each in remaining)
        told = sorted(
            f"{_RESOURCES.get(kind, kind)} has {count} resource instances"
            for kind, count in kinds.items()
        )
        words = f"Some resources are remaining: {', '.join(told)}"
        troubles["NamespaceContentRemaining"] = ("SomeResourcesRemain", words)
        holders = Counter(
            each for obj in remaining for each in items(obj, "metadata", "finalizers")
        )
        told = sorted(f"{name} in {count} resource instances" for name, count in holders.items())
        words = f"Some content in the namespace has finalizers remaining: {', '.join(told)}"
        troubles["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", words)
    conditions = [_condition(namespace, type_, troubles, now) for type_ in ALL_WELL]
    return {**part(namespace, "status"), "phase": "Terminating", "conditions": conditions}


def _condition(
    namespace: JsonObject,
    type_: str,
    troubles: Mapping[str, tuple[str, str]],
    now: Instant,
) -> JsonObject:
    reason, message = troubles.get(type_, ALL_WELL[type_])
    status = "True" if type_ in troubles else "False"
    held = found(items(namespace, "status", "conditions"), type_)
    since = held["lastTransitionTime"] if held and held["status"] == status else stamp(now)
    return {
        "type": type_,
        "status": status,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }
