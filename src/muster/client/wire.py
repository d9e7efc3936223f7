"""HTTP/1.1 over one kept connection: as much of it as our own server speaks.

The library's `http.client` takes 25 ms to import, most of it for mail headers, which would be half
of the time that a short command takes.
"""

import select
import socket
import struct
from collections.abc import Iterator, Mapping
from typing import BinaryIO, Self

from muster.client.address import Address
from muster.client.errors import LostAnswerError, UnreachableError
from muster.model.value import Value

PATIENCE_S = 60.0
"""How long an answer may take; streams may be silent for as long between two heartbeats."""

REPEATABLE = frozenset({"GET", "PUT", "DELETE"})
"""Asked twice, they come to the same: these are sent again when a kept connection was stale."""

LONGEST_LINE = 65_536


class HttpResponse(Value):
    """The head of a response; header names are in small letters."""

    status: int
    headers: Mapping[str, str]


class HttpRequest(Value):
    """What to send."""

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = {}


class Wire:
    """One connection, opened when it is needed. Not for several threads at once."""

    def __init__(self, address: Address, headers: Mapping[str, str]) -> None:
        self._address = address
        self._fixed = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._socket: socket.socket | None = None
        self._read: BinaryIO | None = None

    def ask(self, request: HttpRequest) -> tuple[HttpResponse, bytes]:
        """Send, and read the whole answer."""
        answer = self._begin(request)
        try:
            body = b"".join(self._body(answer))
        except OSError as broken:
            self.close()
            raise _lost(request, broken) from broken
        if answer.headers.get("connection", "").lower() == "close":
            self.close()
        return answer, body

    def stream(self, request: HttpRequest, patience_s: float | None) -> "Stream":
        """Send, and give the answer as it comes; nothing else may be asked meanwhile.

        patience_s: how long it may be silent; None for ever, as a job may be.
        """
        answer = self._begin(request)
        connection, _ = self._connected()
        connection.settimeout(patience_s)
        return Stream(self, request, answer, self._body(answer))

    def close(self) -> None:
        """Hang up; the next request connects again."""
        if self._read is not None:
            self._read.close()
        if self._socket is not None:
            self._socket.close()
        self._read = self._socket = None

    def _begin(self, request: HttpRequest) -> HttpResponse:
        if self._is_stale():
            self.close()
        kept = self._socket is not None
        try:
            return self._exchange(request)
        except OSError as broken:
            self.close()
            if not kept or request.method not in REPEATABLE:
                raise _lost(request, broken) from broken
        try:
            return self._exchange(request)
        except OSError as broken:
            self.close()
            raise _lost(request, broken) from broken

    def _is_stale(self) -> bool:
        """Has the server hung up on a kept connection, or sent something unasked?"""
        if self._socket is None:
            return False
        look = select.poll()
        look.register(self._socket, select.POLLIN)
        return bool(look.poll(0))

    def _exchange(self, request: HttpRequest) -> HttpResponse:
        connection, read = self._connected()
        body = request.body or b""
        length = f"content-length: {len(body)}\r\n" if request.body is not None else ""
        own = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
        head = f"{request.method} {request.path} HTTP/1.1\r\n{self._fixed}{length}{own}\r\n"
        connection.sendall(head.encode("latin-1") + body)
        return _head(read)

    def _connected(self) -> tuple[socket.socket, BinaryIO]:
        if self._socket is None or self._read is None:
            self._socket = connected(self._address)
            self._read = self._socket.makefile("rb")
        return self._socket, self._read

    def _body(self, answer: HttpResponse) -> Iterator[bytes]:
        _, read = self._connected()
        if answer.headers.get("transfer-encoding", "").lower() == "chunked":
            return _chunks(read)
        return _sized(read, int(answer.headers.get("content-length", 0)))


class Stream(Iterator[bytes]):
    """An answer as it comes. Hangs up when it is over or closed."""

    def __init__(
        self, wire: Wire, request: HttpRequest, answer: HttpResponse, parts: Iterator[bytes]
    ) -> None:
        self.answer = answer
        self._wire = wire
        self._request = request
        self._parts = parts

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __next__(self) -> bytes:
        try:
            return next(self._parts)
        except StopIteration:
            self.close()
            raise
        except OSError as broken:
            self.close()
            raise _lost(self._request, broken) from broken

    def close(self) -> None:
        """Hang up."""
        self._wire.close()


def connected(address: Address) -> socket.socket:
    """A connected socket, with TLS where the address says so; UnreachableError says what to do."""
    try:
        if address.socket is not None:
            return _unix(address.socket)
        plain = socket.create_connection((address.host, address.port), timeout=PATIENCE_S)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A stream may be silent for hours; this way a server that is gone is noticed all the same.
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    except PermissionError as refused:
        text = f"You may not use {address.text}: it belongs to another user's Muster."
        raise UnreachableError(text) from refused
    except OSError as refused:
        raise UnreachableError(_unreachable(address, refused)) from refused
    return _secured(plain, address) if address.secure else plain


def _unix(path: str) -> socket.socket:
    plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # The system lets us wait while many connect at once; a socket with Python's own time-out
        # would be told at once that it is not its turn.
        patience = struct.pack("@ll", int(PATIENCE_S), 0)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, patience)
        plain.connect(path)
        plain.settimeout(PATIENCE_S)
    except OSError:
        plain.close()
        raise
    return plain


def _secured(plain: socket.socket, address: Address) -> socket.socket:
    # Only here, because it takes as long to import as everything else together.
    import ssl  # noqa: PLC0415

    try:
        trusted = ssl.create_default_context(cafile=address.ca)
        return trusted.wrap_socket(plain, server_hostname=address.host)
    except (OSError, ssl.SSLError) as refused:
        plain.close()
        raise UnreachableError(
            f"{address.text} cannot be trusted ({refused}); "
            "name the file with its certificate in MUSTER_CA."
        ) from refused


def _unreachable(address: Address, refused: OSError) -> str:
    if address.socket is not None:
        return f"Muster does not run here; start it with: muster up ({address.text})"
    return f"{address.text} does not answer ({refused}); is the address right, and does it run?"


def _lost(request: HttpRequest, broken: OSError) -> LostAnswerError:
    advice = (
        "ask again" if request.method == "GET" else "look whether it was done before you ask again"
    )
    return LostAnswerError(f"The connection broke before the answer came ({broken}); {advice}.")


def _head(read: BinaryIO) -> HttpResponse:
    while True:
        status = _status(_line(read))
        headers: dict[str, str] = {}
        while line := _line(read):
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        if status >= 200:
            return HttpResponse(status=status, headers=headers)


def _status(line: bytes) -> int:
    version, _, rest = line.partition(b" ")
    if not version.startswith(b"HTTP/1.") or not rest[:3].isdigit():
        raise ConnectionError("what answers there does not speak HTTP/1.1")
    return int(rest[:3])


def _line(read: BinaryIO) -> bytes:
    line = read.readline(LONGEST_LINE)
    if not line.endswith(b"\n"):
        raise ConnectionError("the server hung up")
    return line.rstrip(b"\r\n")


def _sized(read: BinaryIO, length: int) -> Iterator[bytes]:
    while length:
        part = read.read(length)
        if not part:
            raise ConnectionError("the server hung up in the middle of an answer")
        length -= len(part)
        yield part


def _chunks(read: BinaryIO) -> Iterator[bytes]:
    while size := int(_line(read).split(b";")[0], 16):
        yield from _sized(read, size)
        _line(read)
    while _line(read):
        pass
