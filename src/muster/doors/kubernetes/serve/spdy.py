"""SPDY/3.1 as clients of Kubernetes speak it: many streams in one connection. Bytes in, bytes out.

There is no flow control: those clients have none either. What is larger than any of them sends is
an error, and so is everything that cannot be read; the connection is ended then.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping

from muster.model.value import Value

LARGEST_FRAME = 1 << 20
LARGEST_HEADERS = 1 << 16
MOST_HEADERS = 100

_VERSION = 3
_CONTROL = 0x8000
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY = 1, 2, 3, 6, 7
_FIN = 0x01
_CANCEL = 5
_NUMBER = struct.Struct("!I")
_HEAD = struct.Struct("!II")
_OPENING = struct.Struct("!IIBB")
_MASK = 0x7FFF_FFFF

_NAMES = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language "
    "accept-ranges age allow authorization cache-control connection content-base "
    "content-encoding content-language content-length content-location content-md5 "
    "content-range content-type date etag expect expires from host if-match if-modified-since "
    "if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer "
    "transfer-encoding upgrade user-agent vary via warning www-authenticate method get status"
).split()
_MORE_NAMES = "version HTTP/1.1 url public set-cookie keep-alive origin".split()
_CODES = (
    "100 101 201 202 205 206 300 302 303 304 305 306 307 402 405 406 407 408 409 410 411 412 413 "
    "414 415 416 417 502 504 505"
).split()
_TEXTS = (
    "203 Non-Authoritative Information",
    "204 No Content",
    "301 Moved Permanently",
    "400 Bad Request",
    "401 Unauthorized",
    "403 Forbidden",
    "404 Not Found",
    "500 Internal Server Error",
    "501 Not Implemented",
    "503 Service Unavailable",
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, ",
    "GMT",
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,",
    "text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdch",
    "charset=utf-8charset=iso-8859-1,utf-,*,enq=0.",
)


def _prefixed(text: str) -> bytes:
    return _NUMBER.pack(len(text)) + text.encode()


DICTIONARY = b"".join(
    (
        *map(_prefixed, (*_NAMES, "200 OK", *_MORE_NAMES)),
        "".join((*_CODES, *_TEXTS)).encode(),
    )
)
"""What both ends know before the first header is sent; the protocol says what it is."""


class SpdyError(Exception):
    """What came is no SPDY, or too much of it."""


class Opened(Value):
    """The client opened a stream."""

    stream: int
    headers: Mapping[str, str]
    is_last: bool


class Came(Value):
    """Something came on a stream. is_last: and nothing more will."""

    stream: int
    content: bytes
    is_last: bool


class Reset(Value, gc=False):
    """The client gave a stream up."""

    stream: int


class Pinged(Value, gc=False):
    """The client wants to know whether we are there."""

    id: int


class GoneAway(Value, gc=False):
    """The client opens no more streams."""


Frame = Opened | Came | Reset | Pinged | GoneAway


class SpdyReader:
    """Cuts what a client sends into frames."""

    def __init__(self) -> None:
        self._rest = b""
        self._headers = zlib.decompressobj(zdict=DICTIONARY)

    def take(self, received: bytes) -> Iterator[Frame]:
        """The frames that are complete now; SpdyError when this cannot be read."""
        self._rest += received
        while len(self._rest) >= _HEAD.size:
            first, second = _HEAD.unpack_from(self._rest)
            flags, length = second >> 24, second & 0xFF_FFFF
            if length > LARGEST_FRAME:
                raise SpdyError("a frame is too large")
            end = _HEAD.size + length
            if len(self._rest) < end:
                return
            content, self._rest = self._rest[_HEAD.size : end], self._rest[end:]
            found = self._frame(first, flags, content)
            if found is not None:
                yield found

    def _frame(self, first: int, flags: int, content: bytes) -> Frame | None:
        is_last = bool(flags & _FIN)
        if not first >> 16 & _CONTROL:
            return Came(stream=first & _MASK, content=content, is_last=is_last)
        if first >> 16 & ~_CONTROL != _VERSION:
            raise SpdyError("another version of SPDY")
        try:
            match first & 0xFFFF:
                case 1:
                    stream, _, _, _ = _OPENING.unpack_from(content)
                    headers = self._read(content[_OPENING.size :])
                    return Opened(stream=stream & _MASK, headers=headers, is_last=is_last)
                case 3:
                    return Reset(stream=_NUMBER.unpack_from(content)[0] & _MASK)
                case 6:
                    return Pinged(id=_NUMBER.unpack_from(content)[0])
                case 7:
                    return GoneAway()
                case 8:
                    # Nobody uses them; they are read because the next ones build on them.
                    self._read(content[_NUMBER.size :])
                    return None
                case _:
                    return None
        except (struct.error, zlib.error, UnicodeDecodeError):
            raise SpdyError("a frame cannot be read") from None

    def _read(self, packed: bytes) -> dict[str, str]:
        text = self._headers.decompress(packed, LARGEST_HEADERS)
        if self._headers.unconsumed_tail:
            raise SpdyError("headers are too large")
        (count,) = _NUMBER.unpack_from(text)
        if count > MOST_HEADERS:
            raise SpdyError("there are too many headers")
        at, words = _NUMBER.size, list[str]()
        for _ in range(2 * count):
            (length,) = _NUMBER.unpack_from(text, at)
            at += _NUMBER.size + length
            if at > len(text):
                raise SpdyError("headers end too soon")
            words.append(text[at - length : at].decode())
        return {name.lower(): value for name, value in zip(words[::2], words[1::2], strict=True)}


class SpdyWriter:
    """Makes what a client is sent."""

    def __init__(self) -> None:
        self._headers = zlib.compressobj(zdict=DICTIONARY)

    def reply(self, stream: int) -> bytes:
        """The stream is taken."""
        packed = self._headers.compress(_NUMBER.pack(0)) + self._headers.flush(zlib.Z_SYNC_FLUSH)
        return _control(_SYN_REPLY, _NUMBER.pack(stream) + packed)

    def data(self, stream: int, content: bytes, *, is_last: bool = False) -> bytes:
        return _HEAD.pack(stream, (_FIN << 24 if is_last else 0) | len(content)) + content

    def reset(self, stream: int) -> bytes:
        """The stream is given up."""
        return _control(_RST_STREAM, _HEAD.pack(stream, _CANCEL))

    def ping(self, id: int) -> bytes:
        return _control(_PING, _NUMBER.pack(id))

    def go_away(self) -> bytes:
        """Nothing more is taken."""
        return _control(_GOAWAY, _HEAD.pack(0, 0))


def _control(kind: int, content: bytes) -> bytes:
    return _HEAD.pack((_CONTROL | _VERSION) << 16 | kind, len(content)) + content
