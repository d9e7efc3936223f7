"""Distils `types.jsonl` from what a Kubernetes publishes of itself.

    python -m muster.doors.kubernetes.objects.schemas.distil OPENAPI SOURCE > types.jsonl

OPENAPI: a folder with the OpenAPI documents of a server, as JSON, gzipped or not.
SOURCE: a folder with the `types.go` of its types, as they lie under `staging/src`.
What is kept is facts: names, types, defaults, how lists and maps are merged, the numbers of fields
in protobuf bodies, and which fields are written when they are empty.
What is left out: descriptions, and types that no kind of ours leads to.
"""

import gzip
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from muster.doors.kubernetes.objects.faces import FACES
from muster.doors.kubernetes.objects.kinds import KINDS
from muster.doors.kubernetes.objects.value import is_list, is_map

Schema = dict[str, Any]

ALSO = (
    "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
    "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent",
    "io.k8s.api.authentication.v1.TokenRequest",
    "io.k8s.api.autoscaling.v1.Scale",
    "io.k8s.api.policy.v1.Eviction",
)
"""Types that requests and answers have besides the kinds themselves."""

LEFT_OUT = ("description", "example", "externalDocs")

_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"^\s+(?:(\w+) +)?([\w.*\[\]]+) +`([^`]*)`", re.MULTILINE)
_JSON = re.compile(r'json:"([^"]*)"')
_NUMBER = re.compile(r'protobuf:"\w+,(\d+),')


class Field(NamedTuple):
    """One field of a struct. name: in JSON; empty where the fields of its type stand there."""

    name: str
    type: str
    number: int | None
    omits: str

    @property
    def is_pointer(self) -> bool:
        return self.type.startswith("*")


Structs = dict[str, list[Field]]


def main(openapi: Path, source: Path) -> None:
    """Write one type on each line."""
    schemas = dict(_schemas(openapi))
    structs = dict(_structs(source))
    for name in sorted(_reachable(schemas)):
        schema = _without_words(schemas[name])
        schema.update(_written(name, schema.get("properties", {}), structs))
        sys.stdout.write(json.dumps({"name": name, **schema}, separators=(",", ":")) + "\n")


def _schemas(folder: Path) -> Iterator[tuple[str, Schema]]:
    """Those of version 3 last: they say more than those of version 2."""
    documents = [_document(file) for file in sorted(folder.iterdir()) if ".json" in file.name]
    for document in documents:
        for name, schema in document.get("definitions", {}).items():
            yield name, _moved(schema)
    for document in documents:
        yield from document.get("components", {}).get("schemas", {}).items()


def _document(file: Path) -> Schema:
    raw = file.read_bytes()
    found: Schema = json.loads(gzip.decompress(raw) if file.suffix == ".gz" else raw)
    return found


def _moved(schema: Schema) -> Schema:
    """With references as version 3 writes them."""
    text = json.dumps(schema).replace("#/definitions/", "#/components/schemas/")
    moved: Schema = json.loads(text)
    return moved


def _without_words(found: Any) -> Any:
    """The schema without what only people read. A field may be called `description`, too."""
    if is_list(found):
        return [_without_words(each) for each in found]
    if not is_map(found):
        return found
    kept = {name: each for name, each in found.items() if name not in LEFT_OUT}
    return {
        name: {field: _without_words(schema) for field, schema in each.items()}
        if name == "properties"
        else _without_words(each)
        for name, each in kept.items()
    }


def _reachable(schemas: dict[str, Schema]) -> set[str]:
    ours = {(each.group, each.version, each.kind) for each in (*KINDS, *FACES)}
    lists = {(group, version, f"{kind}List") for group, version, kind in ours}
    waiting = [name for name, each in schemas.items() if _named(each) & (ours | lists)]
    waiting += ALSO
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += re.findall(r'#/components/schemas/([\w.\-]+)"', json.dumps(schemas[name]))
    return found


def _named(schema: Schema) -> set[tuple[str, str, str]]:
    """Which kinds this is; options of requests belong to all groups, and to none."""
    named = schema.get("x-kubernetes-group-version-kind", [])
    kinds = {(each["group"], each["version"], each["kind"]) for each in named}
    return kinds if len(kinds) == 1 else set()


def _written(name: str, properties: Schema, structs: Structs) -> Schema:
    """How the fields are written: their numbers, and what becomes of those that are empty."""
    numbers: Schema = {}
    fields: list[Field] = []
    for field in structs.get(name, []):
        inner = _inner(name, field, structs)
        fields += inner if not field.name else [field]
        if field.number is not None:
            of_inner = {str(each.number): each.name for each in inner}
            numbers[str(field.number)] = field.name or of_inner
    always = [each.name for each in fields if _is_always_there(each, properties)]
    pointers = [each.name for each in fields if each.is_pointer]
    found: Schema = {"x-protobuf": numbers, "x-always": always, "x-pointers": pointers}
    return {key: value for key, value in found.items() if value}


def _inner(name: str, field: Field, structs: Structs) -> list[Field]:
    """The fields of a field's type, which is one of the same package."""
    return structs.get(f"{name.rpartition('.')[0]}.{field.type}", [])


def _is_always_there(field: Field, properties: Schema) -> bool:
    """Go leaves out what is empty if it is told to, and no struct even then."""
    schema = properties.get(field.name)
    if schema is None or field.is_pointer or "omitzero" in field.omits:
        return False
    is_struct = "allOf" in schema or "$ref" in schema
    return "omitempty" not in field.omits or is_struct


def _structs(folder: Path) -> Iterator[tuple[str, list[Field]]]:
    for file in sorted(folder.rglob("*types*.go")):
        package = _package(file)
        text = "\n".join(line for line in file.read_text().splitlines() if "//" not in line)
        for name, body in _STRUCT.findall(text):
            yield f"{package}.{name}", [_field(*each) for each in _FIELD.findall(body)]


def _field(_: str, kind: str, tags: str) -> Field:
    said, number = _JSON.search(tags), _NUMBER.search(tags)
    name, _, omits = (said[1] if said else "").partition(",")
    return Field(name=name, type=kind, number=int(number[1]) if number else None, omits=omits)


def _package(file: Path) -> str:
    """`k8s.io/api/core/v1/types.go` is called `io.k8s.api.core.v1` in OpenAPI."""
    inside = file.parent.as_posix().partition("k8s.io/")[2]
    return f"io.k8s.{inside.replace('/', '.')}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
