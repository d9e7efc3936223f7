"""Schemas of defined kinds as OpenAPI of version 2 has them, for clients that know no newer one.

What that version cannot say is left out, and what kubectl's reader of it would take for more than
is meant: a field where anything is right must not look like one where little is. Pure.
"""

from muster.doors.kubernetes.objects.schemas.types import Schema
from muster.doors.kubernetes.objects.value import is_map

NAMED = "x-kubernetes-group-version-kind"
ANYTHING = "x-kubernetes-preserve-unknown-fields"
_UNKNOWN = ("oneOf", "anyOf", "not", "nullable")


def older_schema(schema: Schema) -> Schema:
    """The schema of a whole object."""
    if schema.get(ANYTHING):
        return {"type": "object", NAMED: schema[NAMED]}
    return _older(schema)


def _older(schema: Schema) -> Schema:
    found = {name: each for name, each in schema.items() if name not in _UNKNOWN}
    if "allOf" in found and not _is_reference(found):
        del found["allOf"]
    is_any = bool(schema.get(ANYTHING))
    if schema.get("nullable") or is_any:
        found.pop("items", None)
        found.pop("properties", None)
    is_open = (is_any and found.get("type") == "object") or (
        found.get("type") == "array" and "items" not in found
    )
    if schema.get("nullable") or is_open:
        found.pop("type", None)
    if "required" in found:
        found["required"] = _required(schema)
        if not found["required"]:
            del found["required"]
    return _inner(found)


def _is_reference(schema: Schema) -> bool:
    return any("$ref" in each for each in schema["allOf"] if is_map(each))


def _required(schema: Schema) -> list[str]:
    """Fields that must be there; those that may be null cannot be said to."""
    values = schema.get("additionalProperties")
    if is_map(values) and values.get("nullable"):
        return []
    fields: Schema = schema.get("properties", {})
    return [each for each in schema["required"] if not fields.get(each, {}).get("nullable")]


def _inner(schema: Schema) -> Schema:
    found = dict(schema)
    if is_map(found.get("properties")):
        found["properties"] = {
            name: _older(each) if is_map(each) else each
            for name, each in found["properties"].items()
        }
    for name in ("items", "additionalProperties"):
        if is_map(found.get(name)):
            found[name] = _older(found[name])
    return found
