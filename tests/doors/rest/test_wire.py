import http.client
import json
import os
import pwd
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from doors.rest.running import Daemon
from muster import Client, LostAnswerError
from muster.api.site import Problem
from muster.doors.rest.serve import CannotServeError, Tcp, tcp_socket, unix_socket


class Connection(http.client.HTTPConnection):
    """The library's own client, over a unix socket: nothing of ours on this side."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=30)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(str(self._path))


@pytest.fixture
def wire(daemon: Daemon) -> Iterator[Connection]:
    connection = Connection(daemon.socket)
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("asked", "body", "status", "words"),
    [
        ("GET /v1/nothing", None, 404, "There is nothing at /v1/nothing"),
        ("PUT /v1/jobs", None, 405, "GET or POST"),
        ("POST /v1/jobs", "{", 400, "truncated"),
        ("POST /v1/jobs", '{"comand": ["x"]}', 400, "did you mean `command`?"),
        ("POST /v1/jobs", '{"groups": [{"gpu": 1}]}', 400, "groups[0]: there is no field"),
        ("POST /v1/jobs", '{"command": "x"}', 400, "command: Expected `array`, got `str`"),
        ("POST /v1/jobs", "{}", 400, "command: say what to run"),
        ("POST /v1/jobs", '{"command": ["x"], "time": "soon"}', 400, "time: `soon`"),
        ("POST /v1/jobs/actions", '{"action": "eat", "ids": [1]}', 400, "`eat` must be one of"),
        ("POST /v1/jobs/1/signal", '{"signal": "LOUD"}', 400, "signal: `LOUD`"),
        ("POST /v1/rehearsals", "{}", 400, "exactly one"),
        ("PUT /v1/site", '{"text": "queues: ["}', 400, "line 2"),
        ("GET /v1/jobs?lmit=3", None, 400, "did you mean `limit`?"),
        ("GET /v1/jobs?limit=x", None, 400, "limit: `x`"),
        ("GET /v1/jobs?limit=0", None, 400, "limit: 0 is out of bounds"),
        ("GET /v1/jobs?state=lost", None, 400, "state: `lost` must be one of"),
        ("GET /v1/jobs?after=ended:rubbish", None, 404, "page"),
        ("GET /v1/jobs/7/log?stream=side", None, 400, "stream: `side`"),
        ("GET /v1/jobs/123456789012345678901234567890", None, 404, "There is no job"),
        ("GET /v1/jobs?id=123456789012345678901234567890", None, 400, "whole number"),
        ("GET /v1/events?after=-1", None, 400, "out of bounds"),
        ("POST /v1/jobs/actions", '{"action": "cancel", "ids": [' + "9" * 30 + "]}", 400, "ids"),
        ("POST /v1/jobs", '{"strange": ' + "[" * 100_000, 400, "no field `strange`"),
        ("GET /v1/nodes/nowhere", None, 404, "no node nowhere"),
        ("GET /v1/queues/a/b", None, 404, "no queue a/b"),
    ],
)
def test_what_cannot_be_understood_is_answered_with_what_can(
    wire: Connection, asked: str, body: str | None, status: int, words: str
) -> None:
    method, path = asked.split()
    wire.request(method, path, body)
    answer = wire.getresponse()
    problem = msgspec.json.decode(answer.read(), type=Problem)

    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    assert words in problem.text


def test_a_request_that_is_too_large_is_not_read(wire: Connection) -> None:
    wire.putrequest("POST", "/v1/jobs")
    wire.putheader("content-length", str(9 * 1024 * 1024))
    wire.endheaders()

    answer = wire.getresponse()

    assert answer.status == 413
    assert msgspec.json.decode(answer.read(), type=Problem).kind == "too_large"


def test_a_request_in_pieces_that_grows_too_large_is_not_kept(wire: Connection) -> None:
    wire.putrequest("POST", "/v1/jobs")
    wire.putheader("transfer-encoding", "chunked")
    wire.endheaders()
    piece = b"100000\r\n" + b" " * 0x100000 + b"\r\n"

    def send() -> None:
        try:
            for _ in range(64):
                wire.send(piece)
        except OSError:
            return

    sender = threading.Thread(target=send)
    sender.start()
    answer = wire.getresponse()
    sender.join(30)

    assert answer.status == 413


def test_health_and_description_are_open_to_everybody(wire: Connection) -> None:
    wire.request("GET", "/healthz")
    assert wire.getresponse().read() == b"ok\n"

    wire.request("GET", "/v1/openapi.json")
    description = json.loads(wire.getresponse().read())
    wire.request("GET", "/v1/docs")
    page = wire.getresponse().read().decode()

    assert "/v1/jobs/{id}/explanation" in description["paths"]
    assert "/v1/jobs/{id}/explanation" in page
    assert "https://" not in page


def test_a_header_cannot_make_somebody_else_of_the_caller(wire: Connection) -> None:
    wire.request("GET", "/v1/me", headers={"X-Forwarded-For": "10.0.0.1, uid"})
    me = json.loads(wire.getresponse().read())
    wire.request("GET", "/v1/me", headers={"Authorization": "Basic eA=="})

    assert me["user"] == pwd.getpwuid(os.getuid()).pw_name
    assert wire.getresponse().status == 401


def test_a_submit_whose_answer_is_lost_is_not_sent_again(tmp_path: Path) -> None:
    asked: list[bytes] = []
    with (
        a_server_that_hangs_up(tmp_path / "s", asked) as path,
        Client(f"unix:{path}") as client,
        pytest.raises(LostAnswerError) as lost,
    ):
        client.cancel([1])

    assert len(asked) == 1
    assert "look whether it was done" in str(lost.value)


def test_a_socket_that_is_in_use_is_left_alone(daemon: Daemon) -> None:
    with pytest.raises(CannotServeError) as refused:
        unix_socket(daemon.socket)

    assert "already answers" in str(refused.value)
    with daemon.client() as client:
        assert client.status().leading


def test_a_socket_that_nobody_answers_is_replaced(tmp_path: Path) -> None:
    unix_socket(tmp_path / "s").close()

    with unix_socket(tmp_path / "s") as again:
        assert again.getsockname() == str(tmp_path / "s")


def test_a_port_for_others_needs_a_certificate() -> None:
    with pytest.raises(CannotServeError) as refused:
        tcp_socket(Tcp(host="0.0.0.0", port=0))  # noqa: S104 -- it is refused

    assert "certificate" in str(refused.value)


class a_server_that_hangs_up:  # noqa: N801 -- reads as a sentence
    """Takes one request and leaves."""

    def __init__(self, path: Path, asked: list[bytes]) -> None:
        self._path, self._asked = path, asked
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Path:
        self._socket.bind(str(self._path))
        self._socket.listen()
        self._thread.start()
        return self._path

    def __exit__(self, *_: object) -> None:
        self._thread.join(30)
        self._socket.close()

    def _serve(self) -> None:
        connection, _ = self._socket.accept()
        with connection:
            self._asked.append(connection.recv(65_536))
