from typing import Any

import pytest

from muster.doors.kubernetes.objects.custom import (
    DEFINITIONS,
    custom_kinds,
    custom_rules,
    read_path,
    schema_faults,
)
from muster.doors.kubernetes.objects.errors import Cause
from muster.doors.kubernetes.objects.schemas.types import target
from muster.doors.kubernetes.objects.value import JsonObject

SPEC: JsonObject = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 64},
        "mode": {"type": "string", "enum": ["hard", "soft"], "default": "hard"},
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 4},
    },
}


def definition(**more: Any) -> JsonObject:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size"}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}},
    }
    return {
        "metadata": {"name": "gangs.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Gang", "plural": "gangs", "shortNames": ["gg"]},
            "versions": [version],
        },
        **more,
    }


def established() -> JsonObject:
    assert DEFINITIONS.default is not None
    assert DEFINITIONS.prepare is not None
    return DEFINITIONS.prepare(DEFINITIONS.default(definition()), None)


def test_a_definition_is_served_once_its_names_are_accepted() -> None:
    (custom,) = custom_kinds(established())

    assert list(custom_kinds(definition())) == []
    assert custom.kind.resource == "gangs.example.com"
    assert custom.kind.singular == "gang"
    assert [each.name for each in custom.kind.subresources] == ["scale", "status"]
    assert custom.replicas == ("spec", "size")


def test_what_is_left_out_is_filled_in() -> None:
    (custom,) = custom_kinds(established())
    rules = custom_rules(custom)
    assert rules.default is not None

    assert rules.default({"spec": {"size": 8}}) == {"spec": {"size": 8, "mode": "hard"}}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"size": 99}, "Invalid value: 99: spec.size in body should be less than or equal to 64"),
        ({"size": 0}, "Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        ({}, "Required value"),
        (
            {"size": "8"},
            'Invalid value: "string": spec.size in body must be of type integer: "string"',
        ),
        (
            {"size": 1, "mode": "weird"},
            'Unsupported value: "weird": supported values: "hard", "soft"',
        ),
        (
            {"size": 1, "name": "A"},
            "Invalid value: \"A\": spec.name in body should match '^[a-z]+$'",
        ),
        ({"size": 1, "name": "abcde"}, "Too long: may not be more than 4 bytes"),
    ],
)
def test_what_breaks_the_schema_is_named(spec: JsonObject, why: str) -> None:
    causes: list[Cause] = list(schema_faults(spec, SPEC, "spec"))

    assert [each.message for each in causes] == [why]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.size", 8),
        (".spec.list[1].a", 2),
        ('.status.conditions[?(@.type=="Ready")].status', "True"),
        (".spec.nosuch.deeper", None),
        (".spec.list[7].a", None),
    ],
)
def test_columns_are_read_by_path(path: str, found: Any) -> None:
    obj = {
        "spec": {"size": 8, "list": [{"a": 1}, {"a": 2}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }

    assert read_path(obj, path) == found


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"$ref": "python://x"}, "$ref is not supported"),
        ({"properties": {"a": {"items": {"$ref": "#/x"}}}}, "$ref is not supported"),
        ({"anyOf": [{"not": {"$ref": "#/x"}}]}, "$ref is not supported"),
        (
            {"properties": {"a": {"allOf": [{"pattern": "("}]}}},
            "must be a valid regular expression",
        ),
    ],
)
def test_a_schema_refers_to_nothing_and_has_patterns_that_can_be_read(
    schema: JsonObject, why: str
) -> None:
    crd = definition()
    crd["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": {"type": "object", **schema}}
    assert DEFINITIONS.validate is not None

    (cause,) = DEFINITIONS.validate(crd, None)

    assert why in cause.message


def test_an_empty_list_of_schemas_asks_for_nothing() -> None:
    crd = established()
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["allOf"] = []

    (custom,) = custom_kinds(crd)

    assert target(custom.schema) is custom.schema
