"""Asking in documents: what is sent and what comes back, whatever it is about."""

from collections.abc import Mapping
from typing import Self, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from muster.api.site import Problem
from muster.client.address import Address
from muster.client.errors import ApiError
from muster.client.wire import PATIENCE_S, HttpRequest, HttpResponse, Stream, Wire
from muster.model.value import Value

T = TypeVar("T")

Query = Mapping[str, str | int | bool | tuple[str | int, ...] | None]
"""Parameters of a request: what is None, False or empty is left out."""


class Speech:
    """Requests over one kept connection, and streams over connections of their own.

    One of these serves one thread.
    """

    def __init__(self, address: Address, *, door: str = "python") -> None:
        self.address = address
        self._headers = _headers(address, door)
        self._wire = Wire(address, self._headers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up; what was asked for goes on."""
        self._wire.close()

    def get(self, path: str, kind: type[T], **query: str | int | bool | None) -> T:
        """The document at this path."""
        return decoded(self.get_bytes(path, query), kind)

    def get_bytes(self, path: str, query: Query) -> bytes:
        """What is at this path, as it comes."""
        return self._asked(HttpRequest(method="GET", path=path + query_text(query)))

    def send(self, method: str, path: str, body: Value | None, kind: type[T]) -> T:
        """Have something changed, and read what came of it."""
        content = b"{}" if body is None else msgspec.json.encode(body)
        return decoded(self._asked(HttpRequest(method=method, path=path, body=content)), kind)

    def streamed(self, path: str, query: Query, headers: Mapping[str, str] | None = None) -> Stream:
        """The answer as it comes, over a connection of its own; close it to leave.

        It may be silent for ever, unless `headers` are given: then it has a heartbeat.
        """
        wire = Wire(self.address, self._headers)
        request = HttpRequest(method="GET", path=path + query_text(query), headers=headers or {})
        stream = wire.stream(request, None if headers is None else PATIENCE_S)
        if stream.answer.status >= 400:
            raise _error(stream.answer, b"".join(stream))
        return stream

    def _asked(self, request: HttpRequest) -> bytes:
        answer, body = self._wire.ask(request)
        if answer.status >= 400:
            raise _error(answer, body)
        return body


def decoded(body: bytes, kind: type[T]) -> T:
    """A document; fields that a newer server adds are an error that says so."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as bad:
        problem = Problem(
            kind="strange_answer",
            text=f"The server answers what this client does not know ({bad}): "
            "are both of the same version?",
        )
        raise ApiError(502, problem) from bad


def named(name: str) -> str:
    """A name as part of a path."""
    return quote(name, safe="/")


def query_text(query: Query) -> str:
    """`?limit=10&state=pending`, or nothing."""
    shown = [
        (key, "true" if value is True else value)
        for key, value in query.items()
        if value is not None and value is not False and value != ()
    ]
    return "?" + urlencode(shown, doseq=True) if shown else ""


def _headers(address: Address, door: str) -> dict[str, str]:
    host = "localhost" if address.socket is not None else f"{address.host}:{address.port}"
    headers = {"host": host, "content-type": "application/json", "x-muster-door": door}
    return headers | ({"authorization": f"Bearer {address.secret}"} if address.secret else {})


def _error(answer: HttpResponse, body: bytes) -> ApiError:
    try:
        problem = msgspec.json.decode(body, type=Problem)
    except msgspec.DecodeError:
        text = body[:200].decode(errors="replace") or f"The server answers {answer.status}."
        problem = Problem(kind="unknown", text=text)
    return ApiError(answer.status, problem)
