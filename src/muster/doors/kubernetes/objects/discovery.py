"""Discovery: which groups, versions and resources there are, in the forms that clients ask for."""

import base64
import hashlib
from collections.abc import Iterable, Sequence

from muster.doors.kubernetes.objects.value import JsonObject, Kind, Subresource

GROUP_ORDER = (
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "metrics.k8s.io",
    "custom.metrics.k8s.io",
)
"""As Kubernetes lists them; all others follow by name."""

VERSION: JsonObject = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.3+muster",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
"""The Kubernetes whose API this is. Clients choose by it what they send."""


def groups(kinds: Iterable[Kind]) -> list[str]:
    """All groups but the first one, which has no name."""
    found = {each.group for each in kinds if each.group}
    return sorted(found, key=lambda each: (_place(each), each))


def _place(group: str) -> int:
    return GROUP_ORDER.index(group) if group in GROUP_ORDER else len(GROUP_ORDER)


def versions(kinds: Iterable[Kind], group: str) -> list[str]:
    """The versions of a group, the preferred one first."""
    found = {each.version for each in kinds if each.group == group}
    return sorted(found, key=_version_order)


def _version_order(version: str) -> tuple[int, str]:
    """Stable versions before others, and newer ones before older ones."""
    is_stable = version.removeprefix("v").isdecimal()
    newest = -int(version.removeprefix("v")) if is_stable else 0
    return (newest if is_stable else 1, version)


def api_versions(address: str) -> JsonObject:
    """`/api`, as it was before there were groups."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def group_list(kinds: Sequence[Kind]) -> JsonObject:
    """`/apis`, without resources."""
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(kinds, each) for each in groups(kinds)],
    }


def one_group(kinds: Sequence[Kind], group: str) -> JsonObject:
    """`/apis/GROUP`."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(kinds, group)}


def _group(kinds: Sequence[Kind], group: str) -> JsonObject:
    known = [
        {"groupVersion": f"{group}/{each}", "version": each} for each in versions(kinds, group)
    ]
    return {"name": group, "versions": known, "preferredVersion": known[0]}


def resource_list(kinds: Iterable[Kind], group: str, version: str) -> JsonObject:
    """`/api/v1` and `/apis/GROUP/VERSION`: the resources of one version."""
    found = [each for each in kinds if (each.group, each.version) == (group, version)]
    rows = [row for each in sorted(found, key=_by_name) for row in _resources(each)]
    return {
        "kind": "APIResourceList",
        **({"apiVersion": "v1"} if group else {}),
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": rows,
    }


def _by_name(kind: Kind) -> str:
    return kind.plural


def _resources(kind: Kind) -> list[JsonObject]:
    row: JsonObject = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        row["shortNames"] = list(kind.short_names)
    if kind.categories:
        row["categories"] = list(kind.categories)
    if kind.is_stored:
        row["storageVersionHash"] = _stored_as(kind)
    own = [row] if kind.verbs else []
    return [*own, *(_subresource(kind, each) for each in kind.subresources)]


def _stored_as(kind: Kind) -> str:
    """By which clients see that objects are kept in another version than before."""
    named = f"{kind.kept.group}/{kind.kept.version}/{kind.kept.kind}"
    return base64.b64encode(hashlib.sha256(named.encode()).digest()[:8]).decode()


def _subresource(kind: Kind, sub: Subresource) -> JsonObject:
    row: JsonObject = {
        "name": f"{kind.plural}/{sub.name}",
        "singularName": "",
        "namespaced": kind.namespaced,
    }
    if sub.group is not None:
        row.update(group=sub.group, version=sub.version or "")
    return {**row, "kind": sub.kind, "verbs": list(sub.verbs)}


def aggregated(kinds: Sequence[Kind], *, core: bool, version: str) -> JsonObject:
    """`/api` or `/apis` with all resources at once."""
    names = [""] if core else groups(kinds)
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [_aggregated_group(kinds, each) for each in names],
    }


def _aggregated_group(kinds: Sequence[Kind], group: str) -> JsonObject:
    return {
        "metadata": {"name": group} if group else {},
        "versions": [
            {
                "version": version,
                "resources": [
                    _aggregated(each)
                    for each in sorted(kinds, key=_by_name)
                    if (each.group, each.version) == (group, version)
                ],
                "freshness": "Current",
            }
            for version in versions(kinds, group)
        ],
    }


def _aggregated(kind: Kind) -> JsonObject:
    # Kubernetes leaves the group and version of its own kinds empty: they are those of the list.
    own = {"group": kind.group, "version": kind.version} if kind.is_custom else _NO_VERSION
    row: JsonObject = {
        "resource": kind.plural,
        "responseKind": {**own, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        row["shortNames"] = list(kind.short_names)
    if kind.categories:
        row["categories"] = list(kind.categories)
    if kind.subresources:
        row["subresources"] = [_aggregated_sub(each, own) for each in kind.subresources]
    return row


_NO_VERSION = {"group": "", "version": ""}


def _aggregated_sub(sub: Subresource, own: JsonObject) -> JsonObject:
    version = own if sub.group is None else {"group": sub.group, "version": sub.version}
    return {
        "subresource": sub.name,
        "responseKind": {**version, "kind": sub.kind},
        "verbs": list(sub.verbs),
    }
