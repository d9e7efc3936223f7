from typing import Any

from muster.doors.kubernetes.objects.custom import custom_kinds
from muster.doors.kubernetes.objects.older_schemas import ANYTHING, older_schema
from muster.doors.kubernetes.objects.openapi import document, swagger

TEXT = {"type": "string"}
NAMED = {"x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "K"}]}
SIZES = {
    "type": "object",
    "description": "How large it is",
    "required": ["size"],
    "properties": {"size": {"type": "string", "enum": ["s", "l"], "pattern": "s|l"}},
}


def served(schema: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What both versions of OpenAPI say of a kind with this schema."""
    version = {"name": "v1", "served": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Van", "plural": "vans"}
    (custom,) = custom_kinds(
        {
            "spec": {"group": "cars.example.com", "names": names, "versions": [version]},
            "status": {"conditions": [{"type": "Established", "status": "True"}]},
        }
    )
    older = swagger([custom.kind], lambda _: custom.schema)["definitions"]
    newer = document([custom.kind], "apis/cars.example.com/v1", lambda _: custom.schema)
    return older, newer["components"]["schemas"]


def test_a_definition_stands_in_both_versions_as_it_was_written() -> None:
    schema = {"type": "object", "description": "A van", "properties": {"spec": SIZES}}

    older, newer = served(schema)

    found = older["com.example.cars.v1.Van"]
    assert found["description"] == "A van"
    assert found["properties"]["spec"] == SIZES
    assert set(found["properties"]) == {"spec", "apiVersion", "kind", "metadata"}
    assert found["properties"]["metadata"] == {
        "$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    }
    named = {"group": "cars.example.com", "version": "v1", "kind": "Van"}
    assert found["x-kubernetes-group-version-kind"] == [named]
    fields = newer["com.example.cars.v1.Van"]["properties"]
    assert fields["apiVersion"]["description"].startswith("APIVersion defines")
    assert fields["spec"] == SIZES
    metadata = newer["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"]
    assert metadata["creationTimestamp"]["description"].startswith("CreationTimestamp is a")


def test_a_kind_of_which_anything_is_right_is_an_object_and_no_more() -> None:
    older, newer = served({"type": "object", ANYTHING: True, "properties": {"spec": SIZES}})

    named = {"group": "cars.example.com", "version": "v1", "kind": "Van"}
    assert older["com.example.cars.v1.Van"] == {
        "type": "object",
        "x-kubernetes-group-version-kind": [named],
    }
    assert newer["com.example.cars.v1.Van"][ANYTHING] is True


def test_what_version_2_cannot_say_is_left_out() -> None:
    fields = {
        "choice": {
            "type": "object",
            "oneOf": [TEXT],
            "anyOf": [TEXT],
            "allOf": [TEXT],
            "not": TEXT,
        },
        "maybe": {"type": "array", "nullable": True, "items": TEXT},
        "open": {"type": "object", ANYTHING: True, "properties": {"a": TEXT}},
        "many": {"type": "array", "items": {"type": "string", "nullable": True}},
        "map": {"type": "object", "additionalProperties": {"type": "object", ANYTHING: True}},
    }
    required = ["maybe", "open"]

    found = older_schema({"type": "object", "properties": fields, "required": required, **NAMED})

    assert found["properties"] == {
        "choice": {"type": "object"},
        "maybe": {},
        "open": {ANYTHING: True},
        "many": {"type": "array", "items": {}},
        "map": {"type": "object", "additionalProperties": {ANYTHING: True}},
    }
    assert found["required"] == ["open"]
    assert fields["maybe"]["nullable"] is True
