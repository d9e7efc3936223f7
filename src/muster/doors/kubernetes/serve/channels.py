"""Streams in one WebSocket, as `v4.channel.k8s.io` and v5 have them: the first byte is a channel.

0 stdin, 1 stdout, 2 stderr, 3 how it ended, 4 the size of the terminal; 255 (v5): a channel ends.
In the protocols before, which clients that name none mean, only a failure is told, in words.
Each of them but v5 can also be spoken in text: a digit, and the rest in base64.
"""

import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from muster.doors.kubernetes.objects.value import JsonObject
from muster.doors.kubernetes.serve.pod_visits import Visitor
from muster.model.running import STDERR, STDOUT, AttachTo, VisitStream

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
V1, UNNAMED = "channel.k8s.io", ""
OF_TEXT = "base64."
TEXT_V4, TEXT_V1 = f"v4.{OF_TEXT}channel.k8s.io", f"{OF_TEXT}channel.k8s.io"
PROTOCOLS = (V5, V4, TEXT_V4, V1, TEXT_V1)

TELLS_IN_WORDS = frozenset({V1, TEXT_V1, UNNAMED})

STDIN, ERROR, RESIZE, CLOSE = 0, 3, 4, 255
LONGEST_SIZE = 1_000
MOST_LINES = 10_000

Send = Callable[[bytes], Awaitable[None]]


class BadFrameError(Exception):
    """What the client sent has no meaning; it ends this connection and nothing else."""


def chosen(offered: list[str], known: Sequence[str] = PROTOCOLS) -> str | None:
    """The protocol that both sides know; None where there is none."""
    if not offered:
        return UNNAMED
    return next((each for each in known if each in offered), None)


def is_text(protocol: str) -> bool:
    """Are its frames text?"""
    return OF_TEXT in protocol


def as_text(frame: bytes) -> str:
    """A frame, for protocols of text."""
    return f"{frame[0]}{base64.b64encode(frame[1:]).decode()}"


def of_text(text: str) -> bytes:
    """A frame that came as text; BadFrameError when it has no meaning."""
    try:
        return bytes([int(text[:1])]) + base64.b64decode(text[1:], validate=True)
    except (ValueError, binascii.Error):
        raise BadFrameError("a frame is a digit and base64") from None


def greeting(visitor: Visitor) -> bytes:
    """Nothing, on the first channel that will be written: now the client knows that it is up."""
    first = STDOUT if visitor.stdout else STDERR if visitor.stderr else ERROR
    return bytes([first])


async def show(stream: VisitStream, visitor: Visitor, send: Send, protocol: str) -> None:
    """Send what comes out of the container, and at last how it ended."""
    wanted = {STDOUT: visitor.stdout, STDERR: visitor.stderr}
    while True:
        number, content = await stream.read()
        if not content:
            break
        if wanted[number]:
            await send(bytes([number]) + content)
    last = told(stream, visitor, in_words=protocol in TELLS_IN_WORDS)
    if last:
        await send(bytes([ERROR]) + last)


async def obey(frame: bytes, stream: VisitStream, visitor: Visitor, protocol: str) -> None:
    """Do what a frame of the client says; BadFrameError when it says nothing."""
    if not frame:
        raise BadFrameError("a frame without a channel")
    channel, content = frame[0], frame[1:]
    if channel == STDIN and visitor.stdin:
        await stream.write(content)
    elif channel == RESIZE:
        await resize(stream, content)
    elif channel == CLOSE and protocol == V5:
        if content == bytes([STDIN]):
            await stream.end_input()
    else:
        raise BadFrameError(f"channel {channel} takes nothing")


async def resize(stream: VisitStream, content: bytes) -> None:
    """To the size that this says; BadFrameError when it says none."""
    rows, columns = _size(content)
    if rows and columns:
        await stream.resize(rows, columns)


def told(stream: VisitStream, visitor: Visitor, *, in_words: bool) -> bytes:
    """How it ended, as the client hears it; in words only a failure is told."""
    status = ending(stream, visitor)
    return (str(status.get("message") or "") if in_words else json.dumps(status)).encode()


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
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError):
        raise BadFrameError("not the size of a terminal") from None
    if not (0 <= rows <= MOST_LINES and 0 <= columns <= MOST_LINES):
        raise BadFrameError("no terminal is of this size")
    return rows, columns
