"""A server that gives canned documents over a real socket, and remembers what it was asked."""

import json
import shutil
import socketserver
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import msgspec

from muster.api.site import Problem
from muster.client.address import Address
from muster.client.calls import Client


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the server was asked."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    body: Any = None


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """An answer that says no."""

    status: int
    problem: Problem


@dataclass(frozen=True, kw_only=True)
class Raw:
    """An answer that is no document."""

    content: bytes
    media: str = "application/octet-stream"


@dataclass(frozen=True, kw_only=True)
class HangUp:
    """No answer: the connection is closed after the request was heard."""


Answer = object | Callable[[Request], object]


@dataclass
class CannedServer:
    """Answers by method and path; a function is asked with the request."""

    answers: dict[tuple[str, str], Answer] = field(default_factory=dict[tuple[str, str], Answer])
    requests: list[Request] = field(default_factory=list[Request])

    def __enter__(self) -> Self:
        # Short, because the path of a socket may not be long.
        self.folder = Path(tempfile.mkdtemp(prefix="muster-"))
        self.socket = self.folder / "s"
        self._server = _Listener(str(self.socket), _Conversation)
        self._server.canned = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        shutil.rmtree(self.folder)

    def answer(self, method: str, path: str, answer: Answer) -> None:
        """From now on, this is said there."""
        self.answers[method, path] = answer

    def connect(self) -> Client:
        """A client of this server."""
        return Client.at(Address(socket=str(self.socket)), door="cli")

    def asked(self, method: str, path: str) -> list[Request]:
        """The requests to one route."""
        return [each for each in self.requests if (each.method, each.path) == (method, path)]


class _Listener(socketserver.ThreadingUnixStreamServer):
    daemon_threads = False
    block_on_close = True
    canned: CannedServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client may hang up whenever it likes."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Conversation(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listener  # pyright: ignore[reportIncompatibleVariableOverride]

    def respond(self) -> None:
        split = urlsplit(self.path)
        content = self.rfile.read(int(self.headers.get("content-length") or 0))
        request = Request(
            method=self.command,
            path=split.path,
            query=parse_qs(split.query),
            body=json.loads(content) if content else None,
        )
        canned = self.server.canned
        canned.requests.append(request)
        missing = Refusal(
            status=404, problem=Problem(kind="unknown", text=f"There is no {split.path}.")
        )
        found = canned.answers.get((request.method, request.path), missing)
        self._send(found(request) if callable(found) else found)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = respond  # noqa: N815  names that http.server calls

    def _send(self, answer: object) -> None:
        status, media = 200, "application/json"
        if isinstance(answer, HangUp):
            self.close_connection = True
            return
        match answer:
            case Refusal(status=status, problem=problem):
                content = msgspec.json.encode(problem)
            case Raw(content=content, media=media):
                pass
            case _:
                content = msgspec.json.encode(answer)
        self.send_response(status)
        self.send_header("content-type", media)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        with suppress(BrokenPipeError):
            self.wfile.write(content)

    def address_string(self) -> str:
        return "a client"

    def log_message(self, format: str, *args: Any) -> None:
        """Tests are quiet."""
