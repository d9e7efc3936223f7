"""What a pod has where its manifest is silent, and what the API itself puts in."""

import hashlib
from collections.abc import Callable
from typing import Any, cast

from muster.doors.kubernetes.objects.errors import bad_request
from muster.doors.kubernetes.objects.value import JsonObject, items, metadata, part
from muster.doors.kubernetes.pods import resources
from muster.doors.kubernetes.pods.quantities import BadQuantityError, canonical

FILE_MODE = 0o644
GRACE_SECONDS = 30
TOKEN_SECONDS = 3_600
# What the API asks for itself is renewed a little before it would end.
OWN_TOKEN_SECONDS = 3_607
TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 -- a folder
ROOT_CA = "kube-root-ca.crt"
_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LETTERS = 5
_LEFT_BY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_LEAVES_AFTER_SECONDS = 300

Fill = Callable[[JsonObject], None]


def defaulted(pod: JsonObject) -> JsonObject:
    """The pod with all that its manifest left out. The object is the caller's own and changes."""
    spec = cast("JsonObject", pod.setdefault("spec", {}))
    fill_template(pod, spec)
    _ask_for_limits(spec)
    return pod


def fill_template(owner: JsonObject, spec: JsonObject) -> None:
    """The same for the spec of a template, in whatever has one. A pod made of it adds the rest."""
    try:
        fill_spec(spec)
    except BadQuantityError as bad:
        kind, version = owner.get("kind", "Pod"), str(owner.get("apiVersion", "v1"))
        version = version.rpartition("/")[2]
        what = f'{kind} in version "{version}" cannot be handled as a {kind}'
        raise bad_request(f"{what}: {bad}") from bad


