"""Asks a server of gRPC how it is (grpc.health.v1), in as much of HTTP/2 as that takes."""

import socket
import struct
import time

SERVING = 1
_WORDS = {0: "UNKNOWN", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GO_AWAY = 0, 1, 3, 4, 6, 7
_ACK = _ENDS_STREAM = 1
_ENDS_HEADERS, _PADDED = 4, 8
_STREAM = 1
_MOST_FRAME, _MOST_FRAMES = 16_384, 100
_POST, _PLAIN_HTTP = b"\x83", b"\x86"
"""Whole headers of the static table of HPACK: `:method: POST` and `:scheme: http`."""

_AUTHORITY, _PATH, _CONTENT_TYPE = b"\x01", b"\x04", b"\x0f\x10"
"""Names of that table, whose values follow."""


class NoHealthError(Exception):
    """It is not well, or does not say; the text is why."""


def demand_serving(host: str, port: int, service: str, timeout_s: int) -> None:
    """NoHealthError unless the server says within this time that it serves. OSError: nobody is."""
    until = time.monotonic() + timeout_s
    with socket.create_connection((host, port), timeout_s) as wire:
        wire.sendall(_PREFACE + _frame(_SETTINGS, b""))
        wire.sendall(_frame(_HEADERS, _headers(f"{host}:{port}"), _ENDS_HEADERS, _STREAM))
        wire.sendall(_frame(_DATA, _question(service), _ENDS_STREAM, _STREAM))
        status = _status(_answer(wire, until))
    if status != SERVING:
        raise NoHealthError(f'service unhealthy (responded with "{_WORDS.get(status, status)}")')


def _frame(kind: int, content: bytes, flags: int = 0, stream: int = 0) -> bytes:
    return struct.pack(">I", len(content))[1:] + struct.pack(">BBI", kind, flags, stream) + content


def _headers(authority: str) -> bytes:
    return b"".join(
        (
            _POST,
            _PLAIN_HTTP,
            _PATH + _text(b"/grpc.health.v1.Health/Check"),
            _AUTHORITY + _text(authority.encode()[:127]),
            _CONTENT_TYPE + _text(b"application/grpc"),
            b"\x00" + _text(b"te") + _text(b"trailers"),
        )
    )


def _text(value: bytes) -> bytes:
    """A text of HPACK as it is; lengths up to 127 take one byte."""
    return bytes((len(value),)) + value


def _question(service: str) -> bytes:
    """A HealthCheckRequest: the service is its first field, and left out where it is empty."""
    name = service.encode()
    message = b"\x0a" + _varint(len(name)) + name if name else b""
    return struct.pack(">BI", 0, len(message)) + message


def _varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*found, number))


def _answer(wire: socket.socket, until: float) -> bytes:
    """What came as the body of the answer."""
    body = b""
    for _ in range(_MOST_FRAMES):
        length, kind, flags, stream = _head(_taken(wire, 9, until))
        if length > _MOST_FRAME:
            break
        content = _taken(wire, length, until)
        if kind in (_RESET, _GO_AWAY):
            break
        if kind in (_SETTINGS, _PING) and not flags & _ACK:
            wire.sendall(_frame(kind, content if kind == _PING else b"", _ACK))
        if kind == _DATA and stream == _STREAM:
            body += content[1 : -content[0] or None] if flags & _PADDED else content
        if kind in (_DATA, _HEADERS) and stream == _STREAM and flags & _ENDS_STREAM:
            return body
    raise NoHealthError("health rpc failed: the server broke the answer off")


def _head(nine: bytes) -> tuple[int, int, int, int]:
    length = int.from_bytes(nine[:3], "big")
    kind, flags, stream = struct.unpack(">BBI", nine[3:])
    return length, kind, flags, stream & 0x7FFFFFFF


def _taken(wire: socket.socket, count: int, until: float) -> bytes:
    found = b""
    while len(found) < count:
        left_s = until - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        wire.settimeout(left_s)
        more = wire.recv(count - len(found))
        if not more:
            raise NoHealthError("health rpc failed: the server closed the connection")
        found += more
    return found


def _status(body: bytes) -> int:
    """Of a HealthCheckResponse, whose first field it is; what is not there is 0."""
    if len(body) < 5:
        raise NoHealthError("this server does not implement the grpc health protocol")
    message = body[5:]
    return message[1] if message[:1] == b"\x08" and len(message) > 1 else 0
