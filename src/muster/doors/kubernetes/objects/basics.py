"""Rules of the kinds that need no controller: ConfigMap, Secret, Namespace, accounts and roles."""

import base64
import binascii
from typing import Any

from muster.doors.kubernetes.objects.errors import (
    Cause,
    duplicate,
    forbidden_field,
    invalid,
    not_supported,
    required,
    too_long,
)
from muster.doors.kubernetes.objects.kinds import RBAC
from muster.doors.kubernetes.objects.names import config_key_faults, path_segment_faults
from muster.doors.kubernetes.objects.rules import Rules
from muster.doors.kubernetes.objects.selectors import text_at
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    items,
    metadata,
    name_of,
    part,
)

MOST_DATA_BYTES = 1_024 * 1_024
NAME_LABEL = "kubernetes.io/metadata.name"

OPAQUE = "Opaque"
ACCOUNT_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105 - the name of a type
REQUIRED_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
"""What Secrets of these types must hold."""


def _config_map_faults(obj: JsonObject, old: JsonObject | None) -> list[Cause]:
    data, binary = part(obj, "data"), part(obj, "binaryData")
    causes = _key_faults("data", data)
    causes += [
        invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        for key in sorted(data.keys() & binary.keys())
    ]
    causes += _key_faults("binaryData", binary)
    if sum(map(len, data.values())) + _bytes_in(binary) > MOST_DATA_BYTES:
        causes.append(too_long("", MOST_DATA_BYTES))
    return [*causes, *_frozen_faults(obj, old, ("data", "binaryData"))]


def _secret_default(obj: JsonObject) -> JsonObject:
    texts = part(obj, "stringData")
    obj.pop("stringData", None)
    if texts:
        written = {
            key: base64.b64encode(str(value).encode()).decode() for key, value in texts.items()
        }
        obj["data"] = {**part(obj, "data"), **written}
    obj.setdefault("type", OPAQUE)
    return obj


def _secret_faults(obj: JsonObject, old: JsonObject | None) -> list[Cause]:
    data, kind = part(obj, "data"), str(obj.get("type"))
    causes = _key_faults("data", data)
    if _bytes_in(data) > MOST_DATA_BYTES:
        causes.append(too_long("data", MOST_DATA_BYTES))
    causes += [required(f"data[{key}]") for key in REQUIRED_KEYS.get(kind, ()) if key not in data]
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        causes += [required("data[username]"), required("data[password]")]
    account = "kubernetes.io/service-account.name"
    if kind == ACCOUNT_TOKEN and not annotations_of(obj).get(account):
        causes.append(required(f"metadata.annotations[{account}]"))
    if old is not None and old.get("type") != kind:
        causes.append(invalid("type", kind, "field is immutable"))
    return [*causes, *_frozen_faults(obj, old, ("data",))]


def _key_faults(field: str, data: JsonObject) -> list[Cause]:
    return [
        invalid(f"{field}[{key}]", key, each)
        for key in sorted(data)
        for each in config_key_faults(key)
    ]


def _bytes_in(data: JsonObject) -> int:
    return sum(len(_plain(value)) for value in data.values())


def _plain(value: Any) -> bytes:
    try:
        return base64.b64decode(str(value))
    except binascii.Error:
        return b""


def _frozen_faults(obj: JsonObject, old: JsonObject | None, fields: tuple[str, ...]) -> list[Cause]:
    """What is immutable stays so, and as it is."""
    if old is None or not old.get("immutable"):
        return []
    text = "field is immutable when `immutable` is set"
    causes = [] if obj.get("immutable") else [forbidden_field("immutable", text)]
    return causes + [
        forbidden_field(name, text) for name in fields if part(obj, name) != part(old, name)
    ]


def _namespace_prepare(obj: JsonObject, old: JsonObject | None) -> JsonObject:
    labels = part(obj, "metadata", "labels")
    metadata(obj)["labels"] = {**labels, NAME_LABEL: name_of(obj)}
    if old is None:
        finalizers = items(obj, "spec", "finalizers")
        obj["spec"] = {"finalizers": [*dict.fromkeys([*finalizers, "kubernetes"])]}
        obj["status"] = {"phase": "Active"}
    elif "finalizers" not in part(obj, "spec"):
        obj["spec"] = {**part(obj, "spec"), "finalizers": items(old, "spec", "finalizers")}
    return obj


def _role_faults(obj: JsonObject, _: JsonObject | None) -> list[Cause]:
    is_cluster_wide = obj.get("kind") == "ClusterRole"
    causes: list[Cause] = []
    for place, rule in enumerate(items(obj, "rules")):
        causes += _rule_faults(rule, f"rules[{place}]", is_cluster_wide=is_cluster_wide)
    return causes