def fill_spec(spec: JsonObject) -> None:
    """The same for the spec alone: of a pod, or of a template."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", GRACE_SECONDS)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    _same_account(spec)
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for container in items(spec, name):
            _fill_container(container)
    for volume in items(spec, "volumes"):
        _fill_volume(volume)
    for name in ("overhead",):
        _canonical_amounts(part(spec, name))
    _fill_resources(part(spec, "resources"))
    _host_ports(spec)


def admitted(pod: JsonObject, old: JsonObject | None) -> JsonObject:
    """What the API puts into a new pod: account, token, tolerations, quality of service."""
    spec = part(pod, "spec")
    if old is None:
        spec.setdefault("enableServiceLinks", True)
        account = spec.setdefault("serviceAccountName", "default")
        spec["serviceAccount"] = account
        if spec.get("automountServiceAccountToken") is not False:
            _mount_token(pod)
        _tolerate_lost_nodes(spec)
        pod["status"] = {"phase": "Pending", "qosClass": resources.qos_class(spec)}
    return pod


def _same_account(spec: JsonObject) -> None:
    """Two names for one thing."""
    named = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if named:
        spec["serviceAccountName"] = spec["serviceAccount"] = named


def _fill_container(container: JsonObject) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", _pull_policy(str(container.get("image") or "")))
    _fill_resources(cast("JsonObject", container.setdefault("resources", {})))
    for port in items(container, "ports"):
        port.setdefault("protocol", "TCP")
    for variable in items(container, "env"):
        _fill_source(part(variable, "valueFrom"))
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            _fill_probe(part(container, name))
    for name in ("postStart", "preStop"):
        _fill_http(part(container, "lifecycle", name, "httpGet"))


def _pull_policy(image: str) -> str:
    name = image.rpartition("/")[2]
    if "@" in name:
        return "IfNotPresent"
    _, _, tag = name.partition(":")
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _fill_resources(asked: JsonObject) -> None:
    _canonical_amounts(part(asked, "limits"))
    _canonical_amounts(part(asked, "requests"))


def _ask_for_limits(spec: JsonObject) -> None:
    """Where a container of a pod asks for nothing, it asks for what it may have."""
    groups = ("initContainers", "containers", "ephemeralContainers")
    asking = [part(each, "resources") for group in groups for each in items(spec, group)]
    for asked in (*asking, part(spec, "resources")):
        limits, requests = part(asked, "limits"), part(asked, "requests")
        missing = {name: text for name, text in limits.items() if name not in requests}
        if missing:
            asked["requests"] = {**requests, **missing}


def _canonical_amounts(listed: JsonObject) -> None:
    for name, text in listed.items():
        listed[name] = canonical(text)


def _fill_source(source: JsonObject) -> None:
    if "fieldRef" in source:
        part(source, "fieldRef").setdefault("apiVersion", "v1")
    if "resourceFieldRef" in source:
        _fill_divisor(part(source, "resourceFieldRef"))


def _fill_divisor(reference: JsonObject) -> None:
    reference["divisor"] = canonical(reference.get("divisor", "0"))


def _fill_probe(probe: JsonObject) -> None:
    for name, number in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        if not probe.get(name):
            probe[name] = number
    _fill_http(part(probe, "httpGet"))
    if "grpc" in probe:
        part(probe, "grpc").setdefault("service", "")


def _fill_http(action: JsonObject) -> None:
    if action:
        action.setdefault("path", "/")
        action.setdefault("scheme", "HTTP")


def _fill_volume(volume: JsonObject) -> None:
    if not volume.keys() - {"name"}:
        volume["emptyDir"] = {}
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        if name in volume:
            part(volume, name).setdefault("defaultMode", FILE_MODE)
    if "hostPath" in volume:
        part(volume, "hostPath").setdefault("type", "")
    if "sizeLimit" in part(volume, "emptyDir"):
        _canonical_size(part(volume, "emptyDir"))
    _fill_items(part(volume, "downwardAPI"))
    for source in items(volume, "projected", "sources"):
        _fill_items(part(source, "downwardAPI"))
        if "serviceAccountToken" in source:
            part(source, "serviceAccountToken").setdefault("expirationSeconds", TOKEN_SECONDS)


def _canonical_size(folder: JsonObject) -> None:
    folder["sizeLimit"] = canonical(folder["sizeLimit"])


def _fill_items(downward: JsonObject) -> None:
    for item in items(downward, "items"):
        _fill_source(item)


def _host_ports(spec: JsonObject) -> None:
    if not spec.get("hostNetwork"):
        return
    for container in (*items(spec, "containers"), *items(spec, "initContainers")):
        for port in items(container, "ports"):
            port.setdefault("hostPort", port.get("containerPort"))


def _tolerate_lost_nodes(spec: JsonObject) -> None:
    tolerated = cast("list[JsonObject]", spec.setdefault("tolerations", []))
    for key in _LEFT_BY:
        if not any(_tolerates(each, key) for each in tolerated):
            tolerated.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _LEAVES_AFTER_SECONDS,
                }
            )


def _tolerates(toleration: JsonObject, key: str) -> bool:
    named = toleration.get("key") in (key, None, "")
    return named and toleration.get("effect") in ("NoExecute", None, "")


def _mount_token(pod: JsonObject) -> None:
    """Each container finds the token of its service account, unless it mounts something there."""
    spec = part(pod, "spec")
    volumes = cast("list[JsonObject]", spec.setdefault("volumes", []))
    mounted = False
    name = f"kube-api-access-{_suffix(pod)}"
    for kind in ("initContainers", "containers"):
        for container in items(spec, kind):
            mounts = cast("list[JsonObject]", container.setdefault("volumeMounts", []))
            if not any(each.get("mountPath") == TOKEN_FOLDER for each in mounts):
                mounts.append({"name": name, "readOnly": True, "mountPath": TOKEN_FOLDER})
                mounted = True
    # A webhook may add containers to a pod that has its volume already.
    if mounted and not any(each.get("name") == name for each in volumes):
        volumes.append({"name": name, "projected": _token_volume()})
    elif not volumes:
        del spec["volumes"]


def _token_volume() -> JsonObject:
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "defaultMode": FILE_MODE,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": OWN_TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": ROOT_CA, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
        ],
    }


def _suffix(pod: JsonObject) -> str:
    """Five letters that depend on the pod alone, so that the same request gives the same pod."""
    meta = metadata(pod)
    named = "/".join(str(meta.get(each) or "") for each in ("namespace", "name", "uid"))
    digest = hashlib.sha256(named.encode()).digest()
    return "".join(_NAME_LETTERS[byte % len(_NAME_LETTERS)] for byte in digest[:_SUFFIX_LETTERS])


def own_volumes(spec: JsonObject) -> list[Any]:
    """The volumes that the manifest asked for, without what the API put in."""
    volumes = items(spec, "volumes")
    return [each for each in volumes if not str(each.get("name")).startswith("kube-api-access-")]
