import pytest

from muster.backends.local.attempt.terminal import DATA, RESIZE, Frames, frame, resize_frame


def test_frames_come_out_as_they_went_in_however_they_are_cut() -> None:
    stream = frame(DATA, b"hello") + resize_frame(40, 100) + frame(DATA, b"")
    frames = Frames()

    found = [each for at in range(len(stream)) for each in frames.take(stream[at : at + 1])]

    assert found == [(DATA, b"hello"), (RESIZE, b"\x00\x28\x00\x64"), (DATA, b"")]


@pytest.mark.parametrize("stream", [b"GET / HTTP/1.1", b"D\xff\xff\xff\xff"])
def test_what_is_no_such_stream_is_refused(stream: bytes) -> None:
    with pytest.raises(ValueError, match="not a terminal"):
        list(Frames().take(stream))
