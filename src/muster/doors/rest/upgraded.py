"""Connections that leave HTTP for a protocol other than WebSocket: from then on bytes, both ways.

The application is called with a scope of the type UPGRADE. It is sent, and sends, the messages of
WebSockets: `websocket.accept` has the headers of the answer 101, and a message is any piece.
"""

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import cast

from starlette.types import ASGIApp, Message, Scope

UPGRADE = "upgrade"
"""The type of a scope."""

MOST_UNREAD = 1 << 20
"""In bytes: so much may have come that the application has not asked for."""

TAKE_S = 120.0
"""So long a client may take nothing of what waits for it."""

_HEAD = b"HTTP/1.1 %d %b\r\n%b\r\n"

log = logging.getLogger("muster.rest")


class Upgraded(asyncio.Protocol):
    """One such connection, from the request that asked for it. left: called when it is gone."""

    def __init__(self, app: ASGIApp, scope: Scope, left: Callable[[], None]) -> None:
        self._app = app
        self._scope = {**scope, "type": UPGRADE}
        self._left = left
        self._came = asyncio.Queue[Message]()
        self._unread = 0
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._taking: asyncio.TimerHandle | None = None
        self.task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._came.put_nowait({"type": "websocket.connect"})
        self.task = asyncio.get_running_loop().create_task(self._run())

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._await_taking(is_paused=False)
        self._may_write.set()
        self._came.put_nowait({"type": "websocket.disconnect"})
        self._left()

    def data_received(self, data: bytes) -> None:
        self._unread += len(data)
        if self._unread > MOST_UNREAD:
            self._transport.pause_reading()
        self._came.put_nowait({"type": "websocket.receive", "bytes": data})

    def pause_writing(self) -> None:
        self._may_write.clear()
        self._await_taking(is_paused=True)

    def resume_writing(self) -> None:
        self._may_write.set()
        self._await_taking(is_paused=False)

    def shutdown(self) -> None:
        """The server ends; the application has been told, and closes this by itself."""

    async def _run(self) -> None:
        try:
            await self._app(self._scope, self._receive, self._send)
        except Exception:
            log.exception("%s was not served", self._scope["path"])
        finally:
            self._transport.close()

    async def _receive(self) -> Message:
        message = await self._came.get()
        self._unread -= len(message.get("bytes", b""))
        if self._unread <= MOST_UNREAD and not self._transport.is_closing():
            self._transport.resume_reading()
        return message

    async def _send(self, message: Message) -> None:
        if self._transport.is_closing():
            raise ConnectionError("the client has gone away")
        match message["type"]:
            case "websocket.accept":
                self._begin(HTTPStatus.SWITCHING_PROTOCOLS, message["headers"])
            case "websocket.http.response.start":
                closing = [*message["headers"], (b"connection", b"close")]
                self._begin(HTTPStatus(message["status"]), closing)
            case "websocket.send":
                self._transport.write(message["bytes"])
            case "websocket.http.response.body":
                self._transport.write(message["body"])
            case "websocket.close":
                self._transport.close()
            case other:
                raise RuntimeError(f"{other} has no meaning here")
        await self._may_write.wait()

    def _begin(self, status: HTTPStatus, headers: list[tuple[bytes, bytes]]) -> None:
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        self._transport.write(_HEAD % (status, status.phrase.encode(), lines))

    def _await_taking(self, *, is_paused: bool) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None
        if is_paused:
            loop = asyncio.get_running_loop()
            self._taking = loop.call_later(TAKE_S, self._transport.abort)
