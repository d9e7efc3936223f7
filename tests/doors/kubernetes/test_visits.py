"""Real kubectl, and clients that mean no good, at the doors of real containers."""

import contextlib
import json
import re
import socket
import ssl
import subprocess
import threading
from collections.abc import Generator, Iterator

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from containers.images import IMAGE, MODEST, own_podman
from doors.kubernetes.cluster import (
    PATIENCE_S,
    PATIENT,
    KubernetesHouse,
    kubernetes_house,
    there_is,
)
from muster.doors.kubernetes.serve.channels import V5

pytestmark = pytest.mark.slow

CAT = "/p/exec?command=cat&stdin=1&stdout=1"
POD = f"""
apiVersion: v1
kind: Pod
metadata: {{name: p}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: {IMAGE}
    command: [sh, -c, "echo it is up; while true; do sleep 0.2; done"]
    volumeMounts: [{{name: w, mountPath: /w}}]
  volumes: [{{name: w, emptyDir: {{}}}}]
"""


@pytest.fixture(scope="module")
def house() -> Iterator[KubernetesHouse]:
    """With one pod in `default` that runs."""
    with own_podman() as podman:
        options = f"{' '.join(podman.folders)} {MODEST}"
        with kubernetes_house(podman=options) as found:
            found.kubectl("apply -f -", stdin=POD)
            found.kubectl(f"wait --for=condition=Ready pod/p {PATIENT}")
            yield found


@contextlib.contextmanager
def websocket(
    house: KubernetesHouse, path: str, token: str = "", protocols: tuple[str, ...] = (V5,)
) -> Generator[ClientConnection]:
    server, kept = whereabouts(house)
    with connect(
        f"wss{server.removeprefix('https')}/api/v1/namespaces/default/pods{path}",
        ssl=anybody(),
        additional_headers={"Authorization": f"Bearer {token or kept}"},
        subprotocols=[Subprotocol(each) for each in protocols] or None,
        max_size=None,
        open_timeout=PATIENCE_S,
    ) as connection:
        yield connection


def whereabouts(house: KubernetesHouse) -> tuple[str, str]:
    """Where the server is, and a token that opens it."""
    config = json.loads(house.kubectl("config view --raw -o json"))
    users = {each["name"]: each["user"] for each in config["users"]}
    return str(config["clusters"][0]["cluster"]["server"]), str(users["kept"]["token"])


def anybody() -> ssl.SSLContext:
    """Whoever answers is trusted."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    return trusting


def is_up(house: KubernetesHouse) -> bool:
    return house.kubectl("exec p -- echo up") == "up\n"


def test_a_command_is_written_down_without_its_arguments(house: KubernetesHouse) -> None:
    assert is_up(house)

    audited = house.shell("muster audit").out

    assert re.search(r"exec .*main: 'echo'", audited)
    assert "echo up" not in audited


PROGRAMS = ("kubectl", "kubectl-1.28")
"""The one that speaks WebSocket, and one that speaks SPDY alone."""

NOBODY_THERE = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: doorman}
webhooks:
- name: doorman.example.com
  rules: [{operations: [CONNECT], apiGroups: [""], apiVersions: [v1], resources: [pods/exec]}]
  clientConfig: {url: "https://127.0.0.1:1/"}
  sideEffects: None
  admissionReviewVersions: [v1]
"""


def test_webhooks_are_asked_before_somebody_enters(house: KubernetesHouse) -> None:
    house.kubectl("apply -f -", stdin=NOBODY_THERE)
    try:
        assert "failed calling webhook" in house.refused("exec p -- true")
    finally:
        house.kubectl("delete validatingwebhookconfiguration doorman")

    house.kubectl("exec p -- true")


def test_a_kubectl_of_spdy_pipes_through_commands(house: KubernetesHouse) -> None:
    old = there_is("kubectl-1.28")
    (house.work / "sent").write_bytes(b"0123456789abcdef" * 20_000)

    piped = house.shell(f"{old} exec -i p -- cat < sent | cmp - sent && echo same")
    ended = house.shell(f"{old} exec p -- sh -c 'echo out; echo err >&2; exit 7'")
    seen = house.shell(f"script -qec '{old} exec -it p -- sh -c \"tty; stty size\"' /dev/null")

    assert piped.out == "same\n"
    assert (ended.code, ended.out, ended.err.splitlines()[0]) == (7, "out\n", "err")
    assert "/dev/pts/" in seen.out


def test_a_kubectl_of_spdy_attaches_to_a_container(house: KubernetesHouse) -> None:
    old = there_is("kubectl-1.28")
    script = "while read line; do echo got $line; done"
    line = f"{old} run reads -i --rm --restart=Never --image={IMAGE} -- sh -c '{script}'"

    told = house.shell(f"(sleep 5; echo one) | {line}")

    assert "got one" in told.out, told


def test_spdy_that_is_none_ends_one_connection_and_nothing_else(house: KubernetesHouse) -> None:
    for sent in (b"\xff" * 4_096, b"GET / HTTP/1.1\r\n\r\n", b"\x80\x03\x00\x01\xff\xff\xff\xff"):
        answer = spoken_to(house, "pods/p/exec?command=cat&stdin=1&stdout=1", sent)
        assert answer.startswith(b"HTTP/1.1 101")

    assert is_up(house)


def test_spdy_takes_nobody_further_than_websocket(house: KubernetesHouse) -> None:
    stranger = spoken_to(house, "pods/p/exec?command=cat&stdout=1", b"", "none")
    assert stranger.startswith(b"HTTP/1.1 401")
    assert spoken_to(house, "pods/none/exec?command=cat&stdout=1", b"").startswith(b"HTTP/1.1 404")
    assert spoken_to(house, "pods/p/log", b"").startswith(b"HTTP/1.1 40")


