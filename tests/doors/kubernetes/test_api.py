"""What the API answers, asked in this process: no kubectl, no pod that runs."""

import json
import ssl
from base64 import b64encode
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from hostile.people import until
from hostile.teams import ANN, Kube, kube, object_of, pod
from muster.doors.kubernetes.objects.value import JsonObject
from muster.doors.kubernetes.serve.keys import open_keys

TEAM = "/api/v1/namespaces/team-a"
NETWORKING = "/apis/networking.k8s.io/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
JSON_PATCH = "application/json-patch+json"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with kube(tmp_path_factory.mktemp("home")) as made:
        yield made


def test_a_token_says_of_which_pod_it_is(api: Kube) -> None:
    api.made("root", f"{TEAM}/serviceaccounts", object_of("ServiceAccount", "reader"))
    uid = api.made(ANN, f"{TEAM}/pods", pod("asks"))["metadata"]["uid"]
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "asks"}
    path = f"{TEAM}/serviceaccounts/reader/token"
    token = api.made("root", path, {"spec": {"boundObjectRef": bound}})["status"]["token"]

    review = api.made("root", REVIEWS, {"spec": {"token": token}})

    extra = review["status"]["user"]["extra"]
    assert extra["authentication.kubernetes.io/pod-name"] == ["asks"]
    assert extra["authentication.kubernetes.io/pod-uid"] == [uid]


@pytest.mark.parametrize(
    ("account", "own", "is_there"),
    [
        ({}, {}, True),
        ({"automountServiceAccountToken": False}, {}, False),
        ({"automountServiceAccountToken": False}, {"automountServiceAccountToken": True}, True),
        ({"automountServiceAccountToken": True}, {"automountServiceAccountToken": False}, False),
    ],
    ids=range(4),
)
def test_a_token_is_mounted_unless_the_pod_or_else_its_account_says_no(
    api: Kube, account: JsonObject, own: JsonObject, is_there: bool, request: Any
) -> None:
    name = f"mounts-{request.node.callspec.id}"
    api.made("root", f"{TEAM}/serviceaccounts", object_of("ServiceAccount", name, **account))

    made = api.made(ANN, f"{TEAM}/pods", pod(name, serviceAccountName=name, **own))

    assert bool(made["spec"]["containers"][0].get("volumeMounts")) is is_there


def test_services_have_a_range_from_which_their_addresses_are(api: Kube) -> None:
    found = api.ask("root", "GET", f"{NETWORKING}/servicecidrs/kubernetes")

    assert found.body["spec"] == {"cidrs": ["127.0.0.0/8"]}


def test_addresses_are_named_as_they_are_written(api: Kube) -> None:
    def address(name: str) -> JsonObject:
        parent = {"parentRef": {"resource": "services", "name": "s"}}
        about = {"apiVersion": "networking.k8s.io/v1", "spec": parent}
        return {**object_of("IPAddress", name), **about}

    api.made("root", f"{NETWORKING}/ipaddresses", address("fe80::42:1dff:fe84:f9e2"))

    path = f"{NETWORKING}/ipaddresses"
    assert api.ask("root", "GET", f"{path}/fe80::42:1dff:fe84:f9e2").code == 200
    said = api.ask("root", "POST", path, address("fe80::0:1"))
    assert 'must be in canonical form ("fe80::1")' in said.body["message"]
    assert api.ask("root", "POST", path, address("here")).code == 422


