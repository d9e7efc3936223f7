"""A visit to a pod over a WebSocket: bytes go both ways until one side ends."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import closing
from typing import Any

from starlette.types import Receive, Send

from muster.doors.kubernetes.serve import channels, forwarding
from muster.doors.kubernetes.serve.pod_visits import PodVisits, Visitor
from muster.doors.kubernetes.serve.spdy import SpdyError
from muster.model.running import VisitStream

LOOK_AGAIN_S = 0.5
"""How long a visit may outlive the token of who makes it."""

# What a WebSocket is closed with.
OVER, GOING_AWAY, BAD_FRAME, BAD_KIND, REFUSED, BROKEN = 1000, 1001, 1002, 1003, 1008, 1011


def protocol_of(visitor: Visitor, offered: list[str]) -> str | None:
    """The protocol that both sides know; None where there is none."""
    if visitor.wanted is None:
        return forwarding.TUNNELLED if forwarding.TUNNELLED in offered else None
    return channels.chosen(offered)


class WebSocketVisit:
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

    async def run(self, stream: VisitStream, protocol: str) -> None:
        """A command, or a container that is watched."""
        with closing(stream):
            await self._send_bytes(channels.greeting(self._visitor))

            async def obey(frame: bytes) -> None:
                await channels.obey(frame, stream, self._visitor, protocol)

            await self._until_over(channels.show(stream, self._visitor, self._send_bytes), obey)

    async def forward(self) -> None:
        """Ports."""
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
            frame = message.get("bytes")
            if frame is None:
                return BAD_KIND
            try:
                await obey(frame)
            except (channels.BadFrameError, SpdyError):
                return BAD_FRAME

    async def _until_revoked(self) -> None:
        while await asyncio.to_thread(self._visits.is_good, self._visitor.identity):
            await asyncio.sleep(LOOK_AGAIN_S)

    async def _send_bytes(self, content: bytes) -> None:
        await self._send({"type": "websocket.send", "bytes": content})


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
