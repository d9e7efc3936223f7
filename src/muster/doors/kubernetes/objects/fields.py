"""Fields of objects as sets of paths: which are there, which differ, and how they are written.

A path is a tuple of steps, written as in `fieldsV1`: `f:name` goes into an object,
`k:{"name":"a"}` to the item of a list with these keys, `v:"x"` to an item that is this value.
"""

import json
from typing import Any, TypeAlias

from muster.doors.kubernetes.objects.schemas.types import (
    Schema,
    default_key,
    field_of,
    items_of,
    target,
)
from muster.doors.kubernetes.objects.value import JsonObject, is_list, is_map
from muster.model.value import Value

Path: TypeAlias = tuple[str, ...]
Fields: TypeAlias = frozenset[Path]

NO_FIELDS: Fields = frozenset()
ITSELF = "."


class Difference(Value):
    """What became of the fields from one object to the next."""

    added: Fields
    changed: Fields
    removed: Fields

    @property
    def is_none(self) -> bool:
        return not (self.added or self.changed or self.removed)


def fields_of(value: Any, schema: Schema | None) -> Fields:
    """The fields that an applied object names: leaves, items of lists, keys of maps."""
    found: set[Path] = set()
    _collect(value, schema, (), found)
    return frozenset(found)


def _collect(value: Any, schema: Schema | None, path: Path, found: set[Path]) -> None:
    if is_map(value) and not is_atomic(schema):
        for name, each in value.items():
            inner, step = _inner(schema, name), (*path, f"f:{name}")
            _collect(each, inner, step, found)
            if each is None or each == {} or not _is_declared(schema, name):
                found.add(step)
    elif is_list(value) and not is_atomic(schema):
        for each in value:
            step = (*path, item_step(each, schema))
            _collect(each, _items(schema), step, found)
            found.add(step)
    elif path:
        found.add(path)


def compared(old: Any, new: Any, schema: Schema | None) -> Difference:
    """Every field that is new, different or gone; of what is new or gone, all that is in it."""
    added: set[Path] = set()
    changed: set[Path] = set()
    removed: set[Path] = set()

    def walk(before: Any, after: Any, known: Schema | None, path: Path) -> None:
        if before is after:
            return
        # An empty list that Go calls nil is there, like any other.
        pair = _pair(before, after, known)
        if pair is None:
            if before is _ABSENT:
                added.add(path)
            elif after is _ABSENT:
                removed.add(path)
            elif before != after or isinstance(before, bool) != isinstance(after, bool):
                changed.add(path)
            return
        ours, theirs = pair
        for step in dict.fromkeys((*ours, *theirs)):
            one, other = ours.get(step, _ABSENT), theirs.get(step, _ABSENT)
            walk(one, other, _schema_at(known, step), (*path, step))
        if path and before is _ABSENT:
            added.add(path)
        elif path and after is _ABSENT:
            removed.add(path)

    walk(old, new, schema, ())
    return Difference(
        added=frozenset(added), changed=frozenset(changed), removed=frozenset(removed)
    )


_ABSENT = object()


def _pair(before: Any, after: Any, schema: Schema | None) -> tuple[JsonObject, JsonObject] | None:
    """Both as steps and values, where one can go into them; None for leaves."""
    if is_atomic(schema):
        return None
    present = [each for each in (before, after) if each is not _ABSENT and each is not None]
    if present and all(map(is_map, present)):
        return _map_steps(before), _map_steps(after)
    if present and all(map(is_list, present)):
        return _list_steps(before, schema), _list_steps(after, schema)
    return None


def _schema_at(schema: Schema | None, step: str) -> Schema | None:
    is_field = step.startswith("f:")
    return _inner(schema, step.removeprefix("f:")) if is_field else _items(schema)


def _map_steps(value: Any) -> JsonObject:
    if not is_map(value):
        return {}
    return {f"f:{name}": each for name, each in value.items()}


def _list_steps(value: Any, schema: Schema | None) -> JsonObject:
    if not is_list(value):
        return {}
    return {item_step(each, schema): each for each in value}


