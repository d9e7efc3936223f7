"""From the wire to an operation and back: one of these stands behind each path."""

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs

import msgspec
from starlette.types import Receive, Scope, Send

from muster.controller.messages import Caller
from muster.doors.request.bad import BadRequestError
from muster.doors.rest.auth import UserNames, caller_of, until_revoked
from muster.doors.rest.operation import (
    JSON,
    Asked,
    Content,
    Door,
    Flow,
    Operation,
    Reply,
    always,
)
from muster.doors.rest.peers import STREAM
from muster.doors.rest.problems import NoSuchPageError, TooLargeError, trouble, unreadable
from muster.lifecycle.words import choice, near
from muster.model.errors import BusyError, ForbiddenError
from muster.model.value import UserName, Value

MOST_BYTES = 8 * 1_024 * 1_024
"""How much a request may carry: more than any script, less than what would hurt."""

ANONYMOUS = Caller(user=UserName(""), door="rest")
"""Who asks what is open to everybody."""

log = logging.getLogger("muster.rest")

encode = msgspec.json.Encoder().encode


class Endpoint:
    """All operations of one path, as an ASGI application."""

    def __init__(self, operations: Sequence[Operation], door: Door, people: UserNames) -> None:
        self._operations = {each.method: each for each in operations}
        self._decoders = {
            each.method: msgspec.json.Decoder(each.takes) for each in operations if each.takes
        }
        self._known = {
            each.method: frozenset(parameter.name for parameter in each.parameters)
            for each in operations
        }
        self._door = door
        self._people = people

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, is_read = time.perf_counter(), not _has_body(scope["headers"])
        operation = asked = None
        try:
            operation = self._operation(scope)
            asked = await self._asked(operation, scope, receive)
            is_read = True
            reply = await self._answer(operation, asked)
        except ClientGoneError:
            return
        except Exception as error:  # noqa: BLE001 -- whatever it is, the client gets an answer
            self._count(operation, asked, trouble(error).status, began)
            await send_trouble(error, send, is_read=is_read)
            return
        self._count(operation, asked, operation.status, began)
        await _send(reply, operation, receive, send, asked)

    def _count(
        self, operation: Operation | None, asked: Asked | None, status: int, began: float
    ) -> None:
        door = "rest" if asked is None else asked.caller.door
        name = "none" if operation is None else f"{operation.method} {operation.path}"
        self._door.counts.answered(door, name, status, time.perf_counter() - began)

    async def _answer(self, operation: Operation, asked: Asked) -> Reply:
        """That somebody may not do what they ask for is written down."""
        try:
            if operation.costly:
                async with self._door.turns.of(asked.caller.user):
                    return await operation.answer(asked)
            return await operation.answer(asked)
        except ForbiddenError as error:
            what = f"{operation.method} {operation.path}"
            self._door.service.note_refusal(asked.caller, what, str(error))
            raise

    def _operation(self, scope: Scope) -> Operation:
        found = self._operations.get(scope["method"])
        if found is None:
            allowed = tuple(sorted(self._operations))
            raise NoSuchPageError(f"Here you can {choice(allowed)}.", allowed)
        return found

    async def _asked(self, operation: Operation, scope: Scope, receive: Receive) -> Asked:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        # Nothing is read of what somebody sends who may not ask.
        is_open = operation.open_here and self._is_open(scope, headers)
        caller = ANONYMOUS if is_open else self._caller(operation, scope, headers)
        body = await _body(headers, receive)
        return Asked(
            door=self._door,
            caller=caller,
            path=scope["path_params"],
            query=self._query(operation, scope["query_string"]),
            headers=headers,
            document=self._document(operation, body),
            begin_stream=scope.get(STREAM, always),
            is_open=is_open,
        )

    def _is_open(self, scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
        """Who says who they are gets what is theirs, also where others get everything."""
        rules = self._door.service.queries.site().telemetry
        return rules.metrics_open and b"authorization" not in headers and _is_here(scope)

    def _caller(self, operation: Operation, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller:
        if operation.open:
            return ANONYMOUS
        caller = caller_of(scope, headers, self._door, self._people)
        try:
            self._door.service.queries.people.demand_anywhere(caller, operation.needs)
        except ForbiddenError as error:
            what = f"{operation.method} {operation.path}"
            self._door.service.note_refusal(caller, what, str(error))
            raise
        return caller

    def _query(self, operation: Operation, text: bytes) -> Mapping[str, Sequence[str]]:
        if not text:
            return {}
        try:
            given = parse_qs(text.decode("latin-1"), keep_blank_values=True, max_num_fields=10_000)
        except ValueError as bad:
            raise BadRequestError("", "there are too many parameters") from bad
        for name in given.keys() - self._known[operation.method]:
            raise BadRequestError(name, _unknown_parameter(name, self._known[operation.method]))
        return given

    def _document(self, operation: Operation, body: bytes) -> Any:
        if operation.takes is None:
            return None
        try:
            return self._decoders[operation.method].decode(body or b"{}")
        except msgspec.DecodeError as error:
            raise unreadable(error, operation.takes) from error
        except (UnicodeDecodeError, RecursionError) as error:
            raise BadRequestError("", f"this is no JSON that can be read ({error})") from error


def _is_here(scope: Scope) -> bool:
    client = scope.get("client")
    return client is not None and client[0] in {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


class ClientGoneError(Exception):
    """The client hung up before its request was complete."""


async def send_trouble(error: Exception, send: Send, *, is_read: bool = True) -> None:
    """An error as a problem document. is_read: was all read that the client sent?"""
    found = trouble(error)
    headers = [(b"content-type", b"application/problem+json"), *found.headers]
    if not is_read and (b"connection", b"close") not in headers:
        # What was not read of the request must not be taken for the next one.
        headers.append((b"connection", b"close"))
    await _send_whole(send, found.status, headers, encode(found.problem))


async def _send(
    reply: Reply, operation: Operation, receive: Receive, send: Send, asked: Asked
) -> None:
    match reply:
        case Value():
            await _send_whole(send, operation.status, _JSON_HEADERS, encode(reply))
        case Content(body=body, media=media, encoding=encoding):
            headers = [(b"content-type", media.encode())]
            if encoding is not None:
                headers.append((b"content-encoding", encoding.encode()))
            await _send_whole(send, operation.status, headers, body)
        case Flow():
            await _send_flow(reply, receive, send, asked)


async def _send_whole(
    send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})


async def _send_flow(flow: Flow, receive: Receive, send: Send, asked: Asked) -> None:
    """Send until there is no more, the client hangs up, its token ends, or the server does."""
    if not asked.begin_stream():
        await send_trouble(BusyError("You follow too many things at once; end some."), send)
        await flow.parts.aclose()
        return
    extra = [(name.encode(), value.encode()) for name, value in flow.headers.items()]
    headers = [(b"content-type", flow.media.encode()), (b"cache-control", b"no-store"), *extra]
    waits: tuple[Coroutine[Any, Any, object], ...] = (
        _pump(flow, send),
        _gone(receive),
        asked.door.hub.ending.wait(),
        flow.hopeless.wait(),
        until_revoked(asked.caller, asked.door),
    )
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    tasks = [asyncio.create_task(each) for each in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        await flow.parts.aclose()
    if isinstance(ends[0], Exception):
        # The status is sent long ago: hanging up in the middle is all that says it went wrong.
        raise ends[0]
    if flow.hopeless.is_set():
        # The server hangs up, and complains of an answer without an end: this is why.
        log.warning("a client that listens did not keep up and is let go; it may come back")
        return
    await send({"type": "http.response.body", "body": b""})


async def _pump(flow: Flow, send: Send) -> None:
    if flow.first:
        await send({"type": "http.response.body", "body": flow.first, "more_body": True})
    async for part in flow.parts:
        await send({"type": "http.response.body", "body": part, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _has_body(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip() != b"0")
        for name, value in headers
    )


async def _body(headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
    given = headers.get(b"content-length", b"0").strip()
    if not given.isdigit() or len(given) > 18 or int(given) > MOST_BYTES:
        raise TooLargeError(_TOO_LARGE)
    message = await receive()
    parts = [message.get("body", b"")]
    size = len(parts[0])
    while message.get("more_body", False):
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MOST_BYTES:
            raise TooLargeError(_TOO_LARGE)
    if message["type"] == "http.disconnect":
        raise ClientGoneError
    return b"".join(parts)


def _unknown_parameter(name: str, known: frozenset[str]) -> str:
    alike = near(name, known)
    hint = f"did you mean {choice(f'`{each}`' for each in alike)}?" if alike else "leave it out"
    return f"there is no parameter `{name}`; {hint}"


_TOO_LARGE = f"A request may carry {MOST_BYTES} bytes, not more."
_JSON_HEADERS = [(b"content-type", JSON.encode())]
