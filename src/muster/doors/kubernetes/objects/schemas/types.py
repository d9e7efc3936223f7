"""The schemas of types: looked up by kind, and walked along the fields of an object."""

import json
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

from muster.doors.kubernetes.objects.value import Kind, is_map

Schema: TypeAlias = dict[str, Any]

PREFIX = "#/components/schemas/"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
MICRO_TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

OURS = ("x-protobuf", "x-always", "x-pointers", "x-custom", "name")
"""What `types.jsonl` says besides what OpenAPI does."""


@cache
def all_types() -> dict[str, Schema]:
    """Every type by its name, as it stands in OpenAPI documents."""
    text = (
        files("muster.doors.kubernetes.objects.schemas")
        .joinpath("types.jsonl")
        .read_text(encoding="utf-8")
    )
    return {each["name"]: each for each in map(json.loads, text.splitlines())}


@cache
def _by_kind() -> dict[tuple[str, str, str], Schema]:
    found: dict[tuple[str, str, str], Schema] = {}
    for each in all_types().values():
        for named in each.get("x-kubernetes-group-version-kind", ()):
            found[named["group"], named["version"], named["kind"]] = each
    return found


def schema_of(kind: Kind) -> Schema | None:
    """The schema of a kind's objects; None where nothing is known of them."""
    return _by_kind().get((kind.group, kind.version, kind.kind))


def schema_named(group: str, version: str, kind: str) -> Schema | None:
    """The same for what is no kind of its own, such as `Scale`; options belong to all groups."""
    if kind == "DeleteOptions":
        return all_types()[DELETE_OPTIONS]
    return _by_kind().get((group, version, kind))


def target(schema: Schema) -> Schema:
    """What a schema refers to, or itself."""
    reference = reference_of(schema)
    return schema if reference is None else all_types()[reference]


def reference_of(schema: Schema) -> str | None:
    """The name of the type that a schema refers to."""
    named = schema.get("$ref")
    if named is None and schema.get("allOf"):
        named = schema["allOf"][0].get("$ref")
    return None if named is None else named.removeprefix(PREFIX)


def type_name(schema: Schema) -> str | None:
    """The name of the type that this is, or refers to."""
    return reference_of(schema) or schema.get("name")


def is_struct(schema: Schema) -> bool:
    """Is it an object with fields that are known?"""
    return "properties" in target(schema)


def field_of(schema: Schema, name: str) -> Schema | None:
    """The schema of a field of a struct, or of a value of a map; None where it is not known."""
    found = target(schema)
    if name in found.get("properties", {}):
        return found["properties"][name]
    values = found.get("additionalProperties")
    return values if is_map(values) else None


def items_of(schema: Schema) -> Schema | None:
    """The schema of a list's items."""
    return target(schema).get("items")


def default_key(schema: Schema, key: str) -> Any:
    """What a key of a list's items is where it is left out; protocols of ports, for example."""
    found = items_of(schema)
    return None if found is None else (field_of(found, key) or {}).get("default")
