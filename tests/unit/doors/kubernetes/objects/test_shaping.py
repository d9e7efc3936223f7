from typing import Any

import pytest

from muster.doors.kubernetes.objects.kinds import CONFIG_MAP, LEASE, POD
from muster.doors.kubernetes.objects.schemas.types import Schema, schema_of
from muster.doors.kubernetes.objects.shaping import Shaped, WrongShapeError, go_text
from muster.doors.kubernetes.objects.value import JsonObject, Kind


def schema(kind: Kind) -> Schema:
    found = schema_of(kind)
    assert found is not None
    return found


def test_fields_that_nobody_knows_are_named_and_left_out() -> None:
    given: JsonObject = {
        "metadata": {"name": "p", "colour": "red"},
        "spec": {"containers": [{"name": "m", "resource": {}}], "gpus": 1},
    }

    shaped = Shaped(schema(POD), given)

    assert shaped.unknown == ["metadata.colour", "spec.containers[0].resource", "spec.gpus"]
    assert "gpus" not in shaped.object["spec"]


def test_what_is_empty_is_written_as_its_type_says() -> None:
    given: JsonObject = {
        "metadata": {"name": "p", "labels": {}, "annotations": None},
        "spec": {
            "containers": [{"name": "m", "env": [], "image": ""}],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "terminationGracePeriodSeconds": 0,
            "hostNetwork": False,
        },
    }

    assert Shaped(schema(POD), given).object == {
        "metadata": {"name": "p"},
        "spec": {
            "containers": [{"name": "m", "resources": {}}],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "terminationGracePeriodSeconds": 0,
        },
        "status": {},
    }


@pytest.mark.parametrize(
    ("kind", "given", "why"),
    [
        (
            POD,
            {"spec": {"activeDeadlineSeconds": "soon"}},
            (
                "json: cannot unmarshal string into Go struct field "
                "PodSpec.spec.activeDeadlineSeconds "
                "of type int64"
            ),
        ),
        (
            POD,
            {"spec": {"containers": [{"env": [{"value": 1}]}]}},
            (
                "json: cannot unmarshal number into Go struct field "
                "EnvVar.spec.containers.env.value "
                "of type string"
            ),
        ),
        (
            CONFIG_MAP,
            {"data": {"seed": 9}},
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            CONFIG_MAP,
            {"metadata": {"name": True}},
            (
                "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.name "
                "of type string"
            ),
        ),
    ],
)
def test_values_of_another_type_are_refused_in_the_words_of_go(
    kind: Kind, given: Any, why: str
) -> None:
    with pytest.raises(WrongShapeError) as refused:
        Shaped(schema(kind), given)

    assert str(refused.value) == why


def test_amounts_and_bytes_are_written_one_way() -> None:
    container = {"name": "m", "resources": {"limits": {"nvidia.com/gpu": 1, "cpu": "0.5"}}}

    pod = Shaped(schema(POD), {"spec": {"containers": [container]}}).object
    config = Shaped(schema(CONFIG_MAP), {"binaryData": {"a": "aGk=\n"}}).object

    assert pod["spec"]["containers"][0]["resources"]["limits"] == {
        "nvidia.com/gpu": "1",
        "cpu": "500m",
    }
    assert config["binaryData"] == {"a": "aGk="}


def test_instants_are_written_in_utc_whatever_the_zone_of_who_sent_them() -> None:
    given: JsonObject = {
        "metadata": {"name": "l", "creationTimestamp": "2026-11-18T10:34:01.5+02:00"},
        "spec": {"renewTime": "2026-11-18T08:34:01+00:00"},
    }

    shaped = Shaped(schema(LEASE), given).object

    assert shaped["metadata"]["creationTimestamp"] == "2026-11-18T08:34:01Z"
    assert shaped["spec"]["renewTime"] == "2026-11-18T08:34:01.000000Z"


def test_days_that_are_none_are_refused() -> None:
    given: JsonObject = {"metadata": {"creationTimestamp": "2026-02-30T00:00:00Z"}}

    with pytest.raises(WrongShapeError, match="day out of range"):
        Shaped(schema(POD), given)


def test_go_prints_maps_in_the_order_of_their_keys() -> None:
    assert (
        go_text({"data": {"lr": 0.5, "a": [True, None]}}) == "map[data:map[a:[true <nil>] lr:0.5]]"
    )