def test_a_quota_counts_ports_of_nodes_and_controllers(api: Kube) -> None:
    hard = {"services": "10", "services.nodeports": "1", "replicationcontrollers": "10"}
    api.made("root", f"{TEAM}/resourcequotas", object_of("ResourceQuota", "q", spec={"hard": hard}))

    def service(name: str, kind: str) -> JsonObject:
        return object_of("Service", name, spec={"type": kind, "ports": [{"port": 80}]})

    api.made("root", f"{TEAM}/services", service("plain", "ClusterIP"))
    api.made("root", f"{TEAM}/services", service("node", "NodePort"))
    said = api.ask("root", "POST", f"{TEAM}/services", service("balanced", "LoadBalancer"))

    assert said.code == 403
    used = until(
        lambda: api.ask("root", "GET", f"{TEAM}/resourcequotas/q").body.get("status", {}),
        lambda status: status.get("used", {}).get("services") == "2",
    )["used"]
    assert used == {"services": "2", "services.nodeports": "1", "replicationcontrollers": "0"}


@contextmanager
def answering(folder: Path, answer: Callable[[JsonObject], JsonObject]) -> Generator[JsonObject]:
    """A webhook that answers so: how it is reached."""
    keys = open_keys(folder, "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keys.certificate, keys.key)

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            given = self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps(answer(json.loads(given))).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"https://127.0.0.1:{server.server_port}/"
            yield {"url": url, "caBundle": b64encode(keys.ca).decode()}
        finally:
            server.shutdown()
            thread.join()


def definition(plural: str, **schema: Any) -> JsonObject:
    version = {"name": "v1", "served": True, "storage": True}
    whole: JsonObject = {"type": "object", **schema}
    kind = plural.rstrip("s").capitalize()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": plural, "kind": kind, "singular": kind.lower()},
            "versions": [{**version, "schema": {"openAPIV3Schema": whole}}],
        },
    }


def test_others_may_say_how_a_definition_is(api: Kube) -> None:
    made = api.made("root", DEFINITIONS, definition("boats"))
    path = f"{DEFINITIONS}/boats.example.com/status"
    made["status"]["conditions"].append({"message": "updated"})

    updated = api.ask("root", "PUT", path, made).body
    patch = [{"op": "add", "path": "/status/conditions", "value": [{"message": "patched"}]}]
    patched = api.ask("root", "PATCH", path, patch, content_type=JSON_PATCH).body

    assert "updated" in [each["message"] for each in updated["status"]["conditions"]]
    assert "patched" in [each["message"] for each in patched["status"]["conditions"]]


def test_defaults_that_come_later_are_shown_of_what_was_there(api: Kube) -> None:
    fields = {"a": {"type": "string"}, "b": {"type": "string"}}
    api.made("root", DEFINITIONS, definition("cars", properties=fields))
    crs, about = "/apis/example.com/v1/cars", {"apiVersion": "example.com/v1"}
    api.made("root", crs, {**object_of("Car", "old"), **about})
    place = "/spec/versions/0/schema/openAPIV3Schema/properties/a/default"

    patch = [{"op": "add", "path": place, "value": "A"}]
    path = f"{DEFINITIONS}/cars.example.com"
    assert api.ask("root", "PATCH", path, patch, content_type=JSON_PATCH).code == 200

    assert api.ask("root", "GET", f"{crs}/old").body["a"] == "A"
    assert [each["a"] for each in api.ask("root", "GET", crs).body["items"]] == ["A"]
    api.made("root", crs, {**object_of("Car", "new"), **about})
    patch = [{"op": "remove", "path": place}]
    assert api.ask("root", "PATCH", path, patch, content_type=JSON_PATCH).code == 200
    assert "a" not in api.ask("root", "GET", f"{crs}/old").body
    assert api.ask("root", "GET", f"{crs}/new").body["a"] == "A"


def two_versions(plural: str, **more: Any) -> JsonObject:
    """Of which the second is not the one in which objects are kept."""
    made = definition(plural)
    (first,) = made["spec"]["versions"]
    fields = {"host": {"type": "string"}, "port": {"type": "string"}}
    first["schema"]["openAPIV3Schema"]["properties"] = {"hostPort": {"type": "string"}, **fields}
    second = {**first, "name": "v2", "storage": False}
    made["spec"]["versions"] = [first, {**second, "selectableFields": [{"jsonPath": ".host"}]}]
    made["spec"] |= more
    return made


