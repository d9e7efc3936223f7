"""Brings what a client sent into the shape that its type has, as a server written in Go would.

Fields that are not known are left out and named; values of another type are refused; what is
empty is written or left out as the type says; amounts and instants are written one way.
"""

import base64
import binascii
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from muster.doors.kubernetes.objects.quantity import canonical
from muster.doors.kubernetes.objects.schemas.types import (
    INT_OR_STRING,
    MICRO_TIME,
    QUANTITY,
    TIME,
    Schema,
    field_of,
    items_of,
    target,
    type_name,
)
from muster.doors.kubernetes.objects.value import JsonObject, is_list, is_map
from muster.model.value import Value

_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d+)?(Z|z|[+-]\d\d:\d\d)")


class WrongShapeError(Exception):
    """A value is not of its field's type; the text is what Go says of it.

    restoring: what it says where the object was not read but put together.
    """

    def __init__(self, text: str, restoring: str = "") -> None:
        super().__init__(text)
        self.restoring = restoring or text


class Place(Value):
    """Where a value stands. text: as messages about unknown fields name it.

    field: as Go names it, without places in lists and keys of maps. owner: the struct it is in.
    """

    text: str = ""
    field: str = ""
    owner: str = ""

    def inside(self, name: str, owner: str) -> "Place":
        """A field of the struct that stands here."""
        text = f"{self.text}.{name}" if self.text else name
        field = f"{self.field}.{name}" if self.field else name
        return Place(text=text, field=field, owner=owner)

    def at(self, step: str) -> "Place":
        """An item of the list or a value of the map that stands here."""
        return Place(text=f"{self.text}{step}", field=self.field, owner=self.owner)

    @property
    def go(self) -> str:
        return f"Go struct field {self.owner}.{self.field}"


class Shaped:
    """An object in shape, and the fields that were left out of it because nobody knows them."""

    def __init__(self, schema: Schema, given: JsonObject) -> None:
        self.unknown: list[str] = []
        # Types that users defined are looked at by their own checks, and refused in other words.
        self._is_custom = bool(schema.get("x-custom"))
        self.object: JsonObject = self._struct(schema, given, Place())

    def _struct(self, schema: Schema, given: JsonObject, place: Place) -> JsonObject:
        found = target(schema)
        fields: Schema = found["properties"]
        pointers, always = found.get("x-pointers", ()), found.get("x-always", ())
        is_known = "x-protobuf" in found
        owner = str(found.get("name", "")).rpartition(".")[2]
        shaped: JsonObject = {}
        for name, value in given.items():
            here = place.inside(name, owner)
            if name not in fields and found.get("x-kubernetes-preserve-unknown-fields"):
                shaped[name] = value
            elif name not in fields:
                self.unknown.append(here.text)
            elif value is not None:
                inner = self._value(fields[name], value, here)
                is_left_out = is_known and name not in pointers and _is_empty(inner)
                if name in always or not is_left_out:
                    shaped[name] = inner
        for name in always:
            if name not in shaped:
                shaped[name] = self._unset(fields[name], place.inside(name, owner))
        return shaped

    def _value(self, schema: Schema, value: Any, place: Place) -> Any:
        name = type_name(schema)
        if name in _READERS:
            return _READERS[name](value, place)
        found = target(schema)
        is_theirs = self._is_custom and not place.text.startswith("metadata.")
        if is_theirs and "name" not in found and not _is_container(found, value):
            return value
        match found.get("type"):
            case "object" if "properties" in found:
                _demand(value, dict, place, schema)
                return self._struct(found, value, place)
            case "object" if "additionalProperties" in found:
                _demand(value, dict, place, schema)
                return self._map(found, value, place)
            case "array":
                _demand(value, list, place, schema)
                return self._list(found, value, place)
            case "string" | "integer" | "boolean" | "number":
                return _scalar(found, value, place)
            case _:
                return value

    def _map(self, schema: Schema, given: JsonObject, place: Place) -> JsonObject:
        values: Schema = field_of(schema, "") or {}
        return {
            key: self._unset(values, place)
            if value is None
            else self._value(values, value, place.at(f".{key}"))
            for key, value in given.items()
        }

    def _list(self, schema: Schema, given: list[Any], place: Place) -> list[Any]:
        items: Schema = items_of(schema) or {}
        return [
            self._unset(items, place)
            if value is None
            else self._value(items, value, place.at(f"[{number}]"))
            for number, value in enumerate(given)
        ]

    def _unset(self, schema: Schema, place: Place) -> Any:
        """What Go writes of a field that nobody set."""
        found, name = target(schema), type_name(schema)
        if "properties" in found:
            return self._struct(found, {}, place)
        if name in _UNSET:
            return _UNSET[name]
        return _UNSET.get(found.get("type", ""))


_UNSET: dict[str, Any] = {
    QUANTITY: "0",
    INT_OR_STRING: 0,
    TIME: None,
    MICRO_TIME: None,
    "string": "",
    "integer": 0,
    "number": 0,
    "boolean": False,
}


