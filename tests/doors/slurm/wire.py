"""A server that answers as a test says, byte by byte, and remembers what it was asked."""

import json
import socket
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PATIENCE_S = 30
LOOK_S = 0.05


@dataclass(frozen=True, kw_only=True)
class Request:
    """What one request was."""

    head: str
    call: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Wire:
    """Where it listens, and what it heard. silent: set when somebody waits in vain."""

    path: Path
    heard: list[Request] = field(default_factory=list[Request])
    silent: threading.Event = field(default_factory=threading.Event)

    @property
    def environ(self) -> dict[str, str]:
        return {"MUSTER_URL": f"unix:{self.path}"}


SILENCE = b"(silence)"


def reply(out: str = "", err: str = "", code: int = 0, then: object = None) -> bytes:
    """An answer as the server writes it."""
    what = b"" if then is None else json.dumps(then).encode()
    parts = (err.encode(), out.encode(), what)
    line = f"{code} {len(parts[0])} {len(parts[1])} {len(parts[2])}\n".encode()
    return http(line + b"".join(parts))


def http(body: bytes, status: str = "200 OK", head: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


@contextmanager
def wire(folder: Path, answers: Sequence[Sequence[bytes]]) -> Generator[Wire]:
    """Each connection gets one of the answers, in parts; SILENCE is none at all."""
    found = Wire(path=folder / "s")
    ended = threading.Event()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(found.path))
        listening.listen()
        listening.settimeout(LOOK_S)
        thread = threading.Thread(target=_serve, args=(listening, found, answers, ended))
        thread.start()
        try:
            yield found
        finally:
            ended.set()
            thread.join()
    found.path.unlink()


def _serve(
    listening: socket.socket,
    found: Wire,
    answers: Sequence[Sequence[bytes]],
    ended: threading.Event,
) -> None:
    for parts in answers:
        connection = _accepted(listening, ended)
        if connection is None:
            return
        with connection:
            found.heard.append(_heard(connection))
            for part in parts:
                if part == SILENCE:
                    found.silent.set()
                    ended.wait(PATIENCE_S)
                    return
                connection.sendall(part)


def _accepted(listening: socket.socket, ended: threading.Event) -> socket.socket | None:
    while not ended.is_set():
        try:
            connection, _ = listening.accept()
        except TimeoutError:
            continue
        connection.settimeout(PATIENCE_S)
        return connection
    return None


def _heard(connection: socket.socket) -> Request:
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65_536)
    head, _, body = received.partition(b"\r\n\r\n")
    text = head.decode()
    size = int(text.lower().partition("content-length: ")[2].partition("\r\n")[0])
    while len(body) < size:
        body += connection.recv(65_536)
    return Request(head=text, call=json.loads(body))
