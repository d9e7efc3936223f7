"""Bodies in protobuf, as kubectl sends some of them: read with the numbers of their type."""

import base64
import json
import struct
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from muster.doors.kubernetes.objects.schemas.types import (
    INT_OR_STRING,
    MICRO_TIME,
    QUANTITY,
    TIME,
    Schema,
    all_types,
    field_of,
    items_of,
    schema_named,
    target,
    type_name,
)
from muster.doors.kubernetes.objects.value import JsonObject, is_map

MAGIC = b"k8s\x00"
RAW_TYPES = ("FieldsV1", "RawExtension", "JSON")
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the zone is written behind it
_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_SCHEMA_OR = f"{_SCHEMA}Or"

Wire = tuple[int, int, Any]
"""Number, wire type and value of one field."""


class BadProtobufError(Exception):
    """The bytes are no such message."""


def decoded(body: bytes) -> JsonObject:
    """The object in a body: a mark, then a message that names the type of the one in it."""
    if not body.startswith(MAGIC):
        raise BadProtobufError("the body does not begin with k8s\\0")
    unknown = {number: value for number, _, value in _wire(body[len(MAGIC) :])}
    named = {number: value.decode() for number, _, value in _wire(unknown.get(1, b""))}
    api_version, kind = named.get(1, ""), named.get(2, "")
    group, _, version = api_version.rpartition("/")
    schema = schema_named(group, version, kind)
    if schema is None:
        raise BadProtobufError(f"{kind} in version {api_version} is not known here")
    found = _message(unknown.get(2, b""), schema)
    return {"kind": kind, "apiVersion": api_version, **found}


def _message(data: bytes, schema: Schema) -> JsonObject:
    numbers: JsonObject = schema.get("x-protobuf", {})
    found: JsonObject = {}
    for number, _, value in _wire(data):
        name = numbers.get(str(number))
        if is_map(name):
            # The fields of this message stand in JSON where the message would.
            inner = {**schema, "x-protobuf": name}
            found.update(_message(value, inner))
        elif name is not None and (field := field_of(schema, name)) is not None:
            _put(found, name, value, field)
    return found


def _put(found: JsonObject, name: str, value: Any, field: Schema) -> None:
    kind = target(field).get("type")
    if kind == "array":
        found.setdefault(name, []).append(_value(value, items_of(field) or {}))
    elif kind == "object" and "additionalProperties" in target(field):
        entry = {number: each for number, _, each in _wire(value)}
        values: Schema = field_of(field, "") or {}
        key = entry.get(1, b"").decode()
        found.setdefault(name, {})[key] = _value(entry.get(2, b""), values)
    else:
        found[name] = _value(value, field)


def _value(value: Any, schema: Schema) -> Any:  # noqa: C901 - one case for each type
    name = type_name(schema)
    if name in _SPECIAL:
        return _SPECIAL[name](value)
    found = target(schema)
    if name is not None and name.startswith(_SCHEMA_OR):
        return _schema_or(value, name)
    if name is not None and name.rpartition(".")[2] in RAW_TYPES:
        return _raw(value)
    if name == _SCHEMA:
        return _schema_of(value)
    if "properties" in found:
        return _message(value, found)
    match found.get("type"):
        case "integer":
            return value - (1 << 64) if value >= 1 << 63 else value
        case "boolean":
            return bool(value)
        case "number":
            return struct.unpack("<d", value)[0]
        case "string" if found.get("format") == "byte":
            return base64.b64encode(value).decode()
        case "array":
            # A list of lists is a message with one field.
            return [_value(each, items_of(found) or {}) for _, _, each in _wire(value)]
        case "object":
            # A message in which nothing can be said.
            return {}
        case _:
            return value.decode()


def _quantity(value: bytes) -> str:
    return {number: each.decode() for number, _, each in _wire(value)}.get(1, "0")


def _time(value: bytes) -> str | None:
    at = _instant(value)
    return None if at is None else f"{at.isoformat(timespec='seconds')}Z"


def _micro_time(value: bytes) -> str | None:
    at = _instant(value)
    return None if at is None else f"{at.isoformat(timespec='microseconds')}Z"


def _instant(value: bytes) -> datetime | None:
    """Go writes the time that is none as nothing at all."""
    if not value:
        return None
    found = {number: each for number, _, each in _wire(value)}
    seconds = found.get(1, 0)
    since = timedelta(
        seconds=seconds - (1 << 64) if seconds >= 1 << 63 else seconds,
        microseconds=found.get(2, 0) // 1_000,
    )
    try:
        return _EPOCH + since
    except OverflowError:
        raise BadProtobufError("a time is out of all bounds") from None


def _int_or_string(value: bytes) -> str | int:
    found = {number: each for number, _, each in _wire(value)}
    if found.get(1, 0) == 1:
        return found.get(3, b"").decode()
    whole = found.get(2, 0)
    return whole - (1 << 64) if whole >= 1 << 63 else whole


def _raw(value: bytes) -> Any:
    inner = {number: each for number, _, each in _wire(value)}.get(1, b"")
    return json.loads(inner) if inner else None


def _schema_of(value: bytes) -> JsonObject:
    """A schema, without what its writer had to write of fields in which nothing is said."""
    schema = all_types()[_SCHEMA]
    told = set(schema["x-pointers"])
    found = _message(value, schema)
    return {name: each for name, each in found.items() if name in told or each not in ("", False)}


def _schema_or(value: bytes, name: str) -> Any:
    """A schema, or something shorter: what is allowed, a list of schemas, names of fields."""
    is_bool = name.endswith("OrBool")
    fields = [(number, each) for number, _, each in _wire(value)]
    found = next((each for number, each in fields if number == (2 if is_bool else 1)), None)
    if is_bool:
        allows = any(each for number, each in fields if number == 1)
        return allows if found is None else _schema_of(found)
    if found is not None:
        return _schema_of(found)
    listed = [each for number, each in fields if number == 2]
    if name.endswith("OrStringArray"):
        return [each.decode() for each in listed]
    return [_schema_of(each) for each in listed]


_SPECIAL = {
    QUANTITY: _quantity,
    TIME: _time,
    MICRO_TIME: _micro_time,
    INT_OR_STRING: _int_or_string,
}


def _wire(data: bytes) -> Iterator[Wire]:
    """The fields of a message, in their order."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, place = _varint(data, place)
            yield number, kind, value
            continue
        if kind == BYTES:
            size, place = _varint(data, place)
        else:
            size = {FIXED64: 8, FIXED32: 4}.get(kind, -1)
        if size < 0 or place + size > len(data):
            raise BadProtobufError("the message is cut off")
        yield number, kind, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(LONGEST_VARINT):
        if place >= len(data):
            break
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, place
    raise BadProtobufError("a number is cut off")
