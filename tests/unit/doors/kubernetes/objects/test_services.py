from ipaddress import ip_address
from typing import Any

import pytest

from muster.doors.kubernetes.catalogue import rules_of
from muster.doors.kubernetes.objects.errors import StatusError
from muster.doors.kubernetes.objects.kinds import SERVICE
from muster.doors.kubernetes.objects.metadata import Creation
from muster.doors.kubernetes.objects.schemas.types import schema_of
from muster.doors.kubernetes.objects.strategy import Blueprint, new_object, next_object
from muster.doors.kubernetes.objects.value import JsonObject

SERVICES = Blueprint(kind=SERVICE, rules=rules_of(SERVICE), schema=schema_of(SERVICE))


def new(uid: str = "u1", **spec: Any) -> JsonObject:
    made = Creation(uid=uid, suffix="abcde", now="2026-11-18T00:00:00Z")
    given = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}], **spec}}
    return new_object(SERVICES, given, "nlp", made)


def test_a_service_has_an_address_that_only_this_machine_reaches() -> None:
    spec = new()["spec"]

    assert ip_address(spec["clusterIP"]).is_loopback
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert len({new(uid=str(number))["spec"]["clusterIP"] for number in range(99)}) == 99


def test_a_headless_service_has_none() -> None:
    assert new(clusterIP="None")["spec"]["clusterIPs"] == ["None"]


def test_the_ports_of_nodes_are_drawn_and_kept() -> None:
    made = new(type="NodePort")
    [port] = made["spec"]["ports"]
    assert port["nodePort"] in range(30_000, 32_768)

    asked: JsonObject = {**made, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    after = next_object(SERVICES, asked, made, "")

    assert after["spec"]["ports"][0]["nodePort"] == port["nodePort"]
    assert after["spec"]["clusterIP"] == made["spec"]["clusterIP"]


def test_a_service_that_is_a_name_elsewhere_gives_its_address_back() -> None:
    made = new()
    asked = {**made, "spec": {**made["spec"], "type": "ExternalName", "externalName": "a.example"}}

    after = next_object(SERVICES, asked, made, "")

    assert "clusterIP" not in after["spec"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"ports": []}, "spec.ports: Required value"),
        ({"ports": [{"port": 80}, {"port": 81}]}, "spec.ports[0].name: Required value"),
        ({"type": "NodePort", "ports": [{"port": 80, "nodePort": 99}]}, "is not in the valid"),
        ({"type": "Other"}, 'spec.type: Unsupported value: "Other"'),
        ({"type": "ExternalName"}, "spec.externalName: Required value"),
    ],
)
def test_what_cannot_be_is_refused(spec: JsonObject, words: str) -> None:
    with pytest.raises(StatusError, match="is invalid") as refused:
        new(**spec)

    assert words in refused.value.message


def test_an_address_stays() -> None:
    made = new()
    moved = {**made, "spec": {**made["spec"], "clusterIP": "127.64.0.9"}}

    with pytest.raises(StatusError, match="may not change once set"):
        next_object(SERVICES, moved, made, "")
