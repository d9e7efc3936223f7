import asyncio
import json

from muster.doors.kubernetes.serve.channels import V1, V4
from muster.doors.kubernetes.serve.pod_visits import Visitor
from muster.doors.kubernetes.serve.spdy import Came, SpdyReader
from muster.doors.kubernetes.serve.spdy_channels import SpdyChannels
from muster.model.running import STDERR, STDOUT
from muster.model.value import replace
from unit.doors.kubernetes.serve.test_channels import VISITOR, Scripted
from unit.doors.kubernetes.serve.test_spdy import Client, control, data

ERROR, STDIN, OUT, ERR, RESIZE = 1, 3, 5, 7, 9
NAMES = {ERROR: "error", STDIN: "stdin", OUT: "stdout", ERR: "stderr", RESIZE: "resize"}


def opened(client: Client, *streams: int) -> bytes:
    return b"".join(client.opens(each, {"Streamtype": NAMES[each]}) for each in streams)


def visited(
    stream: Scripted, sent: bytes, *, visitor: Visitor = VISITOR, protocol: str = V4
) -> list[bytes]:
    """What a client is sent, which sends this at once."""
    frames: list[bytes] = []

    async def send(frame: bytes) -> None:
        frames.append(frame)

    async def visit() -> None:
        spoken = SpdyChannels(visitor, stream, protocol, send)
        await spoken.take(sent)
        await spoken.show()

    asyncio.run(visit())
    return frames


def written(frames: list[bytes]) -> dict[int, bytes]:
    """By stream; only those that were ended."""
    found: dict[int, bytes] = {}
    ended: set[int] = set()
    for frame in (each for every in frames if every[0] < 0x80 for each in SpdyReader().take(every)):
        assert isinstance(frame, Came)
        found[frame.stream] = found.get(frame.stream, b"") + frame.content
        ended |= {frame.stream} if frame.is_last else set()
    return {stream: content for stream, content in found.items() if stream in ended}


def test_output_comes_on_its_streams_and_at_last_how_it_ended() -> None:
    stream = Scripted((STDOUT, b"x" * 70_000), (STDERR, b"oh"), code=3)

    found = written(visited(stream, opened(Client(), ERROR, STDIN, OUT, ERR)))

    assert (found[OUT], found[ERR]) == (b"x" * 70_000, b"oh")
    assert json.loads(found[ERROR])["details"]["causes"][0]["message"] == "3"


def test_input_goes_in_and_ends() -> None:
    stream = Scripted()
    sent = opened(Client(), ERROR, STDIN, OUT, ERR) + data(STDIN, b"in") + data(STDIN, b"", flags=1)

    visited(stream, sent)

    assert stream.sent == [b"in", "end"]


def test_a_terminal_has_its_size() -> None:
    stream = Scripted()
    client = Client()
    size = data(RESIZE, b'{"Width":80,"Height":24}\n')

    visited(stream, opened(client, ERROR, STDIN, OUT, ERR, RESIZE) + size)

    assert stream.sent == [(24, 80)]


def test_before_v4_only_a_failure_is_told_in_words() -> None:
    well = visited(Scripted(), opened(Client(), ERROR, STDIN, OUT, ERR), protocol=V1)
    badly = visited(Scripted(code=3), opened(Client(), ERROR, STDIN, OUT, ERR), protocol=V1)

    assert written(well)[ERROR] == b""
    assert written(badly)[ERROR].endswith(b"exit code 3")


def test_streams_that_nobody_asked_for_are_reset() -> None:
    quiet = replace(VISITOR, stdin=False, stderr=False)
    client = Client()

    frames = visited(Scripted(), opened(client, ERROR, OUT, OUT, STDIN), visitor=quiet)

    kinds = [frame[3] for frame in frames if frame[0] >= 0x80]
    assert kinds == [2, 2, 3, 3]


def test_a_ping_is_answered() -> None:
    sent = opened(Client(), ERROR, STDIN, OUT, ERR) + control(6, b"\x00\x00\x00\x01")

    assert control(6, b"\x00\x00\x00\x01") in visited(Scripted(), sent)
