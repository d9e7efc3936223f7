"""Webhooks that do not mean well: nobody who writes an object waits for them for ever."""

import contextlib
import socket
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hostile.teams import Kube, kube, object_of
from muster.doors.kubernetes.objects.value import JsonObject
from muster.doors.kubernetes.serve.keys import open_keys

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MAPS = "/api/v1/namespaces/team-a/configmaps"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/team-a/endpointslices"
TIMEOUT_S = 1
PATIENCE_S = 10.0


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with kube(tmp_path_factory.mktemp("home")) as made:
        yield made


def hook(config: JsonObject, **more: Any) -> JsonObject:
    rule = {
        "operations": ["CREATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["configmaps"],
    }
    webhook = {
        "name": "slow.example.com",
        "rules": [rule],
        "clientConfig": config,
        "timeoutSeconds": TIMEOUT_S,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "slow"},
        "webhooks": [webhook],
    }


@contextmanager
def configured(api: Kube, config: JsonObject) -> Generator[None]:
    api.made("root", HOOKS, hook(config))
    try:
        yield
    finally:
        assert api.ask("root", "DELETE", f"{HOOKS}/slow").code == 200


@contextmanager
def dripping(folder: Path, *, drips: bytes) -> Generator[JsonObject]:
    """A server whose answer never ends: how it is reached, as a webhook."""
    keys = open_keys(folder, "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keys.certificate, keys.key)
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                plain, _ = listening.accept()
                with context.wrap_socket(plain, server_side=True) as secure:
                    secure.recv(65_536)
                    while not ended.wait(0.05):
                        secure.sendall(drips)

        thread = threading.Thread(target=serve)
        thread.start()
        port = listening.getsockname()[1]
        try:
            yield {"url": f"https://127.0.0.1:{port}/", "caBundle": b64encode(keys.ca).decode()}
        finally:
            ended.set()
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize(
    "drips", [b"H", b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n{"], ids=["head", "body"]
)
def test_an_answer_that_comes_in_drips_is_given_up_in_time(
    api: Kube, tmp_path: Path, drips: bytes
) -> None:
    with dripping(tmp_path, drips=drips) as config, configured(api, config):
        begins = time.monotonic()
        said = api.ask("root", "POST", MAPS, object_of("ConfigMap", "waits"))
        took = time.monotonic() - begins

    assert said.code == 500
    assert "deadline exceeded" in said.text, said.text
    assert took < TIMEOUT_S + PATIENCE_S


@pytest.mark.parametrize(
    "endpoints", [[{"addresses": []}], [{}], [{"addresses": ["10.0.0.1"], "conditions": {}}]]
)
def test_whoever_writes_the_endpoints_of_a_webhook_breaks_no_server(
    api: Kube, endpoints: list[JsonObject]
) -> None:
    service = object_of("Service", "hooks", spec={"ports": [{"port": 443}]})
    service["spec"]["selector"] = {"app": "x"}
    api.ask("root", "POST", "/api/v1/namespaces/team-a/services", service)
    ports = [{"port": 443, "protocol": "TCP"}]
    sliced = object_of("EndpointSlice", "hooks", endpoints=endpoints, ports=ports)
    sliced |= {"apiVersion": "discovery.k8s.io/v1", "addressType": "IPv4"}
    sliced["metadata"]["labels"] = {"kubernetes.io/service-name": "hooks"}
    api.ask("root", "POST", SLICES, sliced)

    config = {"service": {"name": "hooks", "namespace": "team-a"}}
    with configured(api, config):
        said = api.ask("root", "POST", MAPS, object_of("ConfigMap", "waits"))

    assert "failed calling webhook" in said.text, said.text
    api.ask("root", "DELETE", f"{SLICES}/hooks")


@pytest.mark.parametrize(
    ("config", "more"),
    [
        ({"url": "https://127.0.0.1:99999/"}, {}),
        ({"url": "file:///etc/shadow"}, {}),
        ({"url": "http://127.0.0.1/"}, {}),
        ({}, {}),
        ({"service": {"name": "x"}}, {}),
        ({"url": "https://127.0.0.1/"}, {"timeoutSeconds": 3_600}),
        ({"url": "https://127.0.0.1/"}, {"timeoutSeconds": 0}),
        ({"url": "https://127.0.0.1/"}, {"name": ""}),
    ],
    ids=repr,
)
def test_a_webhook_that_cannot_be_called_is_refused(
    api: Kube, config: JsonObject, more: JsonObject
) -> None:
    said = api.ask("root", "POST", f"{HOOKS}?dryRun=All", hook(config, **more))

    assert said.code == 422, said.text


pytestmark = pytest.mark.slow
