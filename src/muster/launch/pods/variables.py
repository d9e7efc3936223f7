"""What the containers of a pod find: variables and files, from what the pod says. Pure."""

import re
from collections.abc import Iterator, Mapping

from muster.model.pod import (
    Container,
    FileOf,
    Files,
    KeyOf,
    KeysAsFiles,
    OfNode,
    PodLaunch,
    Said,
    SourceKind,
    Text,
    TextsAsFiles,
    TokenFile,
    VariablesOf,
)
from muster.model.value import Value

_REFERENCE = re.compile(r"\$(\$|\(([^()]*)\))")
_NAME = re.compile(r"[-._a-zA-Z0-9]+")

Sources = Mapping[str, Mapping[str, bytes] | None]
"""What ConfigMaps and Secrets hold, by `configmap/NAME`; None for those that are not there.

Tokens are in it too: `token/AUDIENCE` has one key, `token`.
"""


class MissingError(Exception):
    """Something that a container needs is not there; the text says what."""


class NodeFacts(Value):
    """What containers may learn of their node."""

    name: str
    ip: str
    cpu_milli: int = 0
    memory_mib: int = 0


class File(Value):
    """One file of a volume."""

    path: str
    content: bytes
    mode: int


def source_key(kind: SourceKind | str, name: str) -> str:
    """The name by which a source is supplied."""
    return f"{kind}/{name}"


def environment(
    container: Container, sources: Sources, node: NodeFacts, given: Mapping[str, str]
) -> dict[str, str]:
    """All variables: what every process has, keys of sources, and then those by name."""
    found = dict(given)
    for each in container.env_of:
        found |= all_of(each, sources)
    for variable in container.env:
        value = value_of(variable.value, sources, node)
        if value is None:
            continue
        is_text = isinstance(variable.value, Text)
        found[variable.name] = expanded(value, found) if is_text else value
    return found


def command(
    container: Container, env: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Entrypoint and arguments, with variables in their places."""
    entrypoint = container.entrypoint or ()
    return (
        tuple(expanded(word, env) for word in entrypoint),
        tuple(expanded(word, env) for word in container.args),
    )


def expanded(text: str, env: Mapping[str, str]) -> str:
    """`$(NAME)` is the variable, if there is one; `$$` is a dollar."""

    def replaced(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        return env.get(match[2], match[0])

    return _REFERENCE.sub(replaced, text)


def files_of(volume: Files, sources: Sources, node: NodeFacts) -> tuple[File, ...]:
    """The files of a volume; MissingError when a source is not there that must be."""
    found: dict[str, File] = {}
    for each in volume.sources:
        for file in _projected(each, sources, node, volume.mode):
            found[file.path] = file
    return tuple(found[path] for path in sorted(found))


def wanted_sources(pod: PodLaunch) -> tuple[str, ...]:
    """Every source that a pod names: what must be supplied to it."""
    found: dict[str, None] = {}
    for container in pod.containers:
        for variable in container.env:
            if isinstance(variable.value, KeyOf):
                found[source_key(variable.value.kind, variable.value.name)] = None
        for bulk in container.env_of:
            found[source_key(bulk.kind, bulk.name)] = None
    for volume in pod.volumes:
        for source in volume.source.sources if isinstance(volume.source, Files) else ():
            match source:
                case KeysAsFiles():
                    found[source_key(source.kind, source.name)] = None
                case TokenFile():
                    found[source_key("token", source.audience)] = None
                case TextsAsFiles():
                    pass
    return tuple(found)


def all_of(bulk: VariablesOf, sources: Sources) -> dict[str, str]:
    """All keys of a source that can be variables; MissingError when it is not there."""
    held = sources.get(source_key(bulk.kind, bulk.name))
    if held is None:
        if bulk.optional:
            return {}
        raise MissingError(f'{bulk.kind} "{bulk.name}" not found')
    return {
        f"{bulk.prefix}{key}": held[key].decode(errors="replace")
        for key in sorted(held)
        if _NAME.fullmatch(f"{bulk.prefix}{key}")
    }


def value_of(said: Said, sources: Sources, node: NodeFacts) -> str | None:
    """What it stands for; None where that may be missing, and is."""
    match said:
        case Text(value=value):
            return value
        case OfNode():
            return _of_node(said, node)
        case KeyOf():
            found = _key(said, sources)
            return None if found is None else found.decode(errors="replace")


def _of_node(said: OfNode, node: NodeFacts) -> str:
    match said.what:
        case "name":
            return node.name
        case "cpu":
            return str(-(-node.cpu_milli // max(1, said.divisor)))
        case "memory":
            return str(-(-(node.memory_mib << 20) // max(1, said.divisor)))
        case _:
            return node.ip


def _key(said: KeyOf, sources: Sources) -> bytes | None:
    held = sources.get(source_key(said.kind, said.name))
    if held is not None and said.key in held:
        return held[said.key]
    if said.optional:
        return None
    if held is None:
        raise MissingError(f'{said.kind} "{said.name}" not found')
    word = "Secret" if said.kind is SourceKind.SECRET else "ConfigMap"
    raise MissingError(f"couldn't find key {said.key} in {word} {said.name}")


def _projected(
    source: KeysAsFiles | TextsAsFiles | TokenFile, sources: Sources, node: NodeFacts, mode: int
) -> Iterator[File]:
    match source:
        case TextsAsFiles(files=files):
            for each in files:
                text = value_of(each.value, sources, node) or ""
                yield File(path=each.path, content=text.encode(), mode=_mode(each, mode))
        case TokenFile(path=path, audience=audience):
            held = sources.get(source_key("token", audience)) or {}
            yield File(path=path, content=held.get("token", b""), mode=0o600)
        case KeysAsFiles():
            yield from _keys(source, sources, mode)


def _keys(source: KeysAsFiles, sources: Sources, mode: int) -> Iterator[File]:
    held = sources.get(source_key(source.kind, source.name))
    if held is None:
        if not source.optional:
            raise MissingError(f'{source.kind} "{source.name}" not found')
        return
    if not source.files:
        yield from (File(path=key, content=held[key], mode=mode) for key in sorted(held))
        return
    for each in source.files:
        key = each.value.key if isinstance(each.value, KeyOf) else ""
        if key in held:
            yield File(path=each.path, content=held[key], mode=_mode(each, mode))
        elif not source.optional:
            raise MissingError(f"references non-existent config key: {key}")


def _mode(file: FileOf, mode: int) -> int:
    return mode if file.mode is None else file.mode
