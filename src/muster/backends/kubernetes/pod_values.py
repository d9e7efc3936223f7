"""What the containers of a user's pod read there: variables and files. Pure.

What came from ConfigMaps and Secrets is in the attempt's own Secret, and its pods only name it:
who may see pods may not see everything. Text is as the user wrote it; a kubelet puts variables in.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from muster.backends.base import Supplies
from muster.launch.pods.names import renamed
from muster.launch.pods.variables import File, NodeFacts, all_of, files_of, value_of
from muster.lifecycle.pod_abilities import own_volumes
from muster.model.pod import (
    Container,
    EmptyFolder,
    Files,
    HostFolder,
    KeyOf,
    OfNode,
    PodLaunch,
    Said,
    Text,
    Volume,
)
from muster.model.value import Value

Json = dict[str, Any]

Told = str | bytes | OfNode
"""The value of a variable: as it is written, out of a Secret, or what only a kubelet knows."""

_FIELDS = {"ip": "status.hostIP", "pod_ip": "status.podIP"}
_DIGEST = 16


class Readable(Value):
    """All that the containers of one task can read.

    secret: the name of the attempt's Secret. given: variables that every process of it has.
    mates: what the names of its gang stand for there.
    """

    rank: int
    pod: PodLaunch
    node: NodeFacts
    secret: str
    given: Mapping[str, str]
    mates: Mapping[str, str]
    sources: Supplies


def variables(part: Readable, container: Container) -> list[Json]:
    """The variables of a container; MissingError where a source is not there."""
    return [
        _variable(part, container, name, told)
        for name, told in _environment(part, container).items()
    ]


def text_of(part: Readable, text: str) -> str:
    """A word of a command, or the text of a variable."""
    return renamed(text, part.mates)


def volumes(part: Readable) -> list[Json]:
    """The volumes that its user asked for; MissingError where a source is not there."""
    return [{"name": each.name, **_source(part, each)} for each in own_volumes(part.pod)]


def kept(part: Readable) -> dict[str, bytes]:
    """What the Secret holds for this task."""
    found: dict[str, bytes] = {}
    for container in part.pod.containers:
        for name, told in _environment(part, container).items():
            if isinstance(told, bytes):
                found[_key(part, f"env.{container.name}", name)] = told
    for volume in own_volumes(part.pod):
        for file in _files(part, volume):
            found[_key(part, f"file.{volume.name}", file.path)] = file.content
    return found


def _environment(part: Readable, container: Container) -> dict[str, Told]:
    """In the order in which they may name each other; what is said later counts."""
    found: dict[str, Told] = dict(part.given)
    for bulk in container.env_of:
        for name, text in all_of(bulk, part.sources).items():
            found.pop(name, None)
            found[name] = text.encode()
    for variable in container.env:
        told = _told(part, variable.value)
        if told is not None:
            found.pop(variable.name, None)
            found[variable.name] = told
    return found


def _told(part: Readable, said: Said) -> Told | None:
    """None: it may be missing, and is."""
    match said:
        case Text(value=text):
            return text_of(part, text)
        case OfNode(what=what) if what in _FIELDS:
            return said
        case OfNode():
            return value_of(said, part.sources, part.node)
        case KeyOf():
            found = value_of(said, part.sources, part.node)
            return None if found is None else found.encode()


def _variable(part: Readable, container: Container, name: str, told: Told) -> Json:
    match told:
        case str():
            return {"name": name, "value": told}
        case bytes():
            key = _key(part, f"env.{container.name}", name)
            return {"name": name, "valueFrom": {"secretKeyRef": {"name": part.secret, "key": key}}}
        case OfNode(what=what):
            return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": _FIELDS[what]}}}


def _source(part: Readable, volume: Volume) -> Json:
    match volume.source:
        case EmptyFolder(in_memory=in_memory):
            return {"emptyDir": {"medium": "Memory"} if in_memory else {}}
        case HostFolder(path=path, must_be=must_be):
            return {"hostPath": {"path": path, "type": must_be}}
        case Files(mode=mode):
            return _projected(part, volume, mode)


def _projected(part: Readable, volume: Volume, mode: int) -> Json:
    listed = [
        {"key": _key(part, f"file.{volume.name}", file.path), "path": file.path, "mode": file.mode}
        for file in _files(part, volume)
    ]
    if not listed:
        # A Secret of which nothing is named is shown whole.
        return {"emptyDir": {}}
    secret = {"name": part.secret, "items": listed}
    return {"projected": {"defaultMode": mode, "sources": [{"secret": secret}]}}


def _files(part: Readable, volume: Volume) -> tuple[File, ...]:
    source = volume.source
    return files_of(source, part.sources, part.node) if isinstance(source, Files) else ()


def _key(part: Readable, whose: str, name: str) -> str:
    """The same whatever else there is: it still fits when the sources have changed."""
    return f"{part.rank}.{whose}.{hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]}"