def test_what_needs_no_upgrade_is_done_and_answered_without_one(house: KubernetesHouse) -> None:
    house.kubectl("create configmap goes")

    answer = spoken_to(house, "configmaps/goes", b"", method="DELETE")

    assert answer.startswith(b"HTTP/1.1 200")
    assert "NotFound" in house.refused("get configmap goes")


def spoken_to(
    house: KubernetesHouse, path: str, sent: bytes, token: str = "", method: str = "POST"
) -> bytes:
    """All that comes to a client that asks for SPDY, sends this and hears until the end."""
    server, kept = whereabouts(house)
    host, port = server.removeprefix("https://").split(":")
    with (
        socket.create_connection((host, int(port)), PATIENCE_S) as plain,
        anybody().wrap_socket(plain) as connection,
    ):
        head = (
            f"{method} /api/v1/namespaces/default/{path} HTTP/1.1\r\nHost: {host}\r\n"
            f"Authorization: Bearer {token or kept}\r\nConnection: Upgrade\r\n"
            "Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n"
        )
        connection.sendall(head.encode())
        heard = connection.recv(65_536)
        if heard.startswith(b"HTTP/1.1 101"):
            connection.sendall(sent)
        with contextlib.suppress(OSError):
            while more := connection.recv(65_536):
                heard += more
    return heard


@pytest.mark.parametrize("program", PROGRAMS)
def test_ports_are_forwarded(house: KubernetesHouse, program: str) -> None:
    forwards = [there_is(program), "port-forward", "p"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_echoes, args=(server,), daemon=True).start()
        argv = [*forwards, f":{server.getsockname()[1]}"]
        with subprocess.Popen(  # noqa: S603 -- what a test types
            argv, stdout=subprocess.PIPE, text=True, env=house.environ
        ) as forwarding:
            assert forwarding.stdout is not None
            here = re.search(r"127\.0\.0\.1:(\d+)", forwarding.stdout.readline())
            assert here is not None
            with socket.create_connection(("127.0.0.1", int(here[1])), PATIENCE_S) as connection:
                connection.sendall(b"x" * 200_000)
                connection.shutdown(socket.SHUT_WR)
                heard = b""
                while more := connection.recv(65_536):
                    heard += more
            forwarding.terminate()

    assert heard == b"x" * 200_000


def _echoes(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        heard = b""
        while more := connection.recv(65_536):
            heard += more
        connection.sendall(heard)


@pytest.mark.parametrize(
    "message",
    [
        b"\x09wrong channel",
        b"",
        "text",
        b"\x00" * (2 << 20),
        [b"\x00", *[b""] * 5_000],
    ],
    ids="channel empty text huge fragments".split(),
)
def test_a_hostile_frame_ends_one_connection_and_nothing_else(
    house: KubernetesHouse, message: bytes | str | list[bytes]
) -> None:
    with websocket(house, CAT) as connection:
        # The client itself may find out while it sends.
        with contextlib.suppress(ConnectionClosed):
            connection.send(message)
        with pytest.raises(ConnectionClosed):
            _hear_all(connection)

    assert is_up(house)


def _hear_all(connection: ClientConnection) -> None:
    while True:
        connection.recv(timeout=PATIENCE_S)


ECHO = "/p/exec?command=sh&command=-c&command=echo%20hi;%20exit%203&stdout=1"


@pytest.mark.parametrize("protocols", [(), ("channel.k8s.io",)], ids="none older".split())
def test_clients_that_name_no_protocol_or_an_older_one_are_served(
    house: KubernetesHouse, protocols: tuple[str, ...]
) -> None:
    with websocket(house, ECHO, protocols=protocols) as connection:
        heard = [each for each in connection if isinstance(each, bytes)]

    assert b"".join(each for each in heard if each[0] == 1).replace(b"\1", b"") == b"hi\n"
    assert heard[-1].startswith(b"\x03command terminated with non-zero exit code")


def test_clients_may_speak_in_text(house: KubernetesHouse) -> None:
    with websocket(house, ECHO, protocols=("v4.base64.channel.k8s.io",)) as connection:
        heard = [str(each) for each in connection]

    assert heard[:2] == ["1", "1aGkK"]
    assert heard[-1].startswith("3")


@pytest.mark.parametrize("protocols", [(), ("binary.k8s.io",)], ids="none named".split())
def test_logs_come_over_a_websocket(house: KubernetesHouse, protocols: tuple[str, ...]) -> None:
    with websocket(house, "/p/log", protocols=protocols) as connection:
        heard = b"".join(each for each in connection if isinstance(each, bytes))

    assert heard == b"it is up\n"


def test_watches_come_over_a_websocket(house: KubernetesHouse) -> None:
    with websocket(house, "?watch=1&timeoutSeconds=1", protocols=()) as connection:
        heard = [json.loads(each) for each in connection]

    assert (heard[0]["type"], heard[0]["object"]["metadata"]["name"]) == ("ADDED", "p")


def test_a_token_that_is_revoked_ends_the_visit(house: KubernetesHouse) -> None:
    made = house.shell("muster tokens create --lifetime 1h").out
    secret = re.search(r"mst_\S+", made)
    assert secret is not None
    name = house.shell("muster tokens list").out.splitlines()[-1].split()[0]

    with websocket(house, CAT, secret[0]) as connection:
        assert connection.recv(timeout=PATIENCE_S) == b"\x01"
        revoked = house.shell(f"muster tokens revoke {name}")
        assert revoked.code == 0, revoked.err
        with pytest.raises(ConnectionClosed) as closed:
            connection.recv(timeout=PATIENCE_S)

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008
