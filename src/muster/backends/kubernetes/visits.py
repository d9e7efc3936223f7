"""Visits to pods of users: commands beside their own, what they write, and their ports.

The API server passes them on to kubelets, over one WebSocket for each visit, with channels in it.
"""

import asyncio
import contextlib
import json
import re
import ssl
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from muster.backends.kubernetes.amounts import plain
from muster.model.running import STDERR, STDOUT, AttachTo, ConnectTo, RunInside, Visit

NOT_STARTED = 126
"""The exit code of a command that could not be started."""

_STDIN, _OUTCOME, _RESIZE, _CLOSE = 0, 3, 4, 255
_DATA, _WRONG = 0, 1
"""Channels of a port."""
_PORT_BYTES = 2
_CLOSABLE = Subprotocol("v5.channel.k8s.io")
"""In this one a visitor can end what they send."""
_PLAIN = Subprotocol("v4.channel.k8s.io")
_OPENS_WITHIN_S = 30
_LONGEST_REASON = 1_000
_AROUND = re.compile(r"(Internal error occurred: |error executing command in container: )*")
_LARGEST = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Way:
    """How the API server is reached. headers: who asks."""

    server: str
    tls: ssl.SSLContext
    headers: Mapping[str, str]
    server_name: str | None


class ClusterVisit:
    """A visit; it is begun when it is first used, in the loop of whoever uses it.

    terminals: containers of the pod that run on one.
    """

    def __init__(
        self, way: Way, pod: str, wanted: Visit, terminals: Set[str] = frozenset()
    ) -> None:
        self._way, self._pod, self._wanted = way, pod, wanted
        self._terminals = terminals
        self._stream: ClientConnection | None = None
        self._opening = asyncio.Lock()
        self._exit_code: int | None = None
        self._failure: str | None = None
        self._is_closed = False
        self._heard: set[int] = set()

    @property
    def exit_code(self) -> int | None:
        return self._exit_code

    @property
    def failure(self) -> str | None:
        return self._failure

    async def read(self) -> tuple[int, bytes]:
        stream = await self._opened()
        while stream is not None:
            try:
                message = await stream.recv()
            except ConnectionClosed:
                return self._last()
            if isinstance(message, str) or not message:
                continue
            found = self._taken(message[0], message[1:])
            if found is not None:
                return found
        return STDOUT, b""

    async def write(self, content: bytes) -> None:
        await self._send(bytes([_STDIN]) + content)

    async def end_input(self) -> None:
        stream = await self._opened()
        if stream is not None and stream.subprotocol == _CLOSABLE:
            await self._send(bytes([_CLOSE, _STDIN]))

    async def resize(self, rows: int, columns: int) -> None:
        size = json.dumps({"Width": columns, "Height": rows})
        await self._send(bytes([_RESIZE]) + size.encode())

    def close(self) -> None:
        self._is_closed = True
        if self._stream is not None:
            self._stream.transport.abort()

    async def _send(self, message: bytes) -> None:
        """Who reads no more is not sent any more."""
        stream = await self._opened()
        if stream is not None:
            with contextlib.suppress(ConnectionClosed):
                await stream.send(message)

    async def _opened(self) -> ClientConnection | None:
        """None where it cannot be, or need not be any more."""
        async with self._opening:
            if self._stream is None and self._failure is None and not self._is_closed:
                await self._open()
        return self._stream

    async def _open(self) -> None:
        url, secure = f"{self._way.server}{self._path()}", self._way.server.startswith("https:")
        try:
            self._stream = await connect(
                url.replace("http", "ws", 1),
                ssl=self._way.tls if secure else None,
                server_hostname=self._way.server_name if secure else None,
                subprotocols=_spoken(self._wanted),
                additional_headers=self._way.headers,
                open_timeout=_OPENS_WITHIN_S,
                ping_interval=None,
                max_size=_LARGEST,
            )
        except InvalidStatus as error:
            self._fail(_said(bytes(error.response.body or b"")) or str(error))
        except (WebSocketException, OSError, TimeoutError) as error:
            self._fail(f"the cluster does not answer: {error}")

    def _path(self) -> str:
        match self._wanted:
            case RunInside(container=container, argv=argv, stdin=stdin, tty=tty):
                words = [("command", each) for each in argv]
                asked = [*_streams(container, stdin=stdin, tty=tty), *words]
                return f"{self._pod}/exec?{urlencode(asked)}"
            case AttachTo(container=container, stdin=stdin):
                asked = _streams(container, stdin=stdin, tty=container in self._terminals)
                return f"{self._pod}/attach?{urlencode(asked)}"
            case ConnectTo(port=port):
                return f"{self._pod}/portforward?{urlencode([('ports', str(port))])}"

    def _taken(self, channel: int, content: bytes) -> tuple[int, bytes] | None:
        """What of it is for the visitor."""
        if isinstance(self._wanted, ConnectTo):
            return self._of_port(channel, content)
        if channel in {STDOUT, STDERR} and content:
            return channel, content
        if channel == _OUTCOME:
            self._end(content)
        return None

    def _of_port(self, channel: int, content: bytes) -> tuple[int, bytes] | None:
        if channel not in self._heard:
            # Each channel begins with the number of its port.
            self._heard.add(channel)
            content = content[_PORT_BYTES:]
        if channel == _WRONG and content:
            self._failure = plain(content.decode(errors="replace"))
        return (STDOUT, content) if channel == _DATA and content else None

    def _end(self, content: bytes) -> None:
        """How the command ended, as a Status says it."""
        status = _json(content)
        if status.get("status") == "Success":
            self._exit_code = 0
            return
        details: Mapping[str, Any] = status.get("details") or {}
        causes: Sequence[Mapping[str, Any]] = details.get("causes") or ()
        codes = [each.get("message") for each in causes if each.get("reason") == "ExitCode"]
        if codes and str(codes[0]).isdecimal():
            self._exit_code = int(str(codes[0]))
        else:
            self._fail(_reason(str(status.get("message") or "the command could not be run")))

    def _last(self) -> tuple[int, bytes]:
        is_over = self._exit_code is not None or isinstance(self._wanted, ConnectTo)
        if is_over or self._is_closed:
            return STDOUT, b""
        raise ConnectionError("the pod is gone")

    def _fail(self, why: str) -> None:
        self._failure, self._exit_code = why, NOT_STARTED


def _spoken(wanted: Visit) -> list[Subprotocol]:
    return [_PLAIN] if isinstance(wanted, ConnectTo) else [_CLOSABLE, _PLAIN]


def _streams(container: str, *, stdin: bool, tty: bool) -> list[tuple[str, str]]:
    asked = [("container", container), ("stdout", "true")]
    asked += [("tty", "true")] if tty else [("stderr", "true")]
    return [*asked, ("stdin", "true")] if stdin else asked


def _reason(message: str) -> str:
    """Without what whoever shows it puts in front of it too; it names the program in its end."""
    shown = "".join(each for each in message[:_LONGEST_REASON] if each.isprintable())
    return _AROUND.sub("", shown, count=1)


def _json(content: bytes) -> Mapping[str, Any]:
    found: Any = None
    with contextlib.suppress(ValueError):
        found = json.loads(content)
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def _said(body: bytes) -> str:
    """Kubelets say it in plain text, and API servers in a Status."""
    return plain(_json(body).get("message") or body.decode(errors="replace"))
