"""What other clusters, their users and our jobs there say and do stops nobody else's work here."""

import contextlib
import json
import os
import threading
import time
import tracemalloc
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve
from websockets.typing import Subprotocol

from hostile.people import until
from muster.app.extender import Extender, extender_app
from muster.backends.fleet import Taken
from muster.backends.kubernetes.client import (
    Client,
    KubernetesDownError,
    KubernetesRefusedError,
)
from muster.backends.kubernetes.kubeconfig import Access, BadKubeconfigError, access_of
from muster.backends.kubernetes.mirror import Mirror
from muster.backends.kubernetes.pods import Pod, Stage
from muster.backends.kubernetes.signals import Signals

MIB = 1_024 * 1_024
PROTOCOL = Subprotocol("v4.channel.k8s.io")
PODS = "/api/v1/pods"


# A signal is a command in a container, and what that runs is its user's.


@contextmanager
def a_container(*, writes: bool) -> Generator[Client]:
    """Whatever is run in it does not end."""
    ending = threading.Event()

    def run(connection: ServerConnection) -> None:
        try:
            while not ending.is_set():
                if writes:
                    connection.send(b"\x01" + b"x" * 60_000)
                else:
                    ending.wait(0.1)
        except ConnectionClosed:
            pass

    with serve(run, "127.0.0.1", 0, subprotocols=[PROTOCOL], compression=None) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.socket.getsockname()[1]
        client = Client(Access(server=f"http://127.0.0.1:{port}"), command_s=1)
        try:
            yield client
        finally:
            ending.set()
            client.close()
            server.shutdown()


@pytest.mark.parametrize("writes", [True, False], ids=["that writes", "that is silent"])
def test_a_command_that_does_not_end_is_given_up(writes: bool) -> None:
    with a_container(writes=writes) as client:
        tracemalloc.start()
        began = time.monotonic()
        with pytest.raises(KubernetesRefusedError, match="did not end"):
            client.run_inside(f"{PODS}/a", "job", ("/bin/sh", "-c", "kill -10 1"))
        took_s, (_, peak) = time.monotonic() - began, tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert took_s < 20
    assert peak < 16 * MIB


def test_signals_that_hang_keep_nobody_waiting() -> None:
    with a_container(writes=False) as client:
        signals = Signals(client)
        began = time.monotonic()
        for _ in range(50):
            for name in ("a", "b", "c"):
                signals.send(pod(name), 10, first_only=True)
        assert time.monotonic() - began < 2
        signals.close()


# What answers may be a proxy, or out of its mind.


class Server:
    """Answers each question with the next of these bodies, and then with an empty list for ever."""

    def __init__(self, *bodies: bytes) -> None:
        self.left = list(bodies)
        self.asked = 0
        whole = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                whole.asked += 1
                body = whole.left.pop(0) if whole.left else EMPTY
                if b"watch" in self.path.encode() and not whole.left:
                    body = b""
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                del format, args

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        port = self._server.server_address[1]
        self.client = Client(Access(server=f"http://127.0.0.1:{port}"))

    def close(self) -> None:
        self.client.close()
        self._server.shutdown()
        self._server.server_close()


def listed(*names: Any) -> bytes:
    items = [{"metadata": {"uid": each}} for each in names]
    return json.dumps({"items": items, "metadata": {"resourceVersion": "7"}}).encode()


EMPTY = listed()
DEEP = b"[" * 100_000
NONSENSE = (
    b"<html>Please log in</html>",
    b"[]",
    b"null",
    b"7",
    b"{}",
    b'{"metadata": null, "items": null}',
    DEEP,
    b'{"items": [7, null, {"metadata": 3}], "metadata": {"resourceVersion": "1"}}',
)
EVENTS = (
    b'{"type": "ADDED"}\n',
    b'{"object": {}}\n',
    b'{"type": "ADDED", "object": {}}\n',
    b'{"type": "ADDED", "object": null}\n',
    b'{"type": "ADDED", "object": {"metadata": {"resourceVersion": "8"}}}\n',
    b'{"type": "ERROR", "object": {"code": "x"}}\n',
    b"7\n",
    b"<html>\n",
    DEEP + b"\n",
)


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    made: list[Server] = []
    yield made
    for each in made:
        each.close()


@pytest.mark.parametrize("body", NONSENSE, ids=lambda body: body[:20].decode())
def test_a_list_that_makes_no_sense_is_no_answer(servers: list[Server], body: bytes) -> None:
    servers.append(Server(body))
    mirror = mirrored(servers[0])

    with contextlib.suppress(KubernetesDownError):
        mirror.fill()

    assert mirror.all() == []


@pytest.mark.parametrize("body", EVENTS, ids=lambda body: body[:40].decode())
def test_what_happens_without_sense_ends_nobody_who_watches(
    servers: list[Server], body: bytes
) -> None:
    servers.append(Server(listed("first"), body, listed("second"), listed("second")))
    mirror = mirrored(servers[0])
    mirror.start()

    until(lambda: servers[0].asked, lambda count: count >= 4)
    mirror.close()


def test_what_a_cluster_says_is_one_short_line(servers: list[Server]) -> None:
    servers.append(Server(b"\x1b[2J\n" * 10_000))

    with pytest.raises(KubernetesDownError) as caught:
        servers[0].client.get(PODS)

    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1_000


def mirrored(server: Server) -> Mirror[str]:
    return Mirror(server.client, PODS, lambda found: found["metadata"]["uid"], lambda: None)


def pod(name: str) -> Pod:
    return Pod(namespace="default", name=name, uid=name, stage=Stage.RUNS, node=None, holds=Taken())


# What says who we are there, and with what.

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root runs what others could write")

KUBECONFIG = """
current-context: lab
contexts: [{name: lab, context: {cluster: lab, user: me}}]
clusters: [{name: lab, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {exec: {command: touch, args: [/tmp/owned]}}}]
"""


@needs_root
@pytest.mark.parametrize(
    "how", ["their file", "written by all", "their folder", "a link of theirs"]
)
def test_what_others_can_change_is_not_obeyed_as_root(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "kube"
    folder.mkdir(mode=0o755)
    path = folder / "config"
    path.write_text(KUBECONFIG)
    path.chmod(0o600)
    assert access_of(path).program is not None
    match how:
        case "their file":
            os.chown(path, 65_534, 65_534)
        case "written by all":
            path.chmod(0o666)
        case "their folder":
            os.chown(folder, 65_534, 65_534)
        case _:
            theirs = tmp_path / "theirs"
            theirs.mkdir()
            os.chown(theirs, 65_534, 65_534)
            (theirs / "config").symlink_to(path)
            path = theirs / "config"

    with pytest.raises(BadKubeconfigError, match="run as root"):
        access_of(path)


# kube-scheduler asks `muster extender`, and so can everybody who reaches it.


def test_questions_to_the_extender_are_bounded(servers: list[Server]) -> None:
    servers.append(Server())
    with TestClient(extender_app(Extender(servers[0].client))) as asker:
        for body in (b"{" + b'"a":{' * 100_000, b"[]", b'{"Pod": {"spec": 7}}', b'{"Pod": {}}'):
            assert asker.post("/filter", content=body).status_code in {200, 400}
        odd = {
            "Pod": {"status": {"containerStatuses": [{"state": {"running": {"startedAt": "x"}}}]}}
        }
        assert asker.post("/prioritize", json=odd).status_code == 400
        long = asker.post("/filter", content=(b" " * MIB for _ in range(130)))
        assert long.status_code == 413