def _rule_faults(rule: JsonObject, field: str, *, is_cluster_wide: bool) -> list[Cause]:
    causes: list[Cause] = []
    if not rule.get("verbs"):
        causes.append(required(f"{field}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs")
    if urls:
        if not is_cluster_wide:
            text = "namespaced rules cannot apply to non-resource URLs"
            causes.append(invalid(f"{field}.nonResourceURLs", urls, text))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            text = "rules cannot apply to both regular resources and non-resource URLs"
            causes.append(invalid(f"{field}.nonResourceURLs", urls, text))
        return causes
    if not rule.get("apiGroups"):
        text = "resource rules must supply at least one api group"
        causes.append(required(f"{field}.apiGroups", text))
    if not rule.get("resources"):
        text = "resource rules must supply at least one resource"
        causes.append(required(f"{field}.resources", text))
    return causes


def _role_default(obj: JsonObject) -> JsonObject:
    obj.setdefault("rules", [])
    return obj


def _binding_default(obj: JsonObject) -> JsonObject:
    reference = part(obj, "roleRef")
    if reference and not reference.get("apiGroup"):
        reference["apiGroup"] = RBAC
    for subject in items(obj, "subjects"):
        if not subject.get("apiGroup") and subject.get("kind") in {"User", "Group"}:
            subject["apiGroup"] = RBAC
    return obj


def _binding_faults(obj: JsonObject, old: JsonObject | None) -> list[Cause]:
    reference = part(obj, "roleRef")
    causes: list[Cause] = []
    if reference.get("apiGroup") != RBAC:
        causes.append(not_supported("roleRef.apiGroup", reference.get("apiGroup", ""), [RBAC]))
    allowed = (
        ["ClusterRole"] if obj.get("kind") == "ClusterRoleBinding" else ["Role", "ClusterRole"]
    )
    if reference.get("kind") not in allowed:
        causes.append(not_supported("roleRef.kind", reference.get("kind", ""), allowed))
    name = str(reference.get("name") or "")
    if not name:
        causes.append(required("roleRef.name"))
    causes += [invalid("roleRef.name", name, each) for each in path_segment_faults(name)]
    is_namespaced = obj.get("kind") == "RoleBinding"
    for place, subject in enumerate(items(obj, "subjects")):
        causes += _subject_faults(subject, f"subjects[{place}]", is_namespaced=is_namespaced)
    if old is not None and part(old, "roleRef") != reference:
        # Kubernetes shows this one as its own programs name the fields.
        named = {"apiGroup": "APIGroup", "kind": "Kind", "name": "Name"}
        shown = {go: reference.get(name, "") for name, go in named.items()}
        causes.append(invalid("roleRef", shown, "cannot change roleRef"))
    return causes


def _subject_faults(subject: JsonObject, field: str, *, is_namespaced: bool) -> list[Cause]:
    causes: list[Cause] = []
    if not subject.get("name"):
        causes.append(required(f"{field}.name"))
    match subject.get("kind"):
        case "ServiceAccount":
            if not is_namespaced and not subject.get("namespace"):
                causes.append(required(f"{field}.namespace"))
        case "User" | "Group":
            if subject.get("apiGroup") != RBAC:
                group = subject.get("apiGroup", "")
                causes.append(not_supported(f"{field}.apiGroup", group, [RBAC]))
        case other:
            kinds = ["ServiceAccount", "User", "Group"]
            causes.append(not_supported(f"{field}.kind", other or "", kinds))
    return causes


def _account_faults(obj: JsonObject, _: JsonObject | None) -> list[Cause]:
    names = [str(each.get("name")) for each in items(obj, "secrets")]
    return [
        duplicate(f"secrets[{place}].name", name)
        for place, name in enumerate(names)
        if name in names[:place]
    ]


def _event_source(obj: JsonObject) -> str:
    """Newer programs write who they are elsewhere."""
    return _COMPONENT(obj) or _REPORTING(obj)


_COMPONENT, _REPORTING = text_at("source", "component"), text_at("reportingComponent")

CONFIG_MAPS = Rules(validate=_config_map_faults)
SECRETS = Rules(
    default=_secret_default, validate=_secret_faults, selectable={"type": text_at("type")}
)
NAMESPACES = Rules(
    prepare=_namespace_prepare, selectable={"status.phase": text_at("status", "phase")}
)
SERVICE_ACCOUNTS = Rules(validate=_account_faults)
EVENTS = Rules(
    selectable={
        **{
            f"involvedObject.{name}": text_at("involvedObject", name)
            for name in (
                "kind",
                "namespace",
                "name",
                "uid",
                "apiVersion",
                "resourceVersion",
                "fieldPath",
            )
        },
        "reason": text_at("reason"),
        "reportingComponent": text_at("reportingComponent"),
        "source": _event_source,
        "type": text_at("type"),
    },
)
ROLES = Rules(default=_role_default, validate=_role_faults)
ROLE_BINDINGS = Rules(default=_binding_default, validate=_binding_faults)
