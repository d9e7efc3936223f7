import base64

import pytest

from muster.doors.kubernetes.objects.protobuf import BadProtobufError, decoded
from muster.doors.kubernetes.objects.schemas.types import schema_named
from muster.doors.kubernetes.objects.shaping import Shaped

# As kubectl 1.36 sends them: create namespace, create configmap, create quota.
NAMESPACE = "azhzAAoPCgJ2MRIJTmFtZXNwYWNlEh4KFgoGcmF3LXBiEgAaACIAKgAyADgAQgASABoCCgAaACIA"
CONFIG_MAP = "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEhsKEQoBYxIAGgAiACoAMgA4AEIAEgYKAWESAWIaACIA"
QUOTA = (
    "azhzAAoTCgJ2MRINUmVzb3VyY2VRdW90YRJFChEKAXESABoAIgAqADIAOABCABIuCgwKBHBvZHMSBAoCMjAKHgoX"
    "cmVxdWVzdHMubnZpZGlhLmNvbS9ncHUSAwoBOBoAGgAiAA=="
)


@pytest.mark.parametrize(
    ("body", "kind", "rest"),
    [
        (
            NAMESPACE,
            "Namespace",
            {"metadata": {"name": "raw-pb"}, "spec": {}, "status": {}},
        ),
        (CONFIG_MAP, "ConfigMap", {"metadata": {"name": "c"}, "data": {"a": "b"}}),
        (
            QUOTA,
            "ResourceQuota",
            {
                "metadata": {"name": "q"},
                "spec": {"hard": {"pods": "20", "requests.nvidia.com/gpu": "8"}},
                "status": {},
            },
        ),
    ],
)
def test_bodies_of_kubectl_are_read(body: str, kind: str, rest: dict[str, object]) -> None:
    schema = schema_named("", "v1", kind)
    assert schema is not None

    found = Shaped(schema, decoded(base64.b64decode(body))).object

    assert found == {"kind": kind, "apiVersion": "v1", **rest}


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_body_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises((BadProtobufError, UnicodeDecodeError)):
        decoded(base64.b64decode(CONFIG_MAP)[:cut])


def test_options_of_a_deletion_are_read() -> None:
    # As helm 3.22 sends them: in the version of what is deleted, whatever that is.
    options = b'k8s\x00\n\x13\n\x02v1\x12\rDeleteOptions\x12\x0c"\nBackground'

    assert decoded(options)["propagationPolicy"] == "Background"


def message(number: int, body: bytes) -> bytes:
    return (
        bytes([number << 3 & 127 | 2 if number < 16 else (number << 3 | 2) & 127 | 128])
        + (b"" if number < 16 else bytes([number >> 4]))
        + bytes([len(body)])
        + body
    )


def test_the_schemas_of_definitions_are_read() -> None:
    text = message(5, b"string")
    fields = message(29, message(1, b"a") + message(2, text)) + message(30, bytes([8, 1]))
    schema = message(1, message(5, b"object") + fields)
    version = message(1, b"v1") + message(4, schema)
    body = message(2, message(7, version))
    named = message(1, b"apiextensions.k8s.io/v1") + message(2, b"CustomResourceDefinition")

    [found] = decoded(b"k8s\0" + message(1, named) + message(2, body))["spec"]["versions"]

    assert found["schema"]["openAPIV3Schema"] == {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "additionalProperties": True,
    }


def test_what_is_empty_in_a_schema_of_items_is_not_there() -> None:
    """Go writes every text and every flag, and a reader of OpenAPI takes them for said."""
    name = message(1, b"") + message(4, b"") + message(5, b"string") + message(6, b"")
    item = message(5, b"object") + message(29, message(1, b"name") + message(2, name))
    items = message(24, message(1, item + bytes([10 << 3, 0])))
    version = message(4, message(1, message(5, b"array") + items))
    named = message(1, b"apiextensions.k8s.io/v1") + message(2, b"CustomResourceDefinition")
    body = message(2, message(7, version))

    [found] = decoded(b"k8s\0" + message(1, named) + message(2, body))["spec"]["versions"]

    assert found["schema"]["openAPIV3Schema"]["items"] == {
        "type": "object",
        "properties": {"name": {"type": "string"}},
    }


def test_options_of_deletions_are_of_every_group() -> None:
    named = message(1, b"apps/v1") + message(2, b"DeleteOptions")
    whole = message(1, named) + message(2, bytes([8, 7]))

    assert decoded(b"k8s\0" + whole)["gracePeriodSeconds"] == 7
