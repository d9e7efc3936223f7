import asyncio
import json

import pytest

from muster.controller.messages import Caller
from muster.doors.kubernetes.objects.rbac import User
from muster.doors.kubernetes.serve import channels
from muster.doors.kubernetes.serve.access import Identity
from muster.doors.kubernetes.serve.channels import V4, V5, BadFrameError
from muster.doors.kubernetes.serve.pod_visits import Visitor
from muster.model.running import STDERR, STDOUT, AttachTo, RunInside
from muster.model.value import JobId, UserName, replace

VISITOR = Visitor(
    identity=Identity(
        user=User(name="ann"), caller=Caller(user=UserName("ann"), door="kubernetes")
    ),
    pod="p",
    job=JobId(1),
    task=0,
    wanted=RunInside(container="main", argv=("cat",), stdin=True),
    stdin=True,
    stdout=True,
    stderr=True,
)


class Scripted:
    """A visit that says what it is told to, and remembers what it was sent."""

    def __init__(
        self, *comes: tuple[int, bytes], code: int = 0, failure: str | None = None
    ) -> None:
        self._comes = [*comes, (STDOUT, b"")]
        self.exit_code: int | None = code
        self.failure: str | None = failure
        self.sent: list[object] = []

    async def read(self) -> tuple[int, bytes]:
        return self._comes.pop(0)

    async def write(self, content: bytes) -> None:
        self.sent.append(content)

    async def end_input(self) -> None:
        self.sent.append("end")

    async def resize(self, rows: int, columns: int) -> None:
        self.sent.append((rows, columns))

    def close(self) -> None:
        self.sent.append("close")


def shown(stream: Scripted, visitor: Visitor = VISITOR, protocol: str = V5) -> list[bytes]:
    frames: list[bytes] = []

    async def send(frame: bytes) -> None:
        frames.append(frame)

    asyncio.run(channels.show(stream, visitor, send, protocol))
    return frames


def obeyed(*frames: bytes, protocol: str = V5, visitor: Visitor = VISITOR) -> list[object]:
    stream = Scripted()

    async def play() -> None:
        for frame in frames:
            await channels.obey(frame, stream, visitor, protocol)

    asyncio.run(play())
    return stream.sent


def test_what_comes_is_on_the_channel_of_its_stream() -> None:
    found = shown(Scripted((STDOUT, b"out"), (STDERR, b"err")))

    assert found[:2] == [b"\x01out", b"\x02err"]
    assert json.loads(found[2][1:]) == {"metadata": {}, "status": "Success"}


def test_a_stream_that_nobody_asked_for_is_not_sent() -> None:
    found = shown(Scripted((STDERR, b"err")), replace(VISITOR, stderr=False))

    assert [each[0] for each in found] == [channels.ERROR]


def test_an_exit_code_is_a_cause() -> None:
    status = json.loads(shown(Scripted(code=5))[0][1:])

    assert status["reason"] == "NonZeroExitCode"
    assert status["details"] == {"causes": [{"reason": "ExitCode", "message": "5"}]}


def test_the_end_of_a_container_is_no_failure_of_who_watched() -> None:
    watcher = replace(VISITOR, wanted=AttachTo(container="main"))

    assert json.loads(shown(Scripted(code=5), watcher)[0][1:])["status"] == "Success"


def test_a_command_that_cannot_start_is_an_internal_error() -> None:
    status = json.loads(shown(Scripted(code=126, failure="no such file"))[0][1:])

    assert (status["reason"], status["code"]) == ("InternalError", 500)
    assert status["message"].endswith("error executing command in container: no such file")


def test_frames_of_the_client_are_obeyed() -> None:
    size = b"\x04" + json.dumps({"Width": 80, "Height": 24}).encode()
    none = b"\x04" + json.dumps({"Width": 0, "Height": 0}).encode()

    assert obeyed(b"\x00hi", size, none, b"\xff\x00") == [b"hi", (24, 80), "end"]


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\x01x",
        b"\x03x",
        b"\x07x",
        b"\x04not json",
        b"\x04[]",
        b'\x04{"Width":-1,"Height":2}',
        b'\x04{"Width":1e9,"Height":2}',
        b"\x04" + b"[" * 100_000,
    ],
)
def test_a_frame_that_means_nothing_ends_the_connection(frame: bytes) -> None:
    with pytest.raises(BadFrameError):
        obeyed(frame)


def test_input_that_nobody_asked_for_ends_the_connection() -> None:
    with pytest.raises(BadFrameError):
        obeyed(b"\x00hi", visitor=replace(VISITOR, stdin=False))


def test_the_fourth_version_cannot_end_a_channel() -> None:
    with pytest.raises(BadFrameError):
        obeyed(b"\xff\x00", protocol=V4)


def test_the_newest_protocol_that_both_know_is_chosen() -> None:
    assert channels.chosen([V4, V5]) == V5
    assert channels.chosen(["nonsense"]) is None


def test_who_names_no_protocol_is_told_of_failures_in_words_alone() -> None:
    assert channels.chosen([]) == ""
    assert shown(Scripted((STDOUT, b"out")), protocol="") == [b"\x01out"]
    assert shown(Scripted(code=5), protocol="")[0].startswith(b"\x03command terminated with")


def test_frames_of_text_are_a_digit_and_base64() -> None:
    assert channels.as_text(b"\x01out") == "1b3V0"
    assert channels.of_text("1b3V0") == b"\x01out"


@pytest.mark.parametrize("text", ["", "x", "1?", "1b3V"])
def test_text_that_is_no_frame_ends_the_connection(text: str) -> None:
    with pytest.raises(BadFrameError):
        channels.of_text(text)
