"""The server's protocols, taught who is at the other end, and to wait for nobody for ever."""

import asyncio
import socket
import struct
import urllib.parse
from collections.abc import Mapping
from typing import Any, cast

import httptools
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from muster.doors.rest.auth import PEER
from muster.doors.rest.connections import (
    REFUSED_AFTER_S,
    STREAMS_OF_ONE_PEER,
    Connections,
    Peer,
)
from muster.doors.rest.upgraded import Upgraded

HEAD_S = 10.0
"""So long a client has for the head of a request, from its first byte, or from connecting."""

BODY_S = 60.0
"""And so long for its body."""

TAKE_S = 60.0
"""So long a client may take nothing of an answer that waits for it."""

MOST_HEAD = 256 * 1_024
"""In bytes: the line of a request with its parameters, and all headers."""

MOST_FRAGMENTS = 4_096
"""Of one message of a WebSocket."""

CONNECTIONS = "muster.connections"
"""In the state that protocols are given: who is connected."""

UPGRADES = "muster.upgrades"
"""And what else than WebSocket the application speaks, in small letters."""

STREAM = "muster.stream"
"""In a request's scope: call it before an answer that goes on; False if the peer has enough."""

_PROTOCOLS = "Sec-WebSocket-Protocol"
_CREDENTIALS = struct.Struct("3i")

_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 2\r\nconnection: close\r\n"
    b"content-type: application/problem+json\r\ncontent-length: %d\r\n\r\n%b"
)
_TOO_MANY = b'{"kind":"busy","text":"You have too many connections here; close some of them."}'
_AND_CLOSE = b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large" + _AND_CLOSE
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout" + _AND_CLOSE


