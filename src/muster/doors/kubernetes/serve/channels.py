"""Streams in one WebSocket, as `v4.channel.k8s.io` and v5 have them: the first byte is a channel.

0 stdin, 1 stdout, 2 stderr, 3 how it ended, 4 the size of the terminal; 255 (v5): a channel ends.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from muster.doors.kubernetes.objects.value import JsonObject
from muster.doors.kubernetes.serve.pod_visits import Visitor
from muster.model.running import STDERR, STDOUT, AttachTo, VisitStream

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
PROTOCOLS = (V5, V4)

STDIN, ERROR, RESIZE, CLOSE = 0, 3, 4, 255
LONGEST_SIZE = 1_000
MOST_LINES = 10_000

Send = Callable[[bytes], Awaitable[None]]


class BadFrameError(Exception):
    """What the client sent has no meaning; it ends this connection and nothing else."""


def chosen(offered: list[str]) -> str | None:
    """The protocol that both sides know; None where there is none."""
    return next((each for each in PROTOCOLS if each in offered), None)


def greeting(visitor: Visitor) -> bytes:
    """Nothing, on the first channel that will be written: now the client knows that it is up."""
    first = STDOUT if visitor.stdout else STDERR if visitor.stderr else ERROR
    return bytes([first])


async def show(stream: VisitStream, visitor: Visitor, send: Send) -> None:
    """Send what comes out of the container, and at last how it ended."""
    wanted = {STDOUT: visitor.stdout, STDERR: visitor.stderr}
    while True:
        number, content = await stream.read()
        if not content:
            break
        if wanted[number]:
            await send(bytes([number]) + content)
    await send(bytes([ERROR]) + json.dumps(ending(stream, visitor)).encode())


async def obey(frame: bytes, stream: VisitStream, visitor: Visitor, protocol: str) -> None:
    """Do what a frame of the client says; BadFrameError when it says nothing."""
    if not frame:
        raise BadFrameError("a frame without a channel")
    channel, content = frame[0], frame[1:]
    if channel == STDIN and visitor.stdin:
        await stream.write(content)
    elif channel == RESIZE:
        rows, columns = _size(content)
        if rows and columns:
            await stream.resize(rows, columns)
    elif channel == CLOSE and protocol == V5:
        if content == bytes([STDIN]):
            await stream.end_input()
    else:
        raise BadFrameError(f"channel {channel} takes nothing")


def ending(stream: VisitStream, visitor: Visitor) -> JsonObject:
    """How it ended, as a Status."""
    if stream.failure is not None:
        return _failed(stream.failure)
    code = stream.exit_code or 0
    if not code or isinstance(visitor.wanted, AttachTo):
        return {"metadata": {}, "status": "Success"}
    words = f"command terminated with exit code {code}"
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: {words}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def _failed(why: str) -> JsonObject:
    inner = f"Internal error occurred: error executing command in container: {why}"
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {inner}",
        "reason": "InternalError",
        "details": {"causes": [{"message": inner}]},
        "code": 500,
    }


def _size(content: bytes) -> tuple[int, int]:
    try:
        found: Any = json.loads(content[:LONGEST_SIZE])
        sizes = {str(name).lower(): int(value) for name, value in found.items()}
        rows, columns = sizes["height"], sizes["width"]
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        raise BadFrameError("not the size of a terminal") from None
    if not (0 <= rows <= MOST_LINES and 0 <= columns <= MOST_LINES):
        raise BadFrameError("no terminal is of this size")
    return rows, columns
