"""Fields that nobody knows or that stand there twice, as strict clients are told of them."""

from collections.abc import Iterator
from typing import Any

import pytest

from hostile.teams import Kube, kube, object_of
from muster.doors.kubernetes.objects.value import JsonObject

MAPS = "/api/v1/namespaces/team-a/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TRAINS = "/apis/example.com/v1/trains"
STRICT = "fieldManager=me&fieldValidation=Strict"
YAML = "application/yaml"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
KEEPING: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
OPEN_SPEC = {**KEEPING, "properties": {"foo": {"type": "string"}}}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with kube(tmp_path_factory.mktemp("home")) as made:
        yield made


def definition(plural: str, schema: JsonObject) -> JsonObject:
    version: JsonObject = {"name": "v1", "served": True, "storage": True}
    kind = plural.rstrip("s").capitalize()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": plural, "kind": kind, "singular": kind.lower()},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def message(said: Any) -> str:
    return said.body["message"]


def test_json_that_says_a_field_twice_is_refused_in_the_order_of_the_document(api: Kube) -> None:
    body = b"""{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "twice", "hue": 1},
        "immutable": true, "immutable": false, "colour": 1, "colour": 2}"""

    said = api.ask("root", "POST", f"{MAPS}?{STRICT}", body)

    assert said.code == 400
    assert message(said).endswith(
        'strict decoding error: unknown field "metadata.hue", '
        'duplicate field "immutable", unknown field "colour"'
    )


def test_yaml_that_says_a_field_twice_is_refused_with_the_line(api: Kube) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y\n  name: z\ndata: {a: b, a: c}\n"

    said = api.ask("root", "POST", f"{MAPS}?{STRICT}", body, content_type=YAML)

    assert said.code == 400
    assert message(said).endswith(
        "strict decoding error: yaml: unmarshal errors:\n"
        '  line 5: key "name" already set in map\n'
        '  line 6: key "a" already set in map'
    )


def test_who_is_not_strict_is_warned_and_has_the_last_one(api: Kube) -> None:
    body = b"""{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "last"},
        "data": {"a": "1", "a": "2"}}"""

    said = api.ask("root", "POST", MAPS, body)

    assert said.body["data"] == {"a": "2"}


def test_a_merge_patch_that_says_a_field_twice_is_refused(api: Kube) -> None:
    api.made("root", MAPS, object_of("ConfigMap", "patched"))

    body = b'{"immutable": true, "immutable": false}'
    said = api.ask("root", "PATCH", f"{MAPS}/patched?{STRICT}", body, content_type=MERGE)

    assert said.code == 422
    assert 'strict decoding error: duplicate field "immutable"' in message(said)


def test_what_keeps_unknown_fields_is_applied_with_them(api: Kube) -> None:
    api.made("root", DEFINITIONS, definition("trains", KEEPING))

    body = b"apiVersion: example.com/v1\nkind: Train\nmetadata: {name: t}\nspec: {cars: 3}\n"
    said = api.ask("root", "PATCH", f"{TRAINS}/t?{STRICT}", body, content_type=APPLY)

    assert said.code == 201, said.text
    assert said.body["spec"] == {"cars": 3}


def test_what_is_applied_may_not_say_a_field_twice_wherever_it_stands(api: Kube) -> None:
    schema = {"type": "object", "properties": {"spec": OPEN_SPEC}}
    api.made("root", DEFINITIONS, definition("ships", schema))
    path = f"/apis/example.com/v1/ships/s?{STRICT}"
    head = b"apiVersion: example.com/v1\nkind: Ship\nmetadata: {name: s}\n"

    body = head + b"spec:\n  cars: 3\n  foo: a\n  foo: b\n"
    said = api.ask("root", "PATCH", path, body, content_type=APPLY)

    assert said.code == 400
    assert message(said) == (
        "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n"
        '  line 7: key "foo" already set in map'
    )