def _is_container(schema: Schema, value: Any) -> bool:
    """Is it an object or a list, as its schema says?"""
    wanted = {"object": dict, "array": list}.get(schema.get("type", ""))
    return wanted is not None and isinstance(value, wanted)


def _is_empty(value: Any) -> bool:
    return value in ("", 0, [], {}) and not isinstance(value, float)


def _scalar(schema: Schema, value: Any, place: Place) -> Any:
    kind = schema["type"]
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    allowed = {"string": str, "integer": int, "boolean": bool, "number": (int, float)}
    if isinstance(value, bool) is not (kind == "boolean"):
        _refuse(value, place, schema)
    _demand(value, allowed[kind], place, schema)
    if kind == "integer":
        bits = 31 if schema.get("format") == "int32" else 63
        if not -(2**bits) <= value < 2**bits:
            text = f"json: cannot unmarshal number {value} into {place.go} of type"
            raise WrongShapeError(f"{text} {_go_type(schema)}")
    return _bytes(str(value)) if schema.get("format") == "byte" else value


def _bytes(text: str) -> str:
    plain = text.replace("\n", "").replace("\r", "")
    try:
        return base64.b64encode(base64.b64decode(plain, validate=True)).decode()
    except (binascii.Error, ValueError):
        wrong = re.search(r"[^A-Za-z0-9+/]", plain)
        at = wrong.start() if wrong else len(plain) - len(plain) % 4
        raise WrongShapeError(f"illegal base64 data at input byte {at}") from None


def _quantity(value: Any, _: Place) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise WrongShapeError("json: cannot unmarshal into Go value of type resource.Quantity")
    try:
        return canonical(value)
    except ValueError as error:
        raise WrongShapeError(str(error)) from None


def _int_or_string(value: Any, place: Place) -> Any:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        text = f"json: cannot unmarshal {_json_type(value)} into {place.go} of type int32"
        raise WrongShapeError(text)
    return value


def _time(value: Any, place: Place) -> str:
    return f"{_moment(value, place).isoformat(timespec='seconds')}Z"


def _micro_time(value: Any, place: Place) -> str:
    return f"{_moment(value, place).isoformat(timespec='microseconds')}Z"


def _moment(value: Any, place: Place) -> datetime:
    """In UTC, which is how all of them are written, whatever the zone of who sent it."""
    if not isinstance(value, str):
        text = f"json: cannot unmarshal {_json_type(value)} into {place.go} of type string"
        raise WrongShapeError(text)
    if _INSTANT.fullmatch(value) is None:
        raise WrongShapeError(
            f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": '
            f'cannot parse "{value}" as "2006"'
        )
    try:
        return datetime.fromisoformat(value.upper()).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise WrongShapeError(f'parsing time "{value}": day out of range') from None


_READERS: dict[str | None, Callable[[Any, Place], Any]] = {
    QUANTITY: _quantity,
    TIME: _time,
    MICRO_TIME: _micro_time,
    INT_OR_STRING: _int_or_string,
}


def _demand(value: Any, kind: Any, place: Place, schema: Schema) -> None:
    if not isinstance(value, kind):
        _refuse(value, place, schema)


def _refuse(value: Any, place: Place, schema: Schema) -> None:
    wanted = _go_type(schema)
    text = f"json: cannot unmarshal {_json_type(value)} into {place.go} of type {wanted}"
    raise WrongShapeError(text, _restoring(value, wanted))


def _restoring(value: Any, wanted: str) -> str:
    found = _GO_KINDS[type(value)]
    if wanted.startswith("map["):
        return f"cannot restore map from {found}"
    if wanted.startswith("[]"):
        return f"cannot restore slice from {found}"
    if "." in wanted:
        return f"cannot restore struct from: {found}"
    return f"unrecognized type: {wanted}"


def _json_type(value: Any) -> str:
    return _JSON_KINDS[type(value)]


_JSON_KINDS: dict[type, str] = {
    bool: "bool",
    str: "string",
    int: "number",
    float: "number",
    list: "array",
    dict: "object",
}
_GO_KINDS: dict[type, str] = {
    bool: "bool",
    str: "string",
    int: "int64",
    float: "float64",
    list: "slice",
    dict: "map",
}


def _go_type(schema: Schema) -> str:
    found = target(schema)
    match found.get("type"):
        case "integer":
            return str(found.get("format", "int64"))
        case "number":
            return "float64"
        case "boolean":
            return "bool"
        case "array":
            return f"[]{_go_type(items_of(found) or {})}"
        case "object" if "properties" in found:
            package, _, name = str(type_name(schema)).rpartition(".")
            return f"{package.rpartition('.')[2]}.{name}"
        case "object":
            return f"map[string]{_go_type(field_of(found, '') or {})}"
        case _:
            return "string"


def go_text(value: Any) -> str:
    """A value as Go prints it: `map[data:map[lr:0.5]]`."""
    if is_map(value):
        given = value
        inner = " ".join(f"{name}:{go_text(given[name])}" for name in sorted(given))
        return f"map[{inner}]"
    if is_list(value):
        return f"[{' '.join(map(go_text, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return "<nil>" if value is None else str(value)
