"""The three patches that say what changes: JSON patch, merge patch, strategic merge patch."""

import json
from typing import Any

from muster.doors.kubernetes.objects.schemas.types import Schema, field_of, items_of
from muster.doors.kubernetes.objects.value import JsonObject, copied_value, is_list, is_map

MOST_OPERATIONS = 10_000
MOST_COPIED = 3 * 1_024 * 1_024
MOST_DIGITS = 18
"""So many characters one patch may copy in all: each copy can be of the copies before it."""


class PatchError(Exception):
    """The patch cannot be applied to this object."""


def merge_patched(value: Any, patch: Any) -> Any:
    """RFC 7386: what is null goes, objects are merged, the rest is replaced."""
    if not is_map(patch):
        return copied_value(patch)
    merged = dict(value) if is_map(value) else {}
    for name, each in patch.items():
        if each is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patched(merged.get(name), each)
    return merged


def json_patched(value: Any, operations: list[Any]) -> Any:
    """RFC 6902: one operation after the other; PatchError if one of them cannot be done."""
    patched = copied_value(value)
    copied = 0
    for each in operations:
        if is_map(each) and each.get("op") == "copy":
            copied += len(json.dumps(_found(patched, _pointer(each.get("from")))))
            if copied > MOST_COPIED:
                raise PatchError("it copies too much")
        patched = _operated(patched, each)
    return patched


def _operated(value: Any, operation: Any) -> Any:
    if not is_map(operation):
        raise PatchError("an operation must be an object")
    given = operation
    path = _pointer(given.get("path"))
    match given.get("op"):
        case "add":
            return _added(value, path, copied_value(given.get("value")))
        case "remove":
            return _removed(value, path)
        case "replace":
            _found(value, path)
            return (
                _added(_removed(value, path), path, copied_value(given.get("value")))
                if path
                else copied_value(given.get("value"))
            )
        case "move":
            start = _pointer(given.get("from"))
            moved = _found(value, start)
            return _added(_removed(value, start), path, moved)
        case "copy":
            return _added(value, path, copied_value(_found(value, _pointer(given.get("from")))))
        case "test":
            if not _is_equal(_found_or_none(value, path), given.get("value")):
                raise PatchError("a test failed")
            return value
        case _:
            raise PatchError("an operation is not known")


def _pointer(path: Any) -> list[str]:
    if not isinstance(path, str) or (path and not path.startswith("/")):
        raise PatchError("a path must begin with /")
    return [each.replace("~1", "/").replace("~0", "~") for each in path.split("/")[1:]]


def _found(value: Any, path: list[str]) -> Any:
    for name in path:
        if is_list(value):
            value = value[_index(value, name)]
        elif is_map(value) and name in value:
            value = value[name]
        else:
            raise PatchError("there is nothing at a path")
    return value


def _found_or_none(value: Any, path: list[str]) -> Any:
    try:
        return _found(value, path)
    except PatchError:
        return None


def _index(value: list[Any], name: str, *, adding: bool = False) -> int:
    if adding and name == "-":
        return len(value)
    if not name.isdecimal() or len(name) > MOST_DIGITS or (name != "0" and name.startswith("0")):
        raise PatchError("a place in a list must be a number")
    place = int(name)
    if place > len(value) - (not adding):
        raise PatchError("a place is beyond the end of its list")
    return place


def _added(value: Any, path: list[str], new: Any) -> Any:
    if not path:
        return new
    parent = _found(value, path[:-1])
    if is_list(parent):
        listed = parent
        listed.insert(_index(listed, path[-1], adding=True), new)
    elif is_map(parent):
        parent[path[-1]] = new
    else:
        raise PatchError("there is nothing to add to")
    return value


def _removed(value: Any, path: list[str]) -> Any:
    if not path:
        return None
    _found(value, path)
    parent = _found(value, path[:-1])
    if is_list(parent):
        listed = parent
        del listed[_index(listed, path[-1])]
    else:
        del parent[path[-1]]
    return value


def _is_equal(one: Any, other: Any) -> bool:
    """JSON tells true from 1, Python does not."""
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if is_map(one) and is_map(other):
        first, second = one, other
        return first.keys() == second.keys() and all(
            _is_equal(first[name], second[name]) for name in first
        )
    if is_list(one) and is_list(other):
        pairs = list(zip(one, other, strict=False))
        return len(one) == len(other) and all(_is_equal(*pair) for pair in pairs)
    return bool(one == other)


DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_ITEMS = "$deleteFromPrimitiveList/"
ORDER = "$setElementOrder/"


