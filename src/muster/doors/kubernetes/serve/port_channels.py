"""Ports over a WebSocket without SPDY, as client libraries forward them.

The first byte is a channel. Ports are named when the WebSocket is asked for; the n-th has channel
2n for data and 2n + 1 for an error. The first thing on each is the port's number, low byte first.
"""

import asyncio
from collections.abc import Sequence
from contextlib import closing

from muster.doors.kubernetes.serve.channels import BadFrameError
from muster.doors.kubernetes.serve.forwarding import Connect, Send, failure_text
from muster.model.errors import MusterError
from muster.model.running import VisitStream


class PortChannels:
    """The connections of one client to ports of one pod; each is made at once, and once."""

    def __init__(self, pod: str, ports: Sequence[int], connect: Connect, send: Send) -> None:
        self._pod = pod
        self._ports = tuple(ports)
        self._connect = connect
        self._send = send
        self._streams = [asyncio.Future[VisitStream | None]() for _ in ports]

    async def take(self, frame: bytes) -> None:
        """What the client sent; BadFrameError when it has no meaning."""
        if not frame or frame[0] % 2 or frame[0] // 2 >= len(self._streams):
            raise BadFrameError("this channel takes nothing")
        stream = await self._streams[frame[0] // 2]
        if stream is not None:
            await stream.write(frame[1:])

    async def show(self) -> None:
        """Send what comes, until all connections have ended."""
        for place, port in enumerate(self._ports):
            number = port.to_bytes(2, "little")
            await self._send(bytes([2 * place]) + number)
            await self._send(bytes([2 * place + 1]) + number)
        async with asyncio.TaskGroup() as group:
            for place, port in enumerate(self._ports):
                group.create_task(self._forward(place, port))

    async def _forward(self, place: int, port: int) -> None:
        why = await self._relayed(place, port)
        if why:
            told = failure_text(self._pod, port, why)
            await self._send(bytes([2 * place + 1]) + told)

    async def _relayed(self, place: int, port: int) -> str | None:
        """Why it could not be, or None."""
        try:
            stream = await asyncio.to_thread(self._connect, port)
        except MusterError as error:
            self._streams[place].set_result(None)
            return str(error)
        with closing(stream):
            self._streams[place].set_result(stream)
            try:
                while content := (await stream.read())[1]:
                    await self._send(bytes([2 * place]) + content)
            except ConnectionError as error:
                return str(error)
        return stream.failure
