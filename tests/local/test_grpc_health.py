"""Servers of gRPC that say how they are, as one in Go says it on the wire."""

import socket
import struct
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import Thread

import pytest

from muster.backends.local.pods.grpc_health import NoHealthError, demand_serving

PATIENCE_S = 10


def frame(kind: int, content: bytes, flags: int = 0, stream: int = 0) -> bytes:
    return struct.pack(">I", len(content))[1:] + struct.pack(">BBI", kind, flags, stream) + content


SETTINGS, PING = frame(4, b"\0\3\0\0\0\x64"), frame(6, b"12345678")
HEADERS = frame(1, b"\x88", 4, 1)
TRAILERS = frame(1, b"\x88", 5, 1)


def said(status: int) -> bytes:
    message = b"\x08" + bytes((status,)) if status else b""
    body = struct.pack(">BI", 0, len(message)) + message
    return SETTINGS + PING + HEADERS + frame(0, body, 0, 1) + TRAILERS


@contextmanager
def server(answer: bytes) -> Generator[tuple[int, list[bytes]]]:
    """Its port, and what it was asked: it answers when all has come."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.settimeout(PATIENCE_S)
                come = b""
                while not come.endswith(b"web") and not come.endswith(frame(0, b"\0" * 5, 1, 1)):
                    come += connection.recv(4_096)
                asked.append(come)
                # Until the other side has heard enough, and hangs up.
                with suppress(ConnectionError):
                    connection.sendall(answer)
                    while connection.recv(4_096):
                        pass

        thread = Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1], asked
        finally:
            thread.join()


def test_a_server_that_serves_is_well() -> None:
    with server(said(1)) as (port, asked):
        demand_serving("127.0.0.1", port, "web", PATIENCE_S)

    assert asked[0].startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert b"/grpc.health.v1.Health/Check" in asked[0]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (said(2), 'service unhealthy (responded with "NOT_SERVING")'),
        (said(0), 'service unhealthy (responded with "UNKNOWN")'),
        (SETTINGS + TRAILERS, "does not implement the grpc health protocol"),
        (SETTINGS + frame(7, b"\0" * 8), "broke the answer off"),
        (SETTINGS + frame(3, b"\0" * 4, 0, 1), "broke the answer off"),
        (frame(0, b"\xff", 0xFF, 1), "does not implement"),
        (b"\xff" * 100, "broke the answer off"),
        (PING * 200, "broke the answer off"),
    ],
    ids=range(8),
)
def test_one_that_says_anything_else_is_not(answer: bytes, words: str) -> None:
    with (
        server(answer) as (port, _),
        pytest.raises(NoHealthError, match=words.replace("(", r"\(").replace(")", r"\)")),
    ):
        demand_serving("127.0.0.1", port, "", PATIENCE_S)


def test_one_that_says_nothing_is_not_waited_for() -> None:
    with server(SETTINGS) as (port, _), pytest.raises(TimeoutError):
        demand_serving("127.0.0.1", port, "", 1)
