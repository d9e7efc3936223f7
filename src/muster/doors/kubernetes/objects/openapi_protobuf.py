"""The OpenAPI document of version 2 in protobuf, which is all that older kubectl understands.

Numbers are those of gnostic's `OpenAPIv2.proto`; of schemas only what Kubernetes' types have.
"""

import json
from typing import Any

from muster.doors.kubernetes.objects.value import JsonObject, is_map

ASKED_AS = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
MEDIA = ASKED_AS.replace("@", ".")
"""Clients cannot read the name by which they ask: a `@` must not be there."""

_BYTES = 2


def document(swagger: JsonObject) -> bytes:
    """The whole document."""
    info = _text(1, swagger["info"]["title"]) + _text(2, swagger["info"]["version"])
    definitions = _named_schemas(swagger["definitions"])
    return b"".join(
        (_text(1, swagger["swagger"]), _field(2, info), _field(8, b""), _field(9, definitions))
    )


def _named_schemas(schemas: JsonObject) -> bytes:
    """As `Definitions` and `Properties` are: a list of names with schemas."""
    return b"".join(
        _field(1, _text(1, name) + _field(2, _schema(schema))) for name, schema in schemas.items()
    )


def _schema(schema: JsonObject) -> bytes:
    parts: list[bytes] = []
    if "$ref" in schema:
        parts.append(_text(1, schema["$ref"]))
    if "format" in schema:
        parts.append(_text(2, schema["format"]))
    parts += [_text(19, each) for each in schema.get("required", ())]
    if is_map(schema.get("additionalProperties")):
        parts.append(_field(21, _field(1, _schema(schema["additionalProperties"]))))
    if "type" in schema:
        parts.append(_field(22, _text(1, schema["type"])))
    if "items" in schema:
        parts.append(_field(23, _field(1, _schema(schema["items"]))))
    parts += [_field(24, _schema(each)) for each in schema.get("allOf", ())]
    if "properties" in schema:
        parts.append(_field(25, _named_schemas(schema["properties"])))
    parts += [_extension(name, each) for name, each in schema.items() if name.startswith("x-")]
    return b"".join(parts)


def _extension(name: str, value: Any) -> bytes:
    """What is no part of OpenAPI is written as YAML, which JSON is."""
    return _field(31, _text(1, name) + _field(2, _text(2, json.dumps(value))))


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode())


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
