"""OpenAPI documents: what clients validate with, merge by, and explain."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence

from muster.doors.kubernetes.objects.older_schemas import older_schema
from muster.doors.kubernetes.objects.schemas.types import (
    OBJECT_META,
    OURS,
    PREFIX,
    Schema,
    all_types,
)
from muster.doors.kubernetes.objects.schemas.words import OF_METADATA, with_words
from muster.doors.kubernetes.objects.value import JsonObject, Kind

TITLE: JsonObject = {"title": "Kubernetes", "version": "1.36"}

PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)

WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")

SchemaOf = Callable[[Kind], Schema | None]


def group_versions(kinds: Iterable[Kind]) -> list[str]:
    """The documents that there are: `api/v1`, `apis/batch/v1` ..."""
    return sorted({_document_name(each) for each in kinds})


def index(kinds: Sequence[Kind], schema_of: SchemaOf) -> JsonObject:
    """`/openapi/v3`: where each document is. Its address changes with what it says."""
    paths: JsonObject = {}
    for name in group_versions(kinds):
        text = json.dumps(document(kinds, name, schema_of), sort_keys=True)
        digest = hashlib.sha512(text.encode()).hexdigest().upper()
        paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={digest}"}
    return {"paths": paths}


def document(kinds: Sequence[Kind], name: str, schema_of: SchemaOf) -> JsonObject:
    """One document of version 3."""
    ours = [each for each in kinds if _document_name(each) == name]
    paths = {path: found for each in ours for path, found in _paths(each, schema_of).items()}
    return {
        "openapi": "3.0.0",
        "info": TITLE,
        "paths": paths,
        "components": {"schemas": _schemas(ours, schema_of)},
    }


def swagger(kinds: Sequence[Kind], schema_of: SchemaOf) -> JsonObject:
    """`/openapi/v2`: the types alone, for clients that know no newer version."""
    schemas = _schemas(kinds, schema_of)
    for schema in map(schema_of, (each for each in kinds if each.is_custom)):
        if schema is not None:
            name = str(schema["name"])
            schemas[name] = older_schema(schemas[name])
    text = json.dumps(schemas)
    definitions: JsonObject = json.loads(text.replace(PREFIX, "#/definitions/"))
    return {
        "swagger": "2.0",
        "info": TITLE,
        "paths": {},
        "definitions": {name: _older(each) for name, each in definitions.items()},
    }


_REFERENCE = r'\{(?:"description": "[^"\\]*", )?(?:"default": \{\}, )?"allOf": \[(\{[^]]*\})\]\}'


def _older(schema: JsonObject) -> JsonObject:
    """Version 2 has no `allOf` around references."""
    text = re.sub(_REFERENCE, r"\1", json.dumps(schema))
    found: JsonObject = json.loads(text)
    return found


def _document_name(kind: Kind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def _schemas(kinds: Iterable[Kind], schema_of: SchemaOf) -> JsonObject:
    """The types of these kinds, with all that they lead to."""
    found: JsonObject = {}
    waiting: list[Schema] = []
    for kind in kinds:
        schema = schema_of(kind)
        if schema is not None:
            waiting.append(schema)
            listed = all_types().get(f"{schema['name']}List")
            waiting += [] if listed is None else [listed]
    types = all_types()
    waiting.append(types["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"])
    waiting.append(types["io.k8s.apimachinery.pkg.apis.meta.v1.Status"])
    while waiting:
        schema = waiting.pop()
        name = str(schema["name"])
        if name in found:
            continue
        found[name] = {key: each for key, each in schema.items() if key not in OURS}
        named = re.findall(rf'{PREFIX}([\w.\-]+)"', json.dumps(schema))
        waiting += [types[each] for each in named if each in types]
    if OBJECT_META in found:
        found[OBJECT_META] = with_words(found[OBJECT_META], OF_METADATA)
    return {name: found[name] for name in sorted(found)}


def _paths(kind: Kind, schema_of: SchemaOf) -> JsonObject:
    """What can be done with objects of a kind."""
    start = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    place = f"{start}/namespaces/{{namespace}}" if kind.namespaced else start
    schema = schema_of(kind)
    body: JsonObject = {} if schema is None else {"$ref": f"{PREFIX}{schema['name']}"}
    collection = {"GET": "list", "POST": "post"}
    single = {"GET": "get", "PUT": "put", "PATCH": "patch", "DELETE": "delete"}
    if "get" not in kind.verbs:
        collection, single = {"POST": "post"}, {}
    whose = (_NAMESPACE,) if kind.namespaced else ()
    paths = {f"{place}/{kind.plural}": _path(_operations(kind, collection, body), whose)}
    if single:
        called = {**_NAME, "description": f"name of the {kind.kind}"}
        operations = _operations(kind, single, body)
        paths[f"{place}/{kind.plural}/{{name}}"] = _path(operations, (called, *whose))
    return paths


_NAME: JsonObject = {
    "name": "name",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "uniqueItems": True},
}
_NAMESPACE: JsonObject = {
    **_NAME,
    "name": "namespace",
    "description": "object name and auth scope, such as for teams and projects",
}


def _path(operations: JsonObject, parameters: tuple[JsonObject, ...]) -> JsonObject:
    """With what stands in the path itself."""
    return {**operations, "parameters": list(parameters)} if parameters else operations


def _operations(kind: Kind, actions: dict[str, str], body: JsonObject) -> JsonObject:
    return {
        method.lower(): _operation(kind, method, action, body) for method, action in actions.items()
    }


def _operation(kind: Kind, method: str, action: str, body: JsonObject) -> JsonObject:
    named = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    group = kind.group.title().replace(".", "")
    content = {"application/json": {"schema": body}}
    found: JsonObject = {
        "operationId": f"{action}{group}{kind.version.title()}{kind.kind}",
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": named,
    }
    if method in {"POST", "PUT", "PATCH"}:
        names = (*WRITE_PARAMETERS, "force") if method == "PATCH" else WRITE_PARAMETERS
        found["parameters"] = [
            {"name": each, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
            for each in names
        ]
        patches = PATCHES if not kind.is_custom else PATCHES[:3]
        media = patches if method == "PATCH" else ("*/*",)
        found["requestBody"] = {"content": {each: {"schema": body} for each in media}}
    return found
