"""Where the output goes: how wide it is, and whether it takes colours."""

import fcntl
import os
import stat
import termios
from array import array
from collections.abc import Mapping
from typing import TextIO

from muster.model.value import Value, replace

RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN = 31, 32, 33, 34, 35, 36
BOLD, DIM = 1, 2

STATE_COLOURS: Mapping[str, int] = {
    "running": GREEN,
    "starting": GREEN,
    "pending": YELLOW,
    "held": MAGENTA,
    "suspended": MAGENTA,
    "stopping": CYAN,
    "completed": DIM,
    "failed": RED,
    "cancelled": DIM,
    "up": GREEN,
    "draining": YELLOW,
    "down": RED,
    "ok": GREEN,
    "warn": YELLOW,
    "fail": RED,
}


class Screen(Value):
    """width is None where lines may be as long as they like: in a file or a pipe."""

    width: int | None = None
    height: int = 24
    colour: bool = False

    def paint(self, text: str, colour: int) -> str:
        """The text in this colour, where the screen has colours."""
        return f"\x1b[{colour}m{text}\x1b[0m" if self.colour and text else text

    def state(self, text: str) -> str:
        """A state in its colour; padding around it is kept."""
        return self.paint(text, STATE_COLOURS.get(text.strip(), 0)) if self.colour else text


def screen_of(stream: TextIO, environ: Mapping[str, str]) -> Screen:
    """The screen behind a stream; NO_COLOR and FORCE_COLOR count when they are not empty."""
    terminal = is_terminal(stream)
    wanted = terminal and environ.get("TERM") != "dumb"
    if environ.get("FORCE_COLOR"):
        wanted = True
    if environ.get("NO_COLOR"):
        wanted = False
    if not terminal:
        return Screen(colour=wanted)
    size = terminal_size(stream.fileno())
    return Screen(width=size.columns, height=size.lines, colour=wanted)


def recoloured(screen: Screen, choice: str) -> Screen:
    """The screen as `--color` wants it: always, never, or auto for as it is."""
    if choice == "auto":
        return screen
    return replace(screen, colour=choice == "always")


def is_terminal(stream: TextIO) -> bool:
    """Is somebody looking at it?"""
    try:
        return stream.isatty()
    except ValueError:  # a closed stream
        return False


def has_input(stream: TextIO) -> bool:
    """Is it a pipe in which something waits to be read?"""
    waiting = array("i", [0])
    try:
        descriptor = stream.fileno()
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return False
        fcntl.ioctl(descriptor, termios.FIONREAD, waiting)
    except (OSError, ValueError):  # a closed stream
        return False
    return waiting[0] > 0


def terminal_size(descriptor: int) -> os.terminal_size:
    """Columns and lines, with a usual size where the terminal does not know."""
    try:
        size = os.get_terminal_size(descriptor)
    except OSError:
        return os.terminal_size((80, 24))
    return os.terminal_size((size.columns or 80, size.lines or 24))
