"""CustomResourceDefinitions: kinds that users define, with their schemas, defaults and columns."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from muster.doors.kubernetes.objects.errors import (
    Cause,
    forbidden_field,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
    type_invalid,
)
from muster.doors.kubernetes.objects.kinds import ALL_VERBS, READ_WRITE, SCALE
from muster.doors.kubernetes.objects.rules import Column, Rules
from muster.doors.kubernetes.objects.schemas.types import OBJECT_META, PREFIX, Schema
from muster.doors.kubernetes.objects.schemas.words import OF_OBJECTS, with_words
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    Kind,
    Subresource,
    copied,
    is_list,
    is_map,
    items,
    metadata,
    name_of,
    part,
)
from muster.model.pattern import BadPatternError, TooMuchTextError, pattern
from muster.model.value import Value

CUSTOM = "x-custom"
"""Marks the schema of a kind that users defined: other types are told apart by validation."""

SHOWN = 200
"""So much of a text that is too long is sent back."""

ESTABLISHED, ACCEPTED = "Established", "NamesAccepted"

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}


class CustomKind(Value):
    """One served version of a defined kind. has_defaults: its schema says some.

    selectable: paths of fields that selectors may name. converter: the webhook that makes objects
    of other versions those of this one; None where they differ in nothing.
    """

    kind: Kind
    schema: Schema
    columns: tuple[tuple[Column, str], ...] = ()
    replicas: tuple[str, ...] = ()
    status_replicas: tuple[str, ...] = ()
    selector: tuple[str, ...] = ()
    has_defaults: bool = False
    selectable: tuple[str, ...] = ()
    converter: JsonObject | None = None


def custom_kinds(crd: JsonObject) -> Iterator[CustomKind]:
    """The kinds that a definition serves, if its names were accepted."""
    if not any(_holds(each, ESTABLISHED) for each in items(crd, "status", "conditions")):
        return
    for version in items(crd, "spec", "versions"):
        if version.get("served"):
            yield _custom_kind(crd, version)


def _custom_kind(crd: JsonObject, version: JsonObject) -> CustomKind:
    names, scale = part(crd, "spec", "names"), part(version, "subresources", "scale")
    kind = Kind(
        group=str(part(crd, "spec").get("group")),
        version=str(version.get("name")),
        kind=str(names.get("kind")),
        plural=str(names.get("plural")),
        singular=str(names.get("singular") or str(names.get("kind")).lower()),
        verbs=ALL_VERBS,
        namespaced=part(crd, "spec").get("scope") == "Namespaced",
        short_names=tuple(map(str, items(names, "shortNames"))),
        categories=tuple(map(str, items(names, "categories"))),
        subresources=tuple(_subresources(version, str(names.get("kind")))),
        is_custom=True,
    )
    schema = _schema(version, kind)
    return CustomKind(
        kind=kind,
        schema=schema,
        has_defaults=_has_defaults(schema),
        selectable=tuple(str(each.get("jsonPath")) for each in items(version, "selectableFields")),
        converter=_converter(part(crd, "spec", "conversion")),
        columns=tuple(map(_column, items(version, "additionalPrinterColumns"))),
        replicas=path_of(scale.get("specReplicasPath")),
        status_replicas=path_of(scale.get("statusReplicasPath")),
        selector=path_of(scale.get("labelSelectorPath")),
    )


def _subresources(version: JsonObject, kind: str) -> Iterator[Subresource]:
    named = part(version, "subresources")
    if named.get("scale") is not None:
        yield SCALE
    if named.get("status") is not None:
        yield Subresource(name="status", verbs=READ_WRITE, kind=kind)


def _schema(version: JsonObject, kind: Kind) -> Schema:
    given = copied(part(version, "schema", "openAPIV3Schema"))
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        **part(given, "properties"),
        "metadata": {"allOf": [{"$ref": f"{PREFIX}{OBJECT_META}"}]},
    }
    named = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    backwards = ".".join(reversed(kind.group.split(".")))
    return {
        "type": "object",
        **with_words({**given, "properties": properties}, OF_OBJECTS),
        "name": f"{backwards}.{kind.version}.{kind.kind}",
        CUSTOM: True,
        "x-kubernetes-group-version-kind": [named],
    }


def _converter(conversion: JsonObject) -> JsonObject | None:
    return part(conversion, "webhook") if conversion.get("strategy") == "Webhook" else None


def _has_defaults(schema: Schema) -> bool:
    return "default" in schema or any(_has_defaults(each) for _, each in _schemas_inside(schema))


def _column(given: JsonObject) -> tuple[Column, str]:
    column = Column(
        name=str(given.get("name")),
        type=str(given.get("type", "string")),
        format=str(given.get("format", "")),
        description=str(given.get("description", "")),
        priority=int(given.get("priority", 0)),
    )
    return column, str(given.get("jsonPath", ""))


def path_of(path: Any) -> tuple[str, ...]:
    """`.spec.size` as names."""
    return tuple(each for each in str(path or "").split(".") if each)


def read_path(obj: JsonObject, path: str) -> Any:
    """What a simple JSONPath finds: names, places in lists, and items by one of their fields."""
    found: Any = obj
    for step in _STEPS.finditer(path):
        name, index, key, value = step.groups()
        if name is not None:
            found = found.get(name) if is_map(found) else None
        elif index is not None:
            found = _at(found, int(index))
        elif is_list(found):
            found = next((each for each in found if is_map(each) and each.get(key) == value), None)
    return found


def _at(found: Any, place: int) -> Any:
    """One of a list, counted from its end where the place is below zero: `[-1:]` is the last."""
    is_there = is_list(found) and -len(found) <= place < len(found)
    return found[place] if is_there else None


_STEPS = re.compile(
    r"\.([A-Za-z0-9_\-/]+)|\[(-?\d+):?\]|\[\?\(@\.([\w-]+)\s*==\s*['\"]([^'\"]*)['\"]\)\]"
)


def custom_rules(custom: CustomKind) -> Rules:
    """Defaults and checks that the schema of a defined kind asks for."""

    def default(obj: JsonObject) -> JsonObject:
        filled = with_defaults(obj, custom.schema)
        return filled if is_map(filled) else obj

    def validate(obj: JsonObject, _: JsonObject | None) -> list[Cause]:
        return list(schema_faults(obj, custom.schema, ""))

    selectable = {each.removeprefix("."): _text_at(each) for each in custom.selectable}
    return Rules(default=default, validate=validate, selectable=selectable)


def _text_at(path: str) -> Callable[[JsonObject], str]:
    """Reads a field as selectors compare it."""

    def read(obj: JsonObject) -> str:
        found = read_path(obj, path)
        if isinstance(found, bool):
            return str(found).lower()
        return "" if found is None else str(found)

    return read


def with_defaults(value: Any, schema: Schema) -> Any:
    """The value with what its schema says where nothing is said."""
    if is_map(value):
        fields: Schema = schema.get("properties", {})
        for name, field in fields.items():
            if name not in value and "default" in field and name != "metadata":
                value[name] = (
                    copied(field["default"]) if is_map(field["default"]) else field["default"]
                )
        values = schema.get("additionalProperties")
        for name, each in value.items():
            inner = fields.get(name) or (values if is_map(values) else None)
            if inner is not None and name != "metadata":
                value[name] = with_defaults(each, inner)
    elif is_list(value) and is_map(schema.get("items")):
        return [with_defaults(each, schema["items"]) for each in value]
    return value


def schema_faults(value: Any, schema: Schema, field: str) -> Iterator[Cause]:
    """All that a value breaks of its schema."""
    wanted = str(schema.get("type", ""))
    if value is None and schema.get("nullable"):
        return
    if wanted in _TYPES and not _is_of(value, wanted):
        shown = _type_name(value)
        text = f'{field} in body must be of type {wanted}: "{shown}"'
        yield type_invalid(field, shown, text)
        return
    if "enum" in schema and value not in schema["enum"]:
        yield not_supported(field, value, [str(each) for each in schema["enum"]])
    if isinstance(value, str):
        yield from _text_faults(value, schema, field)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _number_faults(value, schema, field)
    elif is_map(value):
        yield from _map_faults(value, schema, field)
    elif is_list(value):
        yield from _list_faults(value, schema, field)


def _is_of(value: Any, wanted: str) -> bool:
    if isinstance(value, bool) or wanted == "boolean":
        return isinstance(value, bool) and wanted == "boolean"
    if wanted == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[wanted])


def _type_name(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return next((name for name, kinds in _TYPES.items() if isinstance(value, kinds)), "null")


def _text_faults(value: str, schema: Schema, field: str) -> Iterator[Cause]:
    if len(value) < schema.get("minLength", 0):
        text = f"{field} in body should be at least {schema['minLength']} chars long"
        yield invalid(field, value, text)
    elif "maxLength" in schema and len(value) > schema["maxLength"]:
        yield too_long(field, int(schema["maxLength"]))
    elif "pattern" in schema:
        yield from _pattern_faults(value, str(schema["pattern"]), field)


def _pattern_faults(value: str, wanted: str, field: str) -> Iterator[Cause]:
    try:
        is_so = pattern(wanted).is_in(value)
    except TooMuchTextError as error:
        yield invalid(field, value[:SHOWN], f"{field} in body is too long to be matched: {error}")
        return
    if not is_so:
        yield invalid(field, value, f"{field} in body should match '{wanted}'")


def _number_faults(value: float, schema: Schema, field: str) -> Iterator[Cause]:
    if "minimum" in schema and value < schema["minimum"]:
        text = f"{field} in body should be greater than or equal to {schema['minimum']}"
        yield invalid(field, value, text)
    if "maximum" in schema and value > schema["maximum"]:
        text = f"{field} in body should be less than or equal to {schema['maximum']}"
        yield invalid(field, value, text)


def _map_faults(value: JsonObject, schema: Schema, field: str) -> Iterator[Cause]:
    fields: Schema = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield required(_inside(field, name))
    values = schema.get("additionalProperties")
    for name, each in value.items():
        inner = fields.get(name) or (values if is_map(values) else None)
        if inner is not None and not (name == "metadata" and not field):
            yield from schema_faults(each, inner, _inside(field, name))


def _list_faults(value: list[Any], schema: Schema, field: str) -> Iterator[Cause]:
    if len(value) < schema.get("minItems", 0):
        text = f"{field} in body should have at least {schema['minItems']} items"
        yield invalid(field, len(value), text)
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        yield too_many(field, len(value), int(schema["maxItems"]))
    inner = schema.get("items")
    for place, each in enumerate(value) if is_map(inner) else ():
        yield from schema_faults(each, inner or {}, f"{field}[{place}]")


def _inside(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


def _holds(condition: JsonObject, type_: str) -> bool:
    return condition.get("type") == type_ and condition.get("status") == "True"


def _definition_default(crd: JsonObject) -> JsonObject:
    names = part(crd, "spec", "names")
    if names:
        names.setdefault("singular", str(names.get("kind", "")).lower())
        names.setdefault("listKind", f"{names.get('kind', '')}List")
    spec = part(crd, "spec")
    spec.setdefault("conversion", {"strategy": "None"})
    return crd


def _definition_prepare(crd: JsonObject, old: JsonObject | None) -> JsonObject:
    """Names are accepted at once: nobody else serves a group of that name here."""
    since = str(metadata(old or crd).get("creationTimestamp", ""))
    stored = [
        str(each.get("name")) for each in items(crd, "spec", "versions") if each.get("storage")
    ]
    known = items(old or {}, "status", "storedVersions")
    said = items(crd, "status", "conditions")
    others = [each for each in said if each.get("type") not in (ACCEPTED, ESTABLISHED)]
    crd["status"] = {
        "conditions": [
            _condition(ACCEPTED, "NoConflicts", "no conflicts found", since),
            _condition(
                ESTABLISHED, "InitialNamesAccepted", "the initial names have been accepted", since
            ),
            *others,
        ],
        "acceptedNames": copied(part(crd, "spec", "names")),
        "storedVersions": [*dict.fromkeys([*known, *stored])],
    }
    return crd


def _condition(type_: str, reason: str, message: str, since: str) -> JsonObject:
    return {
        "type": type_,
        "status": "True",
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }


def _definition_faults(crd: JsonObject, old: JsonObject | None) -> list[Cause]:
    spec, names = part(crd, "spec"), part(crd, "spec", "names")
    causes: list[Cause] = []
    wanted = f"{names.get('plural')}.{spec.get('group')}"
    if name_of(crd) != wanted:
        text = 'must be spec.names.plural+"."+spec.group'
        causes.append(invalid("metadata.name", name_of(crd), text))
    if spec.get("scope") not in {"Namespaced", "Cluster"}:
        causes.append(not_supported("spec.scope", spec.get("scope", ""), ["Cluster", "Namespaced"]))
    versions = items(spec, "versions")
    if not versions or sum(bool(each.get("storage")) for each in versions) != 1:
        text = "must have exactly one version marked as storage version"
        causes.append(invalid("spec.versions", [each.get("name") for each in versions], text))
    causes += [
        required(f"spec.versions[{place}].schema.openAPIV3Schema", "schemas are required")
        for place, each in enumerate(versions)
        if not part(each, "schema", "openAPIV3Schema")
    ]
    for place, each in enumerate(versions):
        schema = part(each, "schema", "openAPIV3Schema")
        causes += _wrong_schema(schema, f"spec.versions[{place}].schema.openAPIV3Schema")
    if old is not None and part(old, "spec", "names").get("kind") != names.get("kind"):
        causes.append(invalid("spec.names.kind", names.get("kind"), "field is immutable"))
    return causes


def _wrong_schema(schema: Schema, at: str) -> Iterator[Cause]:
    """References, and patterns that no text could be held against, at any depth."""
    if "$ref" in schema:
        yield forbidden_field(f"{at}.$ref", "$ref is not supported")
    wanted = schema.get("pattern")
    if wanted is not None:
        try:
            pattern(str(wanted))
        except BadPatternError as error:
            text = "must be a valid regular expression, but isn't: error parsing regexp"
            yield invalid(f"{at}.pattern", wanted, f"{text}: {error}")
    for where, each in _schemas_inside(schema):
        yield from _wrong_schema(each, f"{at}.{where}")


def _schemas_inside(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Each with its place."""
    for name, each in part(schema, "properties").items():
        if is_map(each):
            yield f"properties[{name}]", each
    for name in ("items", "additionalProperties", "not"):
        each = schema.get(name)
        if is_map(each):
            yield name, each
    for name in ("allOf", "anyOf", "oneOf"):
        for place, each in enumerate(items(schema, name)):
            yield f"{name}[{place}]", each


DEFINITIONS = Rules(
    default=_definition_default,
    prepare=_definition_prepare,
    validate=_definition_faults,
)
