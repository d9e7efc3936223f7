import base64
import json
from typing import Any

import pytest

from muster.doors.kubernetes.objects.admission_review import (
    CREATE,
    Asked,
    BadAnswerError,
    patched,
    review_of,
    verdict_of,
    webhooks_for,
)
from muster.doors.kubernetes.objects.kinds import CONFIG_MAP, MUTATING_WEBHOOK, NODE, POD
from muster.doors.kubernetes.objects.value import JsonObject
from muster.model.value import replace

MAP: JsonObject = {"metadata": {"name": "lr", "namespace": "nlp", "labels": {"team": "a"}}}
ASKED = Asked(
    operation=CREATE, kind=CONFIG_MAP, name="lr", namespace="nlp", object=MAP, old=None, user="ada"
)
SPACE: JsonObject = {"metadata": {"name": "nlp", "labels": {"guarded": "yes"}}}


def webhook(**more: Any) -> JsonObject:
    rule = {
        "operations": ["CREATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["configmaps"],
    }
    return {"metadata": {"name": "c"}, "webhooks": [{"name": "w", "rules": [rule], **more}]}


def asks(configuration: JsonObject, asked: Asked = ASKED) -> bool:
    return bool(tuple(webhooks_for((configuration,), asked, SPACE)))


def answer(**response: Any) -> bytes:
    return json.dumps({"response": {"uid": "u1", **response}}).encode()


def test_a_webhook_is_asked_about_what_its_rules_name() -> None:
    assert asks(webhook())
    assert not asks(webhook(), replace(ASKED, operation="DELETE"))
    assert not asks(webhook(), replace(ASKED, kind=POD))
    assert not asks(webhook(), replace(ASKED, subresource="status"))


@pytest.mark.parametrize(
    ("resources", "is_asked"),
    [
        (["pods/attach"], True),
        (["pods"], False),
        (["pods/*"], True),
        (["*/*"], True),
        (["*"], False),
    ],
)
def test_parts_of_resources_are_named_by_themselves(resources: list[str], is_asked: bool) -> None:
    found = webhook()
    found["webhooks"][0]["rules"][0]["resources"] = resources

    assert asks(found, replace(ASKED, kind=POD, subresource="attach")) is is_asked


def test_selectors_look_at_the_namespace_and_at_the_object() -> None:
    assert asks(webhook(namespaceSelector={"matchLabels": {"guarded": "yes"}}))
    assert not asks(webhook(namespaceSelector={"matchLabels": {"guarded": "no"}}))
    expression = {"key": "team", "operator": "NotIn", "values": ["a"]}
    assert not asks(webhook(objectSelector={"matchExpressions": [expression]}))


def test_a_rule_may_be_for_what_is_in_no_namespace() -> None:
    found = webhook()
    found["webhooks"][0]["rules"][0].update(resources=["*"], scope="Cluster")

    assert not asks(found)
    assert asks(found, replace(ASKED, kind=NODE, namespace=""))


def test_no_webhook_has_a_say_about_webhooks() -> None:
    found = webhook()
    found["webhooks"][0]["rules"][0].update(resources=["*"], apiGroups=["*"])

    assert not asks(found, replace(ASKED, kind=MUTATING_WEBHOOK))


def test_what_is_sent_says_who_asks_for_what() -> None:
    request = review_of(ASKED, "u1")["request"]

    assert request["uid"] == "u1"
    assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert request["userInfo"]["username"] == "ada"
    assert request["object"] == MAP


def test_a_refusal_names_the_webhook_and_its_words() -> None:
    said = answer(allowed=False, status={"message": "no such thing", "code": 403})

    refusal = verdict_of("w.example.com", said, "u1").refusal

    assert refusal is not None
    assert refusal.code == 403
    assert refusal.message == (
        'admission webhook "w.example.com" denied the request: no such thing'
    )


def test_a_patch_changes_the_object() -> None:
    operations = [{"op": "add", "path": "/data", "value": {"x": "1"}}]
    said = answer(allowed=True, patch=base64.b64encode(json.dumps(operations).encode()).decode())

    assert patched(MAP, verdict_of("w", said, "u1"))["data"] == {"x": "1"}


def test_a_patch_may_not_make_another_object_of_it() -> None:
    operations = [{"op": "replace", "path": "/metadata/name", "value": "other"}]
    said = answer(allowed=True, patch=base64.b64encode(json.dumps(operations).encode()).decode())

    with pytest.raises(BadAnswerError):
        patched(MAP, verdict_of("w", said, "u1"))


@pytest.mark.parametrize("body", [b"no", b"{}", b'{"response": {"uid": "other"}}'])
def test_an_answer_to_nothing_is_none(body: bytes) -> None:
    with pytest.raises(BadAnswerError):
        verdict_of("w", body, "u1")
