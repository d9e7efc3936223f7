"""`kubectl port-forward`: each connection is a pair of SPDY streams, for data and for an error."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field

from muster.doors.kubernetes.serve.spdy import (
    Came,
    GoneAway,
    Opened,
    Pinged,
    Reset,
    SpdyReader,
    SpdyWriter,
)
from muster.model.errors import MusterError
from muster.model.running import VisitStream

PROTOCOL = "portforward.k8s.io"
TUNNELLED = f"SPDY/3.1+{PROTOCOL}"
"""How a WebSocket says that it carries the SPDY of port forwarding."""

MOST_REQUESTS = 128
MOST_CHUNKS = 32
"""So many pieces may wait for one connection; then nothing more is read from the client."""

_LARGEST = 32_768

Send = Callable[[bytes], Awaitable[None]]
Connect = Callable[[int], VisitStream]


@dataclass
class _Request:
    """One connection of a user. streams: by their type, `error` and `data`."""

    port: int
    streams: dict[str, int] = field(default_factory=dict[str, int])
    sent: "asyncio.Queue[bytes | None]" = field(
        default_factory=lambda: asyncio.Queue[bytes | None](MOST_CHUNKS)
    )
    task: "asyncio.Task[None] | None" = None


class Forwarding:
    """All connections of one client to one pod."""

    def __init__(self, pod: str, connect: Connect, send: Send) -> None:
        self._pod = pod
        self._connect = connect
        self._send = send
        self._reader = SpdyReader()
        self._writer = SpdyWriter()
        self._requests: dict[str, _Request] = {}

    async def take(self, received: bytes) -> None:
        """What the client sent; SpdyError when it cannot be read."""
        for frame in self._reader.take(received):
            match frame:
                case Opened():
                    await self._open(frame)
                case Came(stream=stream, content=content, is_last=is_last):
                    await self._pass_on(stream, content, is_last=is_last)
                case Reset(stream=stream):
                    self._give_up(stream)
                case Pinged(id=id) if id % 2:
                    await self._send(self._writer.ping(id))
                case Pinged() | GoneAway():
                    pass

    async def close(self) -> None:
        """Nobody is there any more."""
        tasks = [each.task for each in self._requests.values() if each.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _open(self, frame: Opened) -> None:
        kind, port = frame.headers.get("streamtype", ""), frame.headers.get("port", "")
        name = frame.headers.get("requestid", port)
        known = self._requests.get(name)
        is_new = known is None and len(self._requests) < MOST_REQUESTS
        is_good = kind in {"data", "error"} and port.isdecimal() and len(port) <= len("65535")
        if not is_good or not (is_new or (known is not None and kind not in known.streams)):
            await self._send(self._writer.reset(frame.stream))
            return
        request = self._requests.setdefault(name, _Request(port=int(port)))
        request.streams[kind] = frame.stream
        await self._send(self._writer.reply(frame.stream))
        if len(request.streams) == len(("data", "error")):
            request.task = asyncio.create_task(self._forward(name, request))

    async def _pass_on(self, stream: int, content: bytes, *, is_last: bool) -> None:
        request = self._of(stream)
        if request is None or request.task is None or request.task.done():
            return
        if content:
            await _put(request, content)
        if is_last:
            await _put(request, None)

    def _give_up(self, stream: int) -> None:
        request = self._of(stream)
        if request is not None and request.task is not None:
            request.task.cancel()

    def _of(self, stream: int) -> _Request | None:
        """Whose data this stream carries."""
        requests = self._requests.values()
        return next((each for each in requests if each.streams.get("data") == stream), None)

    async def _forward(self, name: str, request: _Request) -> None:
        try:
            why = await self._relayed(request)
            told = failure_text(self._pod, request.port, why) if why else b""
            data, error = request.streams["data"], request.streams["error"]
            await self._send(self._writer.data(error, told, is_last=True))
            await self._send(self._writer.data(data, b"", is_last=True))
        finally:
            del self._requests[name]

    async def _relayed(self, request: _Request) -> str | None:
        """Why it could not be, or None."""
        try:
            stream = await asyncio.to_thread(self._connect, request.port)
        except MusterError as error:
            return str(error)
        with closing(stream):
            sending = asyncio.create_task(_send_to(stream, request))
            try:
                await self._show(stream, request.streams["data"])
            except ConnectionError as error:
                return str(error)
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
        return stream.failure

    async def _show(self, stream: VisitStream, number: int) -> None:
        while content := (await stream.read())[1]:
            for begin in range(0, len(content), _LARGEST):
                piece = content[begin : begin + _LARGEST]
                await self._send(self._writer.data(number, piece))


def failure_text(pod: str, port: int, why: str) -> bytes:
    """In the words of kubelets."""
    return f"error forwarding port {port} to pod {pod}, uid : {why}".encode()


async def _put(request: _Request, content: bytes | None) -> None:
    """Wait for room, unless nobody will make any."""
    putting = asyncio.ensure_future(request.sent.put(content))
    if request.task is not None:
        await asyncio.wait((putting, request.task), return_when=asyncio.FIRST_COMPLETED)
    putting.cancel()


async def _send_to(stream: VisitStream, request: _Request) -> None:
    while (content := await request.sent.get()) is not None:
        await stream.write(content)
    await stream.end_input()
