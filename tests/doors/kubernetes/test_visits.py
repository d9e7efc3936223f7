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
from doors.kubernetes.cluster import KubernetesHouse, kubernetes_house
from muster.doors.kubernetes.serve.channels import V5

pytestmark = pytest.mark.slow

WAITS_S = 30.0
CAT = "exec?command=cat&stdin=1&stdout=1"
POD = f"""
apiVersion: v1
kind: Pod
metadata: {{name: p}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: {IMAGE}
    command: [sh, -c, "while true; do sleep 0.2; done"]
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
            found.kubectl("wait --for=condition=Ready pod/p --timeout=60s")
            yield found


@contextlib.contextmanager
def websocket(house: KubernetesHouse, path: str, token: str = "") -> Generator[ClientConnection]:
    config = json.loads(house.kubectl("config view --raw -o json"))
    server = str(config["clusters"][0]["cluster"]["server"])
    users = {each["name"]: each["user"] for each in config["users"]}
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    with connect(
        f"wss{server.removeprefix('https')}/api/v1/namespaces/default/pods/p/{path}",
        ssl=anybody,
        additional_headers={"Authorization": f"Bearer {token or users['kept']['token']}"},
        subprotocols=[Subprotocol(V5)],
        max_size=None,
    ) as connection:
        yield connection


def is_up(house: KubernetesHouse) -> bool:
    return house.kubectl("exec p -- echo up") == "up\n"


def test_a_command_is_written_down_without_its_arguments(house: KubernetesHouse) -> None:
    assert is_up(house)

    audited = house.shell("muster audit").out

    assert re.search(r"exec .*main: 'echo'", audited)
    assert "echo up" not in audited


def test_ports_are_forwarded(house: KubernetesHouse) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        threading.Thread(target=_echoes, args=(server,), daemon=True).start()
        argv = ["kubectl", "port-forward", "p", f":{port}"]
        with subprocess.Popen(  # noqa: S603 -- what a test types
            argv, stdout=subprocess.PIPE, text=True, env=house.environ
        ) as forwarding:
            assert forwarding.stdout is not None
            here = re.search(r"127\.0\.0\.1:(\d+)", forwarding.stdout.readline())
            assert here is not None
            with socket.create_connection(("127.0.0.1", int(here[1])), WAITS_S) as connection:
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
        connection.recv(timeout=WAITS_S)


def test_a_token_that_is_revoked_ends_the_visit(house: KubernetesHouse) -> None:
    made = house.shell("muster tokens create --lifetime 1h").out
    secret = re.search(r"mst_\S+", made)
    assert secret is not None
    name = house.shell("muster tokens list").out.splitlines()[-1].split()[0]

    with websocket(house, CAT, secret[0]) as connection:
        assert connection.recv(timeout=WAITS_S) == b"\x01"
        revoked = house.shell(f"muster tokens revoke {name}")
        assert revoked.code == 0, revoked.err
        with pytest.raises(ConnectionClosed) as closed:
            connection.recv(timeout=WAITS_S)

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008


def test_an_upgrade_to_spdy_alone_says_what_to_do(house: KubernetesHouse) -> None:
    older = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false"}
    settings = " ".join(f"{name}={value}" for name, value in older.items())

    ran = house.shell(f"{settings} kubectl exec p -- echo hi")

    assert ran.code == 1
    assert "use kubectl 1.31 or newer" in ran.err
