import struct
import zlib

import pytest

from muster.doors.kubernetes.serve.spdy import (
    DICTIONARY,
    LARGEST_FRAME,
    LARGEST_HEADERS,
    Came,
    Frame,
    GoneAway,
    Opened,
    Pinged,
    Reset,
    SpdyError,
    SpdyReader,
    SpdyWriter,
)

ADLER_OF_THE_PROTOCOL = 0xE3C6A7C2


class Client:
    """The other end, as far as a server must understand it."""

    def __init__(self) -> None:
        self._headers = zlib.compressobj(zdict=DICTIONARY)

    def opens(self, stream: int, headers: dict[str, str], *, is_last: bool = False) -> bytes:
        block = struct.pack("!I", len(headers))
        for word in (each for pair in headers.items() for each in pair):
            block += struct.pack("!I", len(word)) + word.encode()
        packed = self._headers.compress(block) + self._headers.flush(zlib.Z_SYNC_FLUSH)
        return control(1, struct.pack("!IIBB", stream, 0, 0, 0) + packed, flags=int(is_last))


def control(kind: int, content: bytes, flags: int = 0, version: int = 3) -> bytes:
    return struct.pack("!HHI", 0x8000 | version, kind, flags << 24 | len(content)) + content


def data(stream: int, content: bytes, flags: int = 0) -> bytes:
    return struct.pack("!II", stream, flags << 24 | len(content)) + content


def read(sent: bytes) -> list[Frame]:
    return list(SpdyReader().take(sent))


def test_the_dictionary_is_that_of_the_protocol() -> None:
    assert zlib.adler32(DICTIONARY) == ADLER_OF_THE_PROTOCOL


def test_streams_are_opened_with_headers_that_build_on_those_before() -> None:
    client, reader = Client(), SpdyReader()
    first = client.opens(1, {"Streamtype": "error", "port": "80"}, is_last=True)
    second = client.opens(3, {"Streamtype": "data", "port": "80"})

    found = [*reader.take(first), *reader.take(second)]

    assert found == [
        Opened(stream=1, headers={"streamtype": "error", "port": "80"}, is_last=True),
        Opened(stream=3, headers={"streamtype": "data", "port": "80"}, is_last=False),
    ]


def test_frames_may_come_byte_by_byte() -> None:
    reader = SpdyReader()
    sent = data(3, b"hello", flags=1) + control(6, struct.pack("!I", 7))

    found = [frame for each in sent for frame in reader.take(bytes([each]))]

    assert found == [Came(stream=3, content=b"hello", is_last=True), Pinged(id=7)]


def test_other_frames_are_known_or_passed_over() -> None:
    reset, away = control(3, struct.pack("!II", 5, 5)), control(7, bytes(8))
    settings, window = control(4, bytes(12)), control(9, bytes(8))

    assert read(reset + settings + window + away) == [Reset(stream=5), GoneAway()]


@pytest.mark.parametrize(
    "sent",
    [
        struct.pack("!II", 3, LARGEST_FRAME + 1),
        control(6, bytes(4), version=2),
        control(6, b""),
        control(1, b"short"),
        control(1, bytes(10) + b"not zlib at all"),
        Client().opens(1, {"a": "x" * LARGEST_HEADERS}),
        Client().opens(1, {str(number): "" for number in range(200)}),
    ],
    ids="large-frame version no-ping short no-zlib large-headers many-headers".split(),
)
def test_what_cannot_be_read_is_an_error(sent: bytes) -> None:
    with pytest.raises(SpdyError):
        read(sent)


def test_a_client_can_read_what_is_written() -> None:
    writer = SpdyWriter()

    reply = writer.reply(3)

    assert reply[:4] == struct.pack("!HH", 0x8003, 2)
    assert zlib.decompressobj(zdict=DICTIONARY).decompress(reply[12:]) == bytes(4)
    assert read(writer.data(3, b"x", is_last=True)) == [Came(stream=3, content=b"x", is_last=True)]
    assert read(writer.reset(3) + writer.ping(9)) == [Reset(stream=3), Pinged(id=9)]