class PeerHttp(HttpToolsProtocol):
    """HTTP; `scope["client"]` is ("uid", 1000) on a unix socket.

    A request has its turn from its first byte until its answer is taken; see `connections.py`.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", transport))
        self.client = peer(transport) or self.client
        self._key = key_of(self.client)
        self._peer: Peer | None = connections_of(self.app_state).enter(self._key)
        self._has_turn = False
        self._is_stream = False
        self._in_head = False
        self._head_size = 0
        self._held = b""
        self._timer: asyncio.TimerHandle | None = None
        self._taking: asyncio.TimerHandle | None = None
        self._is_kept = self._peer is None and connections_of(self.app_state).refuse_later()
        if self._is_kept:
            # Whatever it sends meanwhile stays unread.
            self.transport.pause_reading()
            self._timer = self.loop.call_later(REFUSED_AFTER_S, self._refuse)
        elif self._peer is None:
            self._refuse()
        else:
            self._expect(HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._expect(None)
        self._await_taking(is_paused=False)
        self._end_turn()
        self._leave()
        if self._is_kept:
            self._is_kept = False
            connections_of(self.app_state).refused()

    def data_received(self, data: bytes) -> None:
        if self._peer is None or self.transport.is_closing():
            return
        if not self._has_turn and not self._is_stream and not self._may_begin(data):
            return
        super().data_received(data)
        if self._in_head:
            self._head_size += len(data)
            if self._head_size > MOST_HEAD and not self.transport.is_closing():
                self.transport.write(_TOO_LONG)
                self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_size = True, 0
        cast("dict[str, Any]", self.scope)[STREAM] = self._begin_stream

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._expect(BODY_S)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._expect(None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_stream and self._peer is not None:
            self._is_stream = False
            self._peer.streams -= 1
        if self.pipeline:
            return
        # Who does not take an answer keeps its turn, so that answers do not pile up here.
        if not self.flow.write_paused:
            self._end_turn()

    def handle_websocket_upgrade(self) -> None:
        """The connection goes over to the other protocol, which counts it from now on."""
        self._expect(None)
        self._end_turn()
        if self._is_other_upgrade():
            self._hand_over()
        else:
            super().handle_websocket_upgrade()
        self._leave()

    def _should_upgrade(self) -> bool:
        return self._is_other_upgrade() or super()._should_upgrade()

    def _is_other_upgrade(self) -> bool:
        return self._get_upgrade() in self.app_state.get(UPGRADES, ())

    def _hand_over(self) -> None:
        entered = _enter_stream(self.app_state, self._key)
        if entered is None:
            self.transport.close()
            return
        address = httptools.parse_url(self.url)
        path = urllib.parse.unquote(address.path.decode("ascii"))
        scope = {**self.scope, "path": path, "query_string": address.query or b""}
        # The connection itself is counted as one that goes on.
        del scope[STREAM]
        state, key, connections = self.app_state, self._key, self.server_state.connections

        def left() -> None:
            connections.discard(cast("Any", protocol))
            _leave_stream(state, key, entered)

        app = cast("ASGIApp", self.app)  # pyright: ignore[reportUnknownMemberType] -- uvicorn's union
        protocol = Upgraded(app, scope, left)
        self.connections.discard(self)
        connections.add(cast("Any", protocol))
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        self.transport.resume_reading()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_taking(is_paused=True)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._await_taking(is_paused=False)
        cycle = self._cycle_or_none()
        if cycle is not None and cycle.response_complete and not self.pipeline:
            self._end_turn()

    def _refuse(self) -> None:
        self._timer = None
        self.transport.write(_BUSY % (len(_TOO_MANY), _TOO_MANY))
        self.transport.close()

    def _cycle_or_none(self) -> RequestResponseCycle | None:
        """What is being answered; uvicorn has none before the first request."""
        return cast("RequestResponseCycle | None", self.cycle)

    def _may_begin(self, data: bytes) -> bool:
        """Begin with a request, or keep what came of it unread until others are answered."""
        if self._held:
            self._held += data
            return False
        self._held = data
        peer = self._peer
        if peer is None or not peer.ask(self._begin):
            self._expect(None)
            self.transport.pause_reading()
            return False
        self._has_turn, self._held = True, b""
        self._expect(HEAD_S)
        return True

    def _begin(self) -> None:
        """The turn has come; called while another connection ends its own."""
        self._has_turn = True
        self.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        held, self._held = self._held, b""
        if self.transport.is_closing():
            self._end_turn()
            return
        self.transport.resume_reading()
        self._expect(HEAD_S)
        self.data_received(held)

    def _begin_stream(self) -> bool:
        """The answer goes on and on: it needs a connection and no turn."""
        peer = self._peer
        if peer is None or peer.streams >= STREAMS_OF_ONE_PEER:
            return False
        peer.streams += 1
        self._is_stream = True
        self._end_turn()
        return True

    def _end_turn(self) -> None:
        if self._peer is None:
            return
        self._peer.give_up(self._begin)
        if self._has_turn:
            self._has_turn = False
            self._peer.done()

    def _leave(self) -> None:
        if self._peer is not None:
            self._peer.streams -= self._is_stream
            self._peer = None
            connections_of(self.app_state).leave(self._key)

    def _expect(self, within_s: float | None) -> None:
        """More must come from the client within this time; None: nothing need come."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = (
            None if within_s is None else self.loop.call_later(within_s, self._give_up_waiting)
        )

    def _give_up_waiting(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        cycle = self._cycle_or_none()
        is_answering = cycle is not None and cycle.response_started and not cycle.response_complete
        if self._has_turn and not is_answering:
            self.transport.write(_TOO_SLOW)
        self.transport.close()

    def _await_taking(self, *, is_paused: bool) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None
        if is_paused:
            self._taking = self.loop.call_later(TAKE_S, self.transport.abort)


class PeerWebSocket(WebSocketsSansIOProtocol):
    """The same for websockets: each is an answer that goes on."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.client = peer(transport) or self.client
        self._key = key_of(self.client)
        self._peer: Peer | None = _enter_stream(self.app_state, self._key)
        if self._peer is None:
            transport.close()

    def handle_connect(self, event: Request) -> None:
        """Names of protocols are passed on as they are: Kubernetes' have a slash in them."""
        offered = event.headers.get_all(_PROTOCOLS)
        if offered:
            del event.headers[_PROTOCOLS]
        super().handle_connect(event)
        if self.close_sent:
            return
        named = (each.strip() for text in offered for each in text.split(","))
        self.scope["subprotocols"] = [each for each in named if each]

    def handle_cont(self, event: Frame) -> None:
        """Empty fragments are no bytes of a message, and yet something to remember."""
        if len(self.frames) >= MOST_FRAGMENTS:
            self.transport.close()
            return
        super().handle_cont(event)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._peer is not None:
            _leave_stream(self.app_state, self._key, self._peer)
            self._peer = None


def _enter_stream(state: Mapping[str, Any], key: tuple[str, object]) -> Peer | None:
    """One more connection that goes on; None if the peer has enough."""
    entered = connections_of(state).enter(key)
    if entered is None:
        return None
    if entered.streams >= STREAMS_OF_ONE_PEER:
        connections_of(state).leave(key)
        return None
    entered.streams += 1
    return entered


def _leave_stream(state: Mapping[str, Any], key: tuple[str, object], entered: Peer) -> None:
    entered.streams -= 1
    connections_of(state).leave(key)


def connections_of(state: Mapping[str, Any]) -> Connections:
    """What all protocols of one server process share."""
    shared: Connections = state[CONNECTIONS]
    return shared


def key_of(client: tuple[str, int] | None) -> tuple[str, object]:
    """Who shares one limit: a user on this machine, or an address elsewhere, whatever its port."""
    if client is None:
        return ("host", "")
    return client if client[0] == PEER else ("host", client[0])


def peer(transport: asyncio.BaseTransport) -> tuple[str, int] | None:
    """The uid of the process that connected, as the kernel noted it then; None over TCP."""
    connection: socket.socket | None = transport.get_extra_info("socket")
    if connection is None or connection.family != socket.AF_UNIX:
        return None
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(raw)
    return PEER, uid