def strategic_patched(value: JsonObject, patch: JsonObject, schema: Schema | None) -> JsonObject:
    """Kubernetes' own: as a merge patch, and lists are merged where their type says by which key.

    Where nothing is known of a field, lists are replaced.
    """
    match patch.get(DIRECTIVE):
        case None | "merge":
            pass
        case "replace":
            return {name: copied_value(each) for name, each in patch.items() if name != DIRECTIVE}
        case "delete":
            return {}
        case other:
            raise PatchError(f"Wrong patch type found: {other}" if isinstance(other, str) else "")
    merged = dict(value)
    kept = patch.get(RETAIN_KEYS)
    if is_list(kept):
        merged = {name: each for name, each in merged.items() if name in kept}
    for name, each in patch.items():
        if not name.startswith("$"):
            _merge_field(merged, name, each, patch, schema)
    for name, each in patch.items():
        if name.startswith(DELETE_ITEMS):
            field = name.removeprefix(DELETE_ITEMS)
            merged[field] = [item for item in merged.get(field, []) if item not in each]
    return merged


def _merge_field(
    merged: JsonObject, name: str, each: Any, patch: JsonObject, schema: Schema | None
) -> None:
    field = None if schema is None else field_of(schema, name)
    before = merged.get(name)
    if each is None:
        merged.pop(name, None)
    elif is_map(each):
        inner = before if is_map(before) else {}
        if _strategy(field) == "replace":
            merged[name] = _without_directives(each)
        else:
            merged[name] = strategic_patched(inner, each, field)
    elif is_list(each):
        order = patch.get(ORDER + name)
        merged[name] = _merged_list(before if is_list(before) else [], each, field, order)
    else:
        merged[name] = each


def _strategy(field: Schema | None) -> str:
    return "" if field is None else str(field.get("x-kubernetes-patch-strategy", ""))


def _merged_list(
    before: list[Any], patch: list[Any], field: Schema | None, order: list[Any] | None
) -> list[Any]:
    if "merge" not in _strategy(field) or field is None:
        return [_without_directives(each) for each in patch]
    key = field.get("x-kubernetes-patch-merge-key")
    if key is None:
        known = set(map(_mark, before))
        merged = [*before, *(each for each in patch if _mark(each) not in known)]
        return _ordered(merged, order, None)
    if any(_directive(each) == "replace" for each in patch):
        return [_without_directives(each) for each in patch if not _is_bare(each)]
    merged = _merged_by_key(before, patch, str(key), items_of(field))
    return _ordered(merged, order, str(key))


def _merged_by_key(
    before: list[Any], patch: list[Any], key: str, items: Schema | None
) -> list[Any]:
    merged: dict[str, Any] = {}
    for place, old in enumerate(before):
        # What has no key, or that of another, stays beside it.
        mark = _mark(old[key]) if is_map(old) and key in old else f"#{place}"
        merged[f"#{place}" if mark in merged else mark] = old
    for each in patch:
        if not is_map(each) or key not in each:
            raise PatchError(f"map: {each} does not contain declared merge key: {key}")
        mark = _mark(each[key])
        if _directive(each) == "delete":
            merged.pop(mark, None)
        else:
            merged[mark] = strategic_patched(merged.get(mark, {}), each, items)
    return list(merged.values())


def _mark(value: Any) -> str:
    """The same text for equal values: lists are long enough to be looked up in."""
    return json.dumps(value, sort_keys=True)


def _ordered(merged: list[Any], order: list[Any] | None, key: str | None) -> list[Any]:
    """Items that the patch puts in order come in that order; others keep their places."""
    if not order:
        return merged

    def called(item: Any) -> str:
        return repr(item.get(key) if is_map(item) and key is not None else item)

    wanted = {called(each): place for place, each in enumerate(order)}
    named = [each for each in merged if called(each) in wanted]
    following = iter(sorted(named, key=lambda each: wanted[called(each)]))
    return [next(following) if called(each) in wanted else each for each in merged]


def _directive(item: Any) -> str | None:
    return item.get(DIRECTIVE) if is_map(item) else None


def _is_bare(item: Any) -> bool:
    """Is it nothing but a directive?"""
    return is_map(item) and set(item) == {DIRECTIVE}


def _without_directives(value: Any) -> Any:
    if is_list(value):
        return [_without_directives(each) for each in value]
    if not is_map(value):
        return value
    return {
        name: _without_directives(each)
        for name, each in value.items()
        if not name.startswith("$") and each is not None
    }
