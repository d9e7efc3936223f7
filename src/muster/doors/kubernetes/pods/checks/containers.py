"""What is wrong with containers."""

from collections.abc import Iterator, Sequence
from typing import Any

from muster.doors.kubernetes.objects.errors import (
    Cause,
    duplicate,
    forbidden_field,
    invalid,
    not_found_field,
    not_supported,
    required,
)
from muster.doors.kubernetes.objects.value import JsonObject, items, part
from muster.doors.kubernetes.pods.checks import names
from muster.doors.kubernetes.pods.checks.amounts import resources_causes
from muster.doors.kubernetes.pods.checks.probes import container_probe_causes
from muster.doors.kubernetes.pods.checks.volumes import field_ref_causes
from muster.doors.kubernetes.pods.resources import is_sidecar

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
MESSAGE_POLICIES = ("FallbackToLogsOnError", "File")
PROTOCOLS = ("SCTP", "TCP", "UDP")
SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
    "metadata.labels",
    "metadata.annotations",
)
RESOURCE_FIELDS = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_MOST_PORT = 65_535
_PORT = "must be between 1 and 65535, inclusive"


def container_causes(spec: JsonObject, path: str) -> Iterator[Cause]:
    """Of the containers, then of those that come before them."""
    volumes = {str(each.get("name")) for each in items(spec, "volumes")}
    containers = items(spec, "containers")
    if not containers:
        yield required(f"{path}.containers")
    seen: set[str] = set()
    for place, each in enumerate(containers):
        at = f"{path}.containers[{place}]"
        yield from _common_causes(each, at, volumes)
        yield from _once_causes(each, at, seen)
        yield from container_probe_causes(each, at, init=False)
    for place, each in enumerate(items(spec, "initContainers")):
        at = f"{path}.initContainers[{place}]"
        yield from _common_causes(each, at, volumes)
        yield from _once_causes(each, at, seen)
        yield from container_probe_causes(each, at, init=not is_sidecar(each))


def _once_causes(container: JsonObject, at: str, seen: set[str]) -> Iterator[Cause]:
    name = str(container.get("name") or "")
    if name and name in seen:
        yield duplicate(f"{at}.name", name)
    seen.add(name)


def _common_causes(container: JsonObject, at: str, volumes: set[str]) -> Iterator[Cause]:
    name = str(container.get("name") or "")
    if not name:
        yield required(f"{at}.name")
    else:
        yield from (invalid(f"{at}.name", name, each) for each in names.label_name(name))
    image = str(container.get("image") or "")
    if not image:
        yield required(f"{at}.image")
    elif image != image.strip():
        yield invalid(f"{at}.image", image, "must not have leading or trailing whitespace")
    policy = container.get("terminationMessagePolicy", "File")
    if policy not in MESSAGE_POLICIES:
        yield not_supported(f"{at}.terminationMessagePolicy", policy, MESSAGE_POLICIES)
    yield from _port_causes(items(container, "ports"), f"{at}.ports")
    yield from _variable_causes(items(container, "env"), f"{at}.env")
    yield from _bulk_causes(items(container, "envFrom"), f"{at}.envFrom")
    yield from _mount_causes(items(container, "volumeMounts"), f"{at}.volumeMounts", volumes)
    pull = container.get("imagePullPolicy", "IfNotPresent")
    if pull not in PULL_POLICIES:
        yield not_supported(f"{at}.imagePullPolicy", pull, PULL_POLICIES)
    yield from resources_causes(part(container, "resources"), f"{at}.resources")


