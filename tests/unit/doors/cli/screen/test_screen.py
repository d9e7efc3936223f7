import io
from collections.abc import Mapping

import pytest

from muster.doors.cli.screen.screen import RED, Screen, recoloured, screen_of


class Tty(io.StringIO):
    """A stream somebody looks at, without a descriptor that knows its size."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return -1


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_the_environment_decides_about_colours_on_a_terminal(
    environ: Mapping[str, str], expected: bool
) -> None:
    assert screen_of(Tty(), environ).colour is expected


def test_a_pipe_has_neither_colours_nor_a_width() -> None:
    assert screen_of(io.StringIO(), {}) == Screen(width=None, colour=False)
    assert screen_of(io.StringIO(), {"FORCE_COLOR": "1"}).colour


def test_a_terminal_of_unknown_size_is_eighty_by_twenty_four() -> None:
    screen = screen_of(Tty(), {})

    assert (screen.width, screen.height) == (80, 24)


def test_a_closed_stream_is_no_terminal() -> None:
    stream = io.StringIO()
    stream.close()

    assert screen_of(stream, {}).width is None


def test_the_option_wins_over_the_environment() -> None:
    assert recoloured(Screen(colour=True), "never").colour is False
    assert recoloured(Screen(colour=False), "always").colour is True
    assert recoloured(Screen(colour=True), "auto").colour is True


def test_paint_is_only_used_where_there_are_colours() -> None:
    assert Screen(colour=True).paint("x", RED) == "\x1b[31mx\x1b[0m"
    assert Screen(colour=False).paint("x", RED) == "x"
