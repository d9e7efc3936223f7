"""What goes over a WebSocket or SPDY: a visit to a pod, in both ways; a log or a watch, in one."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import closing
from typing import Any

from starlette.types import Receive, Send

from muster.doors.kubernetes.serve import channels, forwarding, spdy_channels
from muster.doors.kubernetes.serve.pod_visits import PodVisits, Visitor
from muster.doors.kubernetes.serve.port_channels import PortChannels
from muster.doors.kubernetes.serve.spdy import SpdyError
from muster.model.running import VisitStream

LOOK_AGAIN_S = 0.5
"""How long a visit may outlive the token of who makes it."""

# What a WebSocket is closed with.
OVER, GOING_AWAY, BAD_FRAME, BAD_KIND, REFUSED, BROKEN = 1000, 1001, 1002, 1003, 1008, 1011


SPDY = "SPDY/3.1"


_OF_PORTS = (channels.V4, channels.TEXT_V4)


def protocol_of(visitor: Visitor, offered: list[str], *, is_spdy: bool) -> str | None:
    """The protocol that both sides know; None where there is none."""
    if visitor.wanted is None:
        if is_spdy:
            return channels.chosen(offered, (forwarding.PROTOCOL,)) or None
        # Without ports only SPDY can name them.
        spoken = _OF_PORTS if visitor.ports else ()
        found = channels.chosen(offered, (forwarding.TUNNELLED, *spoken))
        return found if found or visitor.ports else None
    if is_spdy:
        # Who names none means the first that there was.
        return channels.chosen(offered or [channels.V1], spdy_channels.PROTOCOLS)
    return channels.chosen(offered)


class PodVisit:
    """One that was accepted."""

    def __init__(
        self,
        visitor: Visitor,
        visits: PodVisits,
        wires: tuple[Receive, Send],
        ending: asyncio.Event,
    ) -> None:
        self._visitor = visitor
        self._visits = visits
        self._receive, self._send = wires
        self._ending = ending
        self._is_text = False

    async def run(self, stream: VisitStream, protocol: str) -> None:
        """A command, or a container that is watched."""
        self._is_text = channels.is_text(protocol)
        send = self._send_text if self._is_text else self._send_bytes
        with closing(stream):
            await send(channels.greeting(self._visitor))

            async def obey(frame: bytes) -> None:
                await channels.obey(frame, stream, self._visitor, protocol)

            await self._until_over(channels.show(stream, self._visitor, send, protocol), obey)

    async def run_in_streams(self, stream: VisitStream, protocol: str) -> None:
        """The same over SPDY."""
        with closing(stream):
            spoken = spdy_channels.SpdyChannels(self._visitor, stream, protocol, self._send_bytes)
            await self._until_over(spoken.show(), spoken.take)

    async def forward(self, protocol: str) -> None:
        """Ports."""
        if protocol in (forwarding.TUNNELLED, forwarding.PROTOCOL):
            await self._forward_in_streams()
            return
        self._is_text = channels.is_text(protocol)
        send = self._send_text if self._is_text else self._send_bytes
        visitor = self._visitor
        ports = PortChannels(visitor.pod, visitor.ports, self._connect, send)
        await self._until_over(ports.show(), ports.take)

    async def _forward_in_streams(self) -> None:
        forwards = forwarding.Forwarding(self._visitor.pod, self._connect, self._send_bytes)
        try:
            await self._until_over(asyncio.Event().wait(), forwards.take)
        finally:
            await forwards.close()

    def _connect(self, port: int) -> VisitStream:
        return self._visits.connect(self._visitor, port)

    async def _until_over(
        self,
        showing: Coroutine[Any, Any, Any],
        obey: Callable[[bytes], Coroutine[Any, Any, None]],
    ) -> None:
        """Until it is over, the client leaves, we end, or the token is good no more."""
        shown = asyncio.create_task(showing)
        heard = asyncio.create_task(self._hear(obey))
        ended = asyncio.create_task(self._ending.wait())
        revoked = asyncio.create_task(self._until_revoked())
        tasks: set[asyncio.Task[Any]] = {shown, heard, ended, revoked}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            code = _code_of(shown, heard, ended, revoked)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if code is not None:
            await _quietly(self._send({"type": "websocket.close", "code": code, "reason": ""}))

    async def _hear(self, obey: Callable[[bytes], Coroutine[Any, Any, None]]) -> int | None:
        """What the client sends, until it leaves; why it is sent away otherwise."""
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                return None
            found = message.get("text" if self._is_text else "bytes")
            if found is None:
                return BAD_KIND
            try:
                await obey(channels.of_text(found) if self._is_text else found)
            except (channels.BadFrameError, SpdyError):
                return BAD_FRAME

    async def _until_revoked(self) -> None:
        while await asyncio.to_thread(self._visits.is_good, self._visitor.identity):
            await asyncio.sleep(LOOK_AGAIN_S)

    async def _send_bytes(self, content: bytes) -> None:
        await self._send({"type": "websocket.send", "bytes": content})

    async def _send_text(self, content: bytes) -> None:
        await self._send({"type": "websocket.send", "text": channels.as_text(content)})


BINARY, IN_BASE64 = "binary.k8s.io", "base64.binary.k8s.io"


def reading_protocol(offered: list[str]) -> str | None:
    """How a log goes over a WebSocket; None where both sides know no way."""
    return channels.chosen(offered, (BINARY, IN_BASE64))


async def send_log(first: bytes, rest: AsyncIterator[bytes], protocol: str, send: Send) -> None:
    """A log, in the pieces in which it is read."""
    if first:
        await send(_piece(first, protocol))
    async for part in rest:
        await send(_piece(part, protocol))
    await _quietly(send(CLOSED))


def _piece(content: bytes, protocol: str) -> dict[str, Any]:
    if protocol == IN_BASE64:
        return {"type": "websocket.send", "text": base64.b64encode(content).decode()}
    return {"type": "websocket.send", "bytes": content}


async def send_events(lines: AsyncIterator[bytes], send: Send) -> None:
    """A watch: each event is a message."""
    async for line in lines:
        for each in line.splitlines():
            await send({"type": "websocket.send", "text": each.decode()})
    await _quietly(send(CLOSED))


CLOSED = {"type": "websocket.close", "code": OVER, "reason": ""}


def _code_of(
    shown: "asyncio.Task[Any]",
    heard: "asyncio.Task[int | None]",
    ended: "asyncio.Task[Any]",
    revoked: "asyncio.Task[None]",
) -> int | None:
    """What the connection is closed with; None: the client has closed it."""
    if shown.done():
        return OVER if shown.exception() is None else BROKEN
    if revoked.done():
        return REFUSED
    if ended.done():
        return GOING_AWAY
    return heard.result() if heard.exception() is None else BROKEN


async def _quietly(sending: Any) -> None:
    try:
        await sending
    except (RuntimeError, OSError):
        # The other end was quicker.
        return
