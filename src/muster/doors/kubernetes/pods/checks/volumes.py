"""What is wrong with volumes: each has a name of its own and comes from one place."""

from collections.abc import Iterator
from typing import Any

from muster.doors.kubernetes.objects.errors import (
    Cause,
    duplicate,
    forbidden_field,
    invalid,
    not_supported,
    required,
)
from muster.doors.kubernetes.objects.value import JsonObject, items, part
from muster.doors.kubernetes.pods.checks import names

HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_MOST_MODE = 0o777
_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_ONE_TYPE = "may not specify more than 1 volume type"
_BACKSTEPS = "must not contain '..'"
_LEAST_TOKEN_SECONDS = 600
_MOST_TOKEN_SECONDS = 1 << 32
# In the order in which they are looked at: the first one is the volume's own.
_SOURCES = (
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "azureFile",
    "configMap",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
)
FIELD_PATHS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.labels",
    "metadata.annotations",
)


def volume_causes(spec: JsonObject, path: str) -> Iterator[Cause]:
    """Of all volumes of a pod."""
    seen: set[str] = set()
    for place, volume in enumerate(items(spec, "volumes")):
        at = f"{path}.volumes[{place}]"
        yield from _source_causes(volume, at)
        yield from _name_causes(str(volume.get("name") or ""), f"{at}.name", seen)


def _name_causes(name: str, field: str, seen: set[str]) -> Iterator[Cause]:
    problems = names.label_name(name)
    if not name:
        yield required(field)
    elif problems:
        yield from (invalid(field, name, problem) for problem in problems)
    elif name in seen:
        yield duplicate(field, name)
    seen.add(name)


def _source_causes(volume: JsonObject, at: str) -> Iterator[Cause]:
    found = [name for name in _SOURCES if volume.get(name) is not None]
    if not found:
        yield required(at, "must specify a volume type")
    for extra in found[1:]:
        yield forbidden_field(f"{at}.{extra}", _ONE_TYPE)
    if not found:
        return
    own, where = part(volume, found[0]), f"{at}.{found[0]}"
    check = _OF_SOURCE.get(found[0])
    if check is not None:
        yield from check(own, where)


def _secret_causes(own: JsonObject, where: str) -> Iterator[Cause]:
    if not own.get("secretName"):
        yield required(f"{where}.secretName")
    yield from _file_causes(own, where)


def _config_map_causes(own: JsonObject, where: str) -> Iterator[Cause]:
    if not own.get("name"):
        yield required(f"{where}.name")
    yield from _file_causes(own, where)


def _host_path_causes(own: JsonObject, where: str) -> Iterator[Cause]:
    path = str(own.get("path") or "")
    if not path:
        yield required(f"{where}.path")
    elif ".." in path.split("/"):
        yield invalid(f"{where}.path", path, _BACKSTEPS)
    kind = own.get("type", "")
    if kind not in HOST_PATH_TYPES:
        yield not_supported(f"{where}.type", kind, HOST_PATH_TYPES)


def _file_causes(own: JsonObject, where: str) -> Iterator[Cause]:
    """Modes, and the files that keys become."""
    yield from _mode_causes(own.get("defaultMode"), f"{where}.defaultMode")
    for place, item in enumerate(items(own, "items")):
        at = f"{where}.items[{place}]"
        yield from _mode_causes(item.get("mode"), f"{at}.mode")
        if "key" in item and not item["key"]:
            yield required(f"{at}.key")
        yield from _path_causes(str(item.get("path") or ""), f"{at}.path")


def _mode_causes(mode: Any, field: str) -> Iterator[Cause]:
    if mode is not None and not 0 <= mode <= _MOST_MODE:
        yield invalid(field, mode, _MODE)


def _path_causes(path: str, field: str) -> Iterator[Cause]:
    if not path:
        yield required(field)
    elif path.startswith("/"):
        yield invalid(field, path, "must be a relative path")
    elif ".." in path.split("/"):
        yield invalid(field, path, _BACKSTEPS)
    elif path.startswith(".."):
        yield invalid(field, path, "must not start with '..'")


def _downward_causes(own: JsonObject, where: str) -> Iterator[Cause]:
    yield from _file_causes(own, where)
    for place, item in enumerate(items(own, "items")):
        at = f"{where}.items[{place}]"
        if "fieldRef" in item:
            yield from field_ref_causes(part(item, "fieldRef"), f"{at}.fieldRef", FIELD_PATHS)
        elif "resourceFieldRef" not in item:
            yield required(at, "one of fieldRef and resourceFieldRef is required")


def _projected_causes(own: JsonObject, where: str) -> Iterator[Cause]:
    yield from _mode_causes(own.get("defaultMode"), f"{where}.defaultMode")
    for place, source in enumerate(items(own, "sources")):
        at = f"{where}.sources[{place}]"
        found = [name for name, value in source.items() if value is not None]
        for extra in found[1:]:
            yield forbidden_field(f"{at}.{extra}", _ONE_TYPE)
        for name in ("secret", "configMap"):
            yield from _file_causes(part(source, name), f"{at}.{name}")
        if "downwardAPI" in source:
            yield from _downward_causes(part(source, "downwardAPI"), f"{at}.downwardAPI")
        if "serviceAccountToken" in source:
            yield from _token_causes(
                part(source, "serviceAccountToken"), f"{at}.serviceAccountToken"
            )


def _token_causes(own: JsonObject, where: str) -> Iterator[Cause]:
    seconds = own.get("expirationSeconds", _LEAST_TOKEN_SECONDS)
    if seconds < _LEAST_TOKEN_SECONDS:
        yield invalid(
            f"{where}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"
        )
    elif seconds > _MOST_TOKEN_SECONDS:
        yield invalid(
            f"{where}.expirationSeconds",
            seconds,
            "may not specify a duration larger than 2^32 seconds",
        )
    if not own.get("path"):
        yield required(f"{where}.path")


def field_ref_causes(reference: JsonObject, where: str, known: tuple[str, ...]) -> Iterator[Cause]:
    """A field of the pod that variables and files may show."""
    if not reference.get("apiVersion"):
        yield required(f"{where}.apiVersion")
    path = str(reference.get("fieldPath") or "")
    if not path:
        yield required(f"{where}.fieldPath")
    elif path.partition("[")[0] not in known:
        yield not_supported(f"{where}.fieldPath", path, tuple(sorted(known)))


_OF_SOURCE = {
    "hostPath": _host_path_causes,
    "secret": _secret_causes,
    "configMap": _config_map_causes,
    "downwardAPI": _downward_causes,
    "projected": _projected_causes,
}
