"""A command or a watched container in streams of SPDY, as kubectl spoke until 1.30.

The client opens a stream for each channel; how it ended is written to the one called `error`:
a Status since v4, before only a failure, in words.
"""

import asyncio
from collections.abc import Mapping

from muster.doors.kubernetes.serve import channels
from muster.doors.kubernetes.serve.channels import V1, V4
from muster.doors.kubernetes.serve.forwarding import Send
from muster.doors.kubernetes.serve.pod_visits import Visitor
from muster.doors.kubernetes.serve.spdy import (
    Came,
    GoneAway,
    Opened,
    Pinged,
    Reset,
    SpdyReader,
    SpdyWriter,
)
from muster.model.running import STDERR, STDOUT, VisitStream

V3, V2 = "v3.channel.k8s.io", "v2.channel.k8s.io"
PROTOCOLS = (V4, V3, V2, V1)

PATIENCE_S = 30.0
"""So long a client may take to open its streams, as with kubelets."""

_ERROR, _STDIN, _RESIZE = "error", "stdin", "resize"
_OUTPUTS: Mapping[int, str] = {STDOUT: "stdout", STDERR: "stderr"}
_LARGEST = 32_768


class SpdyChannels:
    """The streams of one visit."""

    def __init__(self, visitor: Visitor, stream: VisitStream, protocol: str, send: Send) -> None:
        self._visitor = visitor
        self._stream = stream
        self._protocol = protocol
        self._send = send
        self._reader = SpdyReader()
        self._writer = SpdyWriter()
        self._wanted = _wanted(visitor)
        self._numbers: dict[str, int] = {}
        self._are_open = asyncio.Event()

    async def take(self, received: bytes) -> None:
        """What the client sent; SpdyError or BadFrameError when it cannot be read."""
        for frame in self._reader.take(received):
            match frame:
                case Opened():
                    await self._open(frame)
                case Came(stream=number, content=content, is_last=is_last):
                    await self._pass_on(number, content, is_last=is_last)
                case Reset(stream=number):
                    if number == self._numbers.get(_STDIN):
                        await self._stream.end_input()
                case Pinged(id=id) if id % 2:
                    await self._send(self._writer.ping(id))
                case Pinged() | GoneAway():
                    pass

    async def show(self) -> None:
        """Send what comes out of the container, and at last how it ended."""
        async with asyncio.timeout(PATIENCE_S):
            await self._are_open.wait()
        while (found := await self._stream.read())[1]:
            number, content = found
            name = _OUTPUTS[number]
            if name in self._numbers:
                await self._write(name, content)
        for name in _OUTPUTS.values():
            if name in self._numbers:
                await self._send(self._writer.data(self._numbers[name], b"", is_last=True))
        told = channels.told(self._stream, self._visitor, in_words=self._protocol != V4)
        await self._send(self._writer.data(self._numbers[_ERROR], told, is_last=True))

    async def _open(self, frame: Opened) -> None:
        name = frame.headers.get("streamtype", "")
        if name in self._numbers or name not in (*self._wanted, _RESIZE):
            await self._send(self._writer.reset(frame.stream))
            return
        self._numbers[name] = frame.stream
        await self._send(self._writer.reply(frame.stream))
        if self._wanted <= self._numbers.keys():
            self._are_open.set()

    async def _pass_on(self, number: int, content: bytes, *, is_last: bool) -> None:
        if number == self._numbers.get(_STDIN):
            if content:
                await self._stream.write(content)
            if is_last:
                await self._stream.end_input()
        elif content and number == self._numbers.get(_RESIZE):
            await channels.resize(self._stream, content)

    async def _write(self, name: str, content: bytes) -> None:
        for begin in range(0, len(content), _LARGEST):
            piece = content[begin : begin + _LARGEST]
            await self._send(self._writer.data(self._numbers[name], piece))


def _wanted(visitor: Visitor) -> frozenset[str]:
    """The streams that the client will open."""
    asked = {
        _STDIN: visitor.stdin,
        _OUTPUTS[STDOUT]: visitor.stdout,
        _OUTPUTS[STDERR]: visitor.stderr,
    }
    return frozenset({_ERROR, *(name for name, is_asked in asked.items() if is_asked)})
