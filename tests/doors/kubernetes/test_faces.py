"""Kinds that show the same objects in two ways: whichever is asked, it is one object."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from hostile.teams import ANN, BEN, Kube, kube, object_of
from muster.doors.kubernetes.objects.value import JsonObject
from muster.doors.kubernetes.serve.watching import Watch

NEWER = "/apis/events.k8s.io/v1/namespaces/team-a/events"
OLDER = "/api/v1/namespaces/team-a/events"
V1 = "/apis/autoscaling/v1/namespaces/team-a/horizontalpodautoscalers"
V2 = "/apis/autoscaling/v2/namespaces/team-a/horizontalpodautoscalers"
MERGE = {"content_type": "application/merge-patch+json"}
STRATEGIC = {"content_type": "application/strategic-merge-patch+json"}
APPLY = {"content_type": "application/apply-patch+yaml"}
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with kube(tmp_path_factory.mktemp("home")) as made:
        yield made


def event(name: str, **more: Any) -> JsonObject:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "labels": {"of": name}},
        "regarding": {"namespace": "team-a", "kind": "Pod", "name": "web"},
        "eventTime": "2026-11-19T10:00:00.000000Z",
        "note": "It begins",
        "action": "Do",
        "reason": "Test",
        "type": "Normal",
        "reportingController": "test-controller",
        "reportingInstance": "test-node",
        **more,
    }


def autoscaler(name: str) -> JsonObject:
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 4,
        "targetCPUUtilizationPercentage": 80,
    }
    about = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler"}
    return {**about, "metadata": {"name": name}, "spec": spec}


def names(said: JsonObject) -> list[str]:
    return [each["metadata"]["name"] for each in said["items"]]


def watched(watch: object) -> list[JsonObject]:
    """What a watch begins with."""
    assert isinstance(watch, Watch)

    async def lines() -> list[bytes]:
        ending = asyncio.Event()
        ending.set()
        return [each async for each in watch.lines(ending)]

    return [json.loads(each) for each in asyncio.run(lines())]


def test_both_faces_are_in_discovery_and_have_types(api: Kube) -> None:
    groups = api.ask("root", "GET", "/apis", accept=DISCOVERY).body["items"]
    versions = {
        (each["metadata"]["name"], one["version"]): [row["resource"] for row in one["resources"]]
        for each in groups
        for one in each["versions"]
    }

    assert versions["events.k8s.io", "v1"] == ["events"]
    assert versions["autoscaling", "v1"] == ["horizontalpodautoscalers"]
    group = api.ask("root", "GET", "/apis/autoscaling").body
    assert group["preferredVersion"]["version"] == "v2"
    rows = api.ask("root", "GET", "/apis/events.k8s.io/v1").body["resources"]
    assert [(each["name"], each["kind"]) for each in rows] == [("events", "Event")]
    document = api.ask("root", "GET", "/openapi/v3/apis/events.k8s.io/v1").body
    assert (
        "regarding" in document["components"]["schemas"]["io.k8s.api.events.v1.Event"]["properties"]
    )
    assert "/apis/events.k8s.io/v1/namespaces/{namespace}/events/{name}" in document["paths"]
    assert "/openapi/v3/apis/autoscaling/v1" in json.dumps(
        api.ask("root", "GET", "/openapi/v3").body
    )


def test_an_event_of_one_version_is_there_in_the_other(api: Kube) -> None:
    made = api.made(ANN, NEWER, event("both"))
    assert (made["apiVersion"], made["note"]) == ("events.k8s.io/v1", "It begins")

    old = api.ask(ANN, "GET", f"{OLDER}/both").body
    assert (old["apiVersion"], old["message"]) == ("v1", "It begins")
    assert old["involvedObject"]["name"] == "web"
    assert old["metadata"]["uid"] == made["metadata"]["uid"]

    about = {"involvedObject": {"namespace": "team-a", "name": "job"}, "message": "Said before"}
    api.made(ANN, OLDER, {**object_of("Event", "older"), **about})
    new = api.ask(ANN, "GET", f"{NEWER}/older").body
    assert (new["regarding"]["name"], new["note"]) == ("job", "Said before")


def test_events_are_selected_by_the_names_of_either_version(api: Kube) -> None:
    api.made(ANN, NEWER, event("chosen", reportingController="chooser", reason="Chosen"))

    for path, field in (
        (NEWER, "reportingController=chooser"),
        (NEWER, "regarding.name=web,reason=Chosen"),
        (OLDER, "source=chooser"),
        (OLDER, "involvedObject.name=web,reason=Chosen"),
        ("/apis/events.k8s.io/v1/events", "reason=Chosen"),
    ):
        said = api.ask("root", "GET", f"{path}?fieldSelector={field}")
        assert names(said.body) == ["chosen"], said.text
    assert api.ask(ANN, "GET", f"{NEWER}?fieldSelector=involvedObject.name=web").code == 400


def test_an_event_is_counted_deleted_and_nothing_else_of_it_changes(api: Kube) -> None:
    api.made(ANN, NEWER, event("life"))
    path = f"{NEWER}/life"
    series = {"count": 2, "lastObservedTime": "2026-11-19T10:01:00.000000Z"}

    patched = api.ask(ANN, "PATCH", path, {"series": series}, **STRATEGIC)
    assert (patched.code, patched.body["series"]) == (200, series), patched.text
    assert api.ask(ANN, "GET", f"{OLDER}/life").body["series"] == series
    updated = api.ask(ANN, "PUT", path, {**patched.body, "series": {**series, "count": 100}})
    assert (updated.code, updated.body["series"]["count"]) == (200, 100), updated.text
    assert updated.body["apiVersion"] == "events.k8s.io/v1"
    again = api.ask(ANN, "PATCH", path, {"note": "Otherwise"}, **MERGE)
    assert (again.code, "message: Invalid value" in again.text) == (422, True), again.text
    gone = api.ask(ANN, "DELETE", path)
    assert (gone.code, gone.body["details"]["group"]) == (200, "events.k8s.io")
    assert api.ask(ANN, "GET", f"{OLDER}/life").code == 404


def test_an_event_that_says_too_little_is_refused(api: Kube) -> None:
    said = api.ask(ANN, "POST", NEWER, event("little", eventTime=None, action=""))

    assert said.code == 422
    assert "eventTime: Required value" in said.body["message"]
    assert api.ask(ANN, "GET", f"{OLDER}/little").code == 404


def test_a_collection_of_events_is_deleted_by_its_label(api: Kube) -> None:
    for name in ("c1", "c2", "c3"):
        made = event(name)
        made["metadata"]["labels"] = {"set": "true"}
        api.made(ANN, NEWER, made)
    assert names(api.ask(ANN, "GET", f"{NEWER}?labelSelector=set=true").body) == ["c1", "c2", "c3"]

    assert api.ask(ANN, "DELETE", f"{NEWER}?labelSelector=set=true").code == 200

    assert names(api.ask(ANN, "GET", f"{OLDER}?labelSelector=set=true").body) == []


def test_a_watch_tells_of_events_as_they_are_asked_for(api: Kube) -> None:
    api.made(ANN, OLDER, _older("seen"))
    found = watched(api.ask(ANN, "GET", f"{NEWER}?watch=true").body)

    said = next(each for each in found if each["object"]["metadata"].get("name") == "seen")
    assert (said["type"], said["object"]["apiVersion"]) == ("ADDED", "events.k8s.io/v1")
    assert said["object"]["regarding"]["name"] == "job"

    version = api.ask(ANN, "GET", NEWER).body["metadata"]["resourceVersion"]
    api.made(ANN, OLDER, _older("next"))
    since = f"{NEWER}?watch=true&resourceVersion={version}"
    (said,) = watched(api.ask(ANN, "GET", since).body)
    assert (said["type"], said["object"]["note"]) == ("ADDED", "Said before")


def _older(name: str) -> JsonObject:
    about = {"involvedObject": {"namespace": "team-a", "name": "job"}, "message": "Said before"}
    labels = {"name": name, "labels": {"is": name}}
    return {"apiVersion": "v1", "kind": "Event", "metadata": labels, **about}


def test_rows_of_both_versions_are_the_same(api: Kube) -> None:
    api.made(ANN, NEWER, event("row"))
    one = api.ask(ANN, "GET", f"{NEWER}?labelSelector=of=row", accept=TABLE).body
    two = api.ask(ANN, "GET", f"{OLDER}?labelSelector=of=row", accept=TABLE).body

    assert one["rows"][0]["cells"][1:] == two["rows"][0]["cells"][1:]
    assert "pod/web" in one["rows"][0]["cells"]


def test_another_team_sees_nothing_through_either_version(api: Kube) -> None:
    api.made(ANN, NEWER, event("secret"))

    for path in (f"{NEWER}/secret", NEWER, f"{NEWER}?watch=true", "/apis/events.k8s.io/v1/events"):
        assert api.ask(BEN, "GET", path).code == 403
    assert api.ask(BEN, "POST", NEWER, event("foreign")).code == 403
    assert api.ask(BEN, "DELETE", f"{NEWER}/secret").code == 403


def test_an_older_autoscaler_is_patched_and_loses_nothing(api: Kube) -> None:
    made = api.made(ANN, V1, autoscaler("web"))
    assert made["spec"]["targetCPUUtilizationPercentage"] == 80
    target = {"type": "AverageValue", "averageValue": "1Gi"}
    memory = {"type": "Resource", "resource": {"name": "memory", "target": target}}
    metrics = [*api.ask(ANN, "GET", f"{V2}/web").body["spec"]["metrics"], memory]
    assert api.ask(ANN, "PATCH", f"{V2}/web", {"spec": {"metrics": metrics}}, **MERGE).code == 200

    patch = {"spec": {"targetCPUUtilizationPercentage": 50, "maxReplicas": 9}}
    patched = api.ask(ANN, "PATCH", f"{V1}/web", patch, **STRATEGIC)

    assert (patched.code, patched.body["apiVersion"]) == (200, "autoscaling/v1"), patched.text
    found = api.ask(ANN, "GET", f"{V2}/web").body
    assert found["spec"]["maxReplicas"] == 9
    cpu, kept = found["spec"]["metrics"]
    assert cpu["resource"]["target"]["averageUtilization"] == 50
    assert kept == memory
    listed = api.ask(ANN, "GET", V1).body
    assert listed["apiVersion"] == "autoscaling/v1"
    most = {each["metadata"]["name"]: each["spec"]["maxReplicas"] for each in listed["items"]}
    assert most["web"] == 9


def test_an_older_autoscaler_is_applied_watched_and_checked(api: Kube) -> None:
    query = "fieldManager=test&force=true"
    said = api.ask(ANN, "PATCH", f"{V1}/applied?{query}", autoscaler("applied"), **APPLY)
    assert (said.code, said.body["apiVersion"]) == (201, "autoscaling/v1"), said.text
    again = api.ask(ANN, "PATCH", f"{V1}/applied?{query}", autoscaler("applied"), **APPLY)
    assert (again.code, again.body["spec"]) == (200, said.body["spec"])
    found = watched(api.ask(ANN, "GET", f"{V1}?watch=true").body)
    versions = {each["object"]["apiVersion"] for each in found}
    assert versions == {"autoscaling/v1"}

    wrong = autoscaler("wrong")
    wrong["spec"]["maxReplicas"] = 0
    assert api.ask(ANN, "POST", V1, wrong).code == 422
    assert api.ask(ANN, "POST", V2, autoscaler("wrong")).code == 400


def test_a_quota_counts_events_whichever_way_they_come(api: Kube) -> None:
    space = "/api/v1/namespaces/team-b"
    quota = {**object_of("ResourceQuota", "few"), "spec": {"hard": {"count/events": "1"}}}
    api.made("root", f"{space}/resourcequotas", quota)
    newer = NEWER.replace("team-a", "team-b")
    there = {"namespace": "team-b", "kind": "Pod", "name": "web"}
    api.made(BEN, newer, event("first", regarding=there))

    assert api.ask(BEN, "POST", newer, event("second", regarding=there)).code == 403
