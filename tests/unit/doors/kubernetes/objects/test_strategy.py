from typing import Any

import pytest

from muster.doors.kubernetes.catalogue import rules_of
from muster.doors.kubernetes.objects.errors import StatusError
from muster.doors.kubernetes.objects.kinds import CONFIG_MAP, NAMESPACE, SECRET
from muster.doors.kubernetes.objects.metadata import Creation
from muster.doors.kubernetes.objects.schemas.types import schema_of
from muster.doors.kubernetes.objects.strategy import (
    Blueprint,
    is_done_with,
    new_object,
    next_object,
)
from muster.doors.kubernetes.objects.value import JsonObject, Kind

MADE = Creation(uid="u1", suffix="abcde", now="2026-11-18T00:00:00Z")


def blueprint(kind: Kind) -> Blueprint:
    return Blueprint(kind=kind, rules=rules_of(kind), schema=schema_of(kind))


def new(kind: Kind, namespace: str = "nlp", **given: Any) -> JsonObject:
    return new_object(blueprint(kind), given, namespace, MADE)


def test_a_new_object_is_named_and_dated_by_the_server() -> None:
    made = new(CONFIG_MAP, metadata={"generateName": "run-", "uid": "mine", "generation": 7})

    assert made["metadata"] == {
        "generateName": "run-",
        "name": "run-abcde",
        "namespace": "nlp",
        "uid": "u1",
        "creationTimestamp": MADE.now,
    }


def test_a_namespace_is_active_and_carries_its_name() -> None:
    made = new(NAMESPACE, "", metadata={"name": "nlp"})

    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["status"] == {"phase": "Active"}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "nlp"}


def test_texts_of_a_secret_are_kept_as_data() -> None:
    made = new(SECRET, metadata={"name": "s"}, stringData={"a": "hi"})

    assert made["data"] == {"a": "aGk="}
    assert made["type"] == "Opaque"
    assert "stringData" not in made


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"metadata": {}}, "metadata.name: Required value: name or generateName is required"),
        (
            {"metadata": {"name": "c", "labels": {"a b": "1"}}},
            'metadata.labels: Invalid value: "a b": name part must consist of',
        ),
        (
            {"metadata": {"name": "c"}, "data": {"bad key": "1"}},
            'data[bad key]: Invalid value: "bad key": a valid config key must consist of',
        ),
    ],
)
def test_what_is_wrong_with_it_is_said(given: JsonObject, why: str) -> None:
    with pytest.raises(StatusError) as refused:
        new(CONFIG_MAP, **given)

    assert why in refused.value.message


def test_what_is_immutable_stays() -> None:
    made = new(CONFIG_MAP, metadata={"name": "c"}, data={"a": "1"}, immutable=True)

    with pytest.raises(StatusError, match="field is immutable when `immutable` is set"):
        next_object(blueprint(CONFIG_MAP), {**made, "data": {"a": "2"}}, made, "")
    other = {**made, "metadata": {**made["metadata"], "uid": "u2"}}
    with pytest.raises(StatusError, match=r"metadata\.uid: Invalid value"):
        next_object(blueprint(CONFIG_MAP), other, made, "")


def test_a_change_may_leave_the_namespace_to_its_path() -> None:
    made = new(CONFIG_MAP, metadata={"name": "c"})

    changed = next_object(
        blueprint(CONFIG_MAP), {"metadata": {"name": "c"}, "data": {"a": "1"}}, made, ""
    )

    assert changed["metadata"]["namespace"] == "nlp"


def test_an_object_goes_when_the_last_finalizer_is_gone() -> None:
    made = new(CONFIG_MAP, metadata={"name": "c", "finalizers": ["example.com/hold"]})
    ending: JsonObject = {
        **made,
        "metadata": {
            **made["metadata"],
            "deletionTimestamp": MADE.now,
            "deletionGracePeriodSeconds": 0,
        },
    }

    held: JsonObject = {**ending, "metadata": {**ending["metadata"], "finalizers": []}}

    assert not is_done_with(ending)
    assert is_done_with(next_object(blueprint(CONFIG_MAP), held, ending, ""))
