"""Fields that stand in a document more than once: the last one counts, who is strict is told."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import yaml

from muster.doors.kubernetes.objects.value import is_list, is_map

LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Reads YAML, in C where that is installed."""

_MERGE = "<<"


class _Repeating(dict[str, Any]):
    """An object of JSON, of which some names stood there more than once."""

    repeated: frozenset[str] = frozenset()


def repeated_fields(body: bytes) -> tuple[str, ...]:
    """The paths of those that a document of JSON has more than once: `spec.replicas`."""
    found, any_repeated = _read(body)
    return tuple(path for path, often in _fields(found, "") if often) if any_repeated else ()


def faults_in_order(body: bytes, unknown: Iterable[str]) -> tuple[str, ...]:
    """What is unknown in a document of JSON, or known and there twice, as they stand in it."""
    strange = dict.fromkeys(unknown)
    found, any_repeated = _read(body)
    if not any_repeated:
        return tuple(map(_unknown, strange))
    return tuple(
        _unknown(path) if path in strange else _duplicate(path)
        for path, often in _fields(found, "")
        if often or path in strange
    )


def repeated_keys(body: bytes) -> tuple[str, ...]:
    """The same of YAML, in the words of Go's reader: `line 9: key "foo" already set in map`."""
    found: list[str] = []
    # JSON is sent as YAML, and read as JSON; there is some that is no YAML.
    with suppress(yaml.YAMLError, UnicodeDecodeError):
        for line, key in _keys(body):
            found.append(f"line {line}: key {json.dumps(key)} already set in map")
    return tuple(found)


def duplicates(paths: Iterable[str]) -> tuple[str, ...]:
    """As messages say it of fields."""
    return tuple(map(_duplicate, paths))


def _unknown(path: str) -> str:
    return f'unknown field "{path}"'


def _duplicate(path: str) -> str:
    return f'duplicate field "{path}"'


def _read(body: bytes) -> tuple[Any, bool]:
    any_repeated = False

    def pairs(given: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal any_repeated
        found = dict(given)
        if len(found) == len(given):
            return found
        any_repeated = True
        counted = Counter(name for name, _ in given)
        repeating = _Repeating(found)
        repeating.repeated = frozenset(name for name, count in counted.items() if count > 1)
        return repeating

    return json.loads(body, object_pairs_hook=pairs), any_repeated


def _fields(value: Any, path: str) -> Iterator[tuple[str, bool]]:
    """Each field by its path, before those inside of it, and whether it is there repeatedly."""
    if is_map(value):
        repeated = value.repeated if isinstance(value, _Repeating) else frozenset[str]()
        for name, each in value.items():
            inner = f"{path}.{name}" if path else name
            yield inner, name in repeated
            yield from _fields(each, inner)
    elif is_list(value):
        for number, each in enumerate(value):
            yield from _fields(each, f"{path}[{number}]")


def _keys(body: bytes) -> Iterator[tuple[int, str]]:
    """Keys of maps that were there before, with their lines, counted from 1."""
    # Of each map that is open its keys, and of each list None. The stubs say nothing about events.
    events: Any = yaml
    around: list[_Keys | None] = []
    for event in events.parse(body, Loader=LOADER):
        here = around[-1] if around else None
        is_key = here is not None and here.is_next_a_key
        if isinstance(event, yaml.NodeEvent) and here is not None:
            here.is_next_a_key = not here.is_next_a_key
        if isinstance(event, yaml.MappingStartEvent):
            around.append(_Keys())
        elif isinstance(event, yaml.SequenceStartEvent):
            around.append(None)
        elif isinstance(event, yaml.CollectionEndEvent):
            around.pop()
        elif here is not None and is_key and isinstance(event, yaml.ScalarEvent):
            found: Any = event
            if found.value in here.names and found.value != _MERGE:
                yield found.start_mark.line + 1, found.value
            here.names.add(found.value)


class _Keys:
    """The keys of a map of YAML that were read, and whether a key comes next."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.is_next_a_key = True