def _port_causes(ports: Sequence[Any], at: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for place, port in enumerate(ports):
        where, name = f"{at}[{place}]", str(port.get("name") or "")
        if name and (problems := names.port_name(name)):
            yield from (invalid(f"{where}.name", name, each) for each in problems)
        elif name and name in seen:
            yield duplicate(f"{where}.name", name)
        seen.add(name)
        yield from _number_causes(port, where)
        protocol = port.get("protocol", "TCP")
        if protocol not in PROTOCOLS:
            yield not_supported(f"{where}.protocol", protocol, PROTOCOLS)


def _number_causes(port: JsonObject, where: str) -> Iterator[Cause]:
    inside, outside = port.get("containerPort", 0), port.get("hostPort", 0)
    if not inside:
        yield required(f"{where}.containerPort")
    elif not 1 <= inside <= _MOST_PORT:
        yield invalid(f"{where}.containerPort", inside, _PORT)
    if outside and not 1 <= outside <= _MOST_PORT:
        yield invalid(f"{where}.hostPort", outside, _PORT)


def _variable_causes(variables: Sequence[Any], at: str) -> Iterator[Cause]:
    for place, each in enumerate(variables):
        where, name = f"{at}[{place}]", str(each.get("name") or "")
        if not name:
            yield required(f"{where}.name")
        else:
            yield from (invalid(f"{where}.name", name, why) for why in names.variable(name))
        if each.get("valueFrom") is not None:
            yield from _source_causes(each, f"{where}.valueFrom")


def _source_causes(variable: JsonObject, where: str) -> Iterator[Cause]:
    source = part(variable, "valueFrom")
    found = [name for name in SOURCES if source.get(name) is not None]
    if not found:
        yield invalid(
            where,
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
            "`secretKeyRef` or `fileKeyRef`",
        )
    elif variable.get("value"):
        yield invalid(where, "", "may not be specified when `value` is not empty")
    if len(found) > 1:
        yield invalid(where, "", "may not have more than one field specified at a time")
    if "fieldRef" in found:
        yield from field_ref_causes(part(source, "fieldRef"), f"{where}.fieldRef", FIELDS)
    if "resourceFieldRef" in found:
        yield from _resource_causes(part(source, "resourceFieldRef"), f"{where}.resourceFieldRef")
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in found:
            yield from _key_causes(part(source, name), f"{where}.{name}")


def _resource_causes(reference: JsonObject, where: str) -> Iterator[Cause]:
    resource = str(reference.get("resource") or "")
    if not resource:
        yield required(f"{where}.resource")
    elif resource not in RESOURCE_FIELDS and ".hugepages-" not in resource:
        yield not_supported(f"{where}.resource", resource, RESOURCE_FIELDS)


def _key_causes(reference: JsonObject, where: str) -> Iterator[Cause]:
    if not reference.get("name"):
        yield required(f"{where}.name")
    key = str(reference.get("key") or "")
    if not key:
        yield required(f"{where}.key")
    else:
        yield from (invalid(f"{where}.key", key, why) for why in names.config_key(key))


def _bulk_causes(sources: Sequence[Any], at: str) -> Iterator[Cause]:
    for place, each in enumerate(sources):
        where = f"{at}[{place}]"
        prefix = str(each.get("prefix") or "")
        if prefix:
            yield from (invalid(f"{where}.prefix", prefix, why) for why in names.variable(prefix))
        found = [name for name in ("configMapRef", "secretRef") if each.get(name) is not None]
        if not found:
            yield invalid(where, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(found) > 1:
            yield invalid(where, "", "may not have more than one field specified at a time")
        elif not part(each, found[0]).get("name"):
            yield required(f"{where}.{found[0]}.name")


def _mount_causes(mounts: Sequence[Any], at: str, volumes: set[str]) -> Iterator[Cause]:
    seen: set[str] = set()
    for place, mount in enumerate(mounts):
        where, name = f"{at}[{place}]", str(mount.get("name") or "")
        if not name:
            yield required(f"{where}.name")
        elif name not in volumes:
            yield not_found_field(f"{where}.name", name)
        path = str(mount.get("mountPath") or "")
        if not path:
            yield required(f"{where}.mountPath")
        elif path in seen:
            yield invalid(f"{where}.mountPath", path, "must be unique")
        seen.add(path)
        yield from _sub_path_causes(mount, where)


def _sub_path_causes(mount: JsonObject, where: str) -> Iterator[Cause]:
    for name in ("subPath", "subPathExpr"):
        path = str(mount.get(name) or "")
        if path.startswith("/"):
            yield invalid(f"{where}.{name}", path, "must be a relative path")
        elif ".." in path.split("/"):
            yield invalid(f"{where}.{name}", path, "must not contain '..'")
    if mount.get("subPath") and mount.get("subPathExpr"):
        yield invalid(
            f"{where}.subPathExpr",
            mount["subPathExpr"],
            "subPathExpr and subPath are mutually exclusive",
        )
    if mount.get("mountPropagation") == "Bidirectional":
        yield forbidden_field(
            f"{where}.mountPropagation",
            "Bidirectional mount propagation is available only to privileged containers",
        )
