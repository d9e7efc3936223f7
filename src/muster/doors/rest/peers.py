"""The server's protocols, taught to say who is at the other end of a unix socket."""

import asyncio
import socket
import struct
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from muster.doors.rest.auth import PEER

_CREDENTIALS = struct.Struct("3i")


class PeerHttp(HttpToolsProtocol):
    """HTTP; `scope["client"]` is ("uid", 1000) on a unix socket."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", transport))
        self.client = peer(transport) or self.client


class PeerWebSocket(WebSocketsSansIOProtocol):
    """The same for websockets."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.client = peer(transport) or self.client


def peer(transport: asyncio.BaseTransport) -> tuple[str, int] | None:
    """The uid of the process that connected, as the kernel noted it then; None over TCP."""
    connection: socket.socket | None = transport.get_extra_info("socket")
    if connection is None or connection.family != socket.AF_UNIX:
        return None
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(raw)
    return PEER, uid