def is_atomic(schema: Schema | None) -> bool:
    """Is it changed as a whole? Lists are, unless their type says otherwise; maps are not."""
    if schema is None:
        return False
    found = target(schema)
    kind = schema.get("x-kubernetes-map-type") or found.get("x-kubernetes-map-type")
    if found.get("type") == "array":
        return schema.get("x-kubernetes-list-type", "atomic") == "atomic"
    if found.get("type") == "object" and not (
        "properties" in found or "additionalProperties" in found
    ):
        # Nothing is known of what is in it.
        return kind != "granular"
    return kind == "atomic"


def item_step(item: Any, schema: Schema | None) -> str:
    """How an item of a list is named: by its keys, or by itself."""
    keys = (schema or {}).get("x-kubernetes-list-map-keys")
    if not keys or not is_map(item):
        return f"v:{json.dumps(item, separators=(',', ':'))}"
    given = item
    named = {key: given.get(key, default_key(schema or {}, key)) for key in sorted(keys)}
    present = {key: value for key, value in named.items() if value is not None}
    return f"k:{json.dumps(present, separators=(',', ':'))}"


def _inner(schema: Schema | None, name: str) -> Schema | None:
    return None if schema is None else field_of(schema, name)


def _items(schema: Schema | None) -> Schema | None:
    return None if schema is None else items_of(schema)


def _is_declared(schema: Schema | None, name: str) -> bool:
    return schema is not None and name in target(schema).get("properties", {})


def merged(live: Any, applied: Any, schema: Schema | None) -> Any:
    """The live value with what is applied put over it, item by item where lists have keys."""
    if is_atomic(schema) or type(live) is not type(applied):
        return applied
    if is_map(applied):
        ours, theirs = live, applied
        both = {
            name: merged(ours[name], each, _inner(schema, name)) if name in ours else each
            for name, each in theirs.items()
        }
        return {**ours, **both}
    if is_list(applied) and schema is not None:
        known = _list_steps(live, schema)
        given = _list_steps(applied, schema)
        inner = _items(schema)
        both = {
            step: merged(known[step], each, inner) if step in known else each
            for step, each in given.items()
        }
        return list({**known, **both}.values())
    return applied


def without(value: Any, path: Path, schema: Schema | None) -> Any:
    """The value without what is at this path."""
    step, rest = path[0], path[1:]
    if step.startswith("f:") and is_map(value):
        name = step.removeprefix("f:")
        given = value
        if name not in given:
            return given
        if not rest:
            return {key: each for key, each in given.items() if key != name}
        return {**given, name: without(given[name], rest, _inner(schema, name))}
    if is_list(value):
        listed = value
        inner = _items(schema)
        if not rest:
            return [each for each in listed if item_step(each, schema) != step]
        return [
            without(each, rest, inner) if item_step(each, schema) == step else each
            for each in listed
        ]
    return value


def to_fields_v1(fields: Fields) -> JsonObject:
    """As `managedFields` carries it: an object for each step."""
    root: JsonObject = {}
    parents = {path[:depth] for path in fields for depth in range(1, len(path))}
    for path in sorted(fields):
        place = root
        for step in path:
            place = place.setdefault(step, {})
        if path in parents:
            place[ITSELF] = {}
    return _sorted(root)


def _sorted(found: JsonObject) -> JsonObject:
    return {name: _sorted(found[name]) for name in sorted(found)}


def from_fields_v1(written: JsonObject) -> Fields:
    """The paths that are written there."""
    found: set[Path] = set()

    def walk(place: JsonObject, path: Path) -> None:
        if path and (not place or ITSELF in place):
            found.add(path)
        for step, inner in place.items():
            if step != ITSELF and is_map(inner):
                walk(inner, (*path, step))

    walk(written, ())
    return frozenset(found)


def path_text(path: Path) -> str:
    """As messages name it: `.spec.containers[name="main"].image`."""
    return "".join(map(_step_text, path))


def _step_text(step: str) -> str:
    if step.startswith("f:"):
        return f".{step.removeprefix('f:')}"
    if step.startswith("v:"):
        return f"[={step.removeprefix('v:')}]"
    keys: JsonObject = json.loads(step.removeprefix("k:"))
    return "[" + ",".join(f"{name}={json.dumps(each)}" for name, each in keys.items()) + "]"