def test_objects_are_of_the_version_that_is_asked_for(api: Kube) -> None:
    api.made("root", DEFINITIONS, two_versions("vans"))
    about = {"apiVersion": "example.com/v1", "host": "a"}
    api.made("root", "/apis/example.com/v1/vans", {**object_of("Van", "old"), **about})
    second = "/apis/example.com/v2/vans"

    assert api.ask("root", "GET", f"{second}/old").body["apiVersion"] == "example.com/v2"
    listed = api.ask("root", "GET", second).body["items"]
    assert [each["apiVersion"] for each in listed] == ["example.com/v2"]
    merge = {"content_type": "application/merge-patch+json"}
    patched = api.ask("root", "PATCH", f"{second}/old", {"host": "b"}, **merge)
    assert (patched.code, patched.body["apiVersion"]) == (200, "example.com/v2")


def test_selectors_may_name_fields_that_a_definition_says(api: Kube) -> None:
    api.made("root", DEFINITIONS, two_versions("trams"))
    path, about = "/apis/example.com/v2/trams", {"apiVersion": "example.com/v2"}
    api.made("root", path, {**object_of("Tram", "one"), **about, "host": "a"})
    api.made("root", path, {**object_of("Tram", "two"), **about, "host": "b"})

    listed = api.ask("root", "GET", f"{path}?fieldSelector=host=a").body["items"]
    wrong = api.ask("root", "GET", f"{path}?fieldSelector=port=1")

    assert [each["metadata"]["name"] for each in listed] == ["one"]
    assert (wrong.code, wrong.body["message"]) == (400, "field label not supported: port")


def test_a_webhook_says_how_objects_are_in_other_versions(api: Kube, tmp_path: Path) -> None:
    def answered(review: JsonObject) -> JsonObject:
        (obj,) = review["request"]["objects"]
        host, _, port = obj["hostPort"].partition(":")
        new = {name: each for name, each in obj.items() if name != "hostPort"}
        new |= {"apiVersion": review["request"]["desiredAPIVersion"], "host": host, "port": port}
        response = {"uid": review["request"]["uid"], "convertedObjects": [new]}
        return {**review, "response": {**response, "result": {"status": "Success"}}}

    with answering(tmp_path, answered) as config:
        webhook = {"clientConfig": config, "conversionReviewVersions": ["v1"]}
        conversion = {"strategy": "Webhook", "webhook": webhook}
        api.made("root", DEFINITIONS, two_versions("buses", conversion=conversion))
        about = {"apiVersion": "example.com/v1", "hostPort": "here:80"}
        path = "/apis/example.com/v2/buses"
        api.made("root", "/apis/example.com/v1/buses", {**object_of("Buse", "b"), **about})

        found = api.ask("root", "GET", f"{path}/b").body
        selected = api.ask("root", "GET", f"{path}?fieldSelector=host=here").body["items"]

    assert (found["host"], found["port"], "hostPort" in found) == ("here", "80", False)
    assert found["metadata"]["uid"]
    assert selected == [found]
    said = api.ask("root", "GET", f"{path}/b")
    assert (said.code, said.body["reason"]) == (500, "InternalError")
    assert said.body["message"].startswith(
        "conversion webhook for example.com/v1, Kind=Buse failed"
    )


def test_an_account_may_be_named_with_its_uid_and_with_no_other(api: Kube) -> None:
    path = f"{TEAM}/serviceaccounts"
    uid = api.made("root", path, object_of("ServiceAccount", "named"))["metadata"]["uid"]
    name = "system:serviceaccount:team-a:named"

    def asked(uid: str) -> int:
        whom = {"impersonate_user": name, "impersonate_uid": uid}
        return api.ask("root", "GET", f"{TEAM}/configmaps", None, **whom).code

    assert asked(uid) == 403
    assert asked("0") == 400
