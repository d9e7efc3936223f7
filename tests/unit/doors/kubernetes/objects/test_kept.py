from muster.doors.kubernetes.catalogue import rules_of
from muster.doors.kubernetes.objects.kept import warnings_about
from muster.doors.kubernetes.objects.kinds import (
    CONFIG_MAP,
    CSR,
    NETWORK_POLICY,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    VALIDATING_WEBHOOK,
)
from muster.doors.kubernetes.objects.metadata import Creation
from muster.doors.kubernetes.objects.schemas.types import schema_of
from muster.doors.kubernetes.objects.strategy import Blueprint, new_object, next_object
from muster.doors.kubernetes.objects.value import JsonObject, Kind

MADE = Creation(uid="u1", suffix="abcde", now="2026-11-18T00:00:00Z")


def blueprint(kind: Kind) -> Blueprint:
    return Blueprint(kind=kind, rules=rules_of(kind), schema=schema_of(kind))


def new(kind: Kind, given: JsonObject) -> JsonObject:
    space = "nlp" if kind.namespaced else ""
    return new_object(blueprint(kind), {"metadata": {"name": "x"}, **given}, space, MADE)


def test_who_creates_what_has_no_effect_here_is_told_so() -> None:
    assert warnings_about(CONFIG_MAP) == ()
    [told] = warnings_about(NETWORK_POLICY)
    assert told.startswith("this NetworkPolicy is kept, and has no effect: pods have the machine")


def test_kept_objects_have_the_defaults_of_kubernetes() -> None:
    made = new(STORAGE_CLASS, {"provisioner": "p"})
    assert (made["reclaimPolicy"], made["volumeBindingMode"]) == ("Delete", "Immediate")
    assert new(PERSISTENT_VOLUME_CLAIM, {})["status"] == {"phase": "Pending"}
    called = {"url": "https://hooks.example.com/"}
    hook = {"name": "w.x.y", "clientConfig": called, "rules": [{"operations": ["*"]}]}
    [made] = new(VALIDATING_WEBHOOK, {"webhooks": [hook]})["webhooks"]
    assert made["failurePolicy"] == "Fail"
    assert made["rules"][0]["scope"] == "*"


def test_an_approval_is_a_part_of_the_status() -> None:
    made = new(CSR, {"spec": {"signerName": "a.b/c", "request": "eA==", "usages": ["any"]}})
    approved = {"conditions": [{"type": "Approved", "status": "True"}]}

    after = next_object(blueprint(CSR), {**made, "spec": {}, "status": approved}, made, "approval")

    assert after["spec"] == made["spec"]
    assert after["status"]["conditions"][0]["type"] == "Approved"
