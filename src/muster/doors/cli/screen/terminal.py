"""A job's terminal on the user's own: keys and sizes go there, what it writes comes here."""

import os
import select
import signal
import termios
import threading
import tty
from collections.abc import Generator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from types import FrameType
from typing import TYPE_CHECKING

import msgspec

from muster.doors.cli.screen.screen import terminal_size

if TYPE_CHECKING:
    from websockets.sync.connection import Connection

CTRL_P, CTRL_Q = 0x10, 0x11
MOST_AT_ONCE = 65_536
OVER, REFUSED = 1_000, 1_008
"""What the server closes with when the job is over, and when there is no terminal to sit at."""


class Left(Enum):
    """How it came to an end: the job ended, the user went, or the connection broke."""

    OVER = auto()
    DETACHED = auto()
    LOST = auto()


class Keys:
    """Watches for Ctrl-P Ctrl-Q. A lone Ctrl-P is held back until the next key tells."""

    def __init__(self) -> None:
        self._held = False

    def typed(self, keys: bytes) -> tuple[bytes, bool]:
        """What to send on, and whether the user wants to leave."""
        sent = bytearray()
        for key in keys:
            if self._held and key == CTRL_Q:
                return bytes(sent), True
            if self._held:
                sent.append(CTRL_P)
            self._held = key == CTRL_P
            if not self._held:
                sent.append(key)
        return bytes(sent), False


def sit_at(connection: "Connection", keyboard: int, screen: int) -> Left:
    """Until the job ends, the user leaves, or the connection breaks."""
    woken, wake = os.pipe()
    seat = _Seat(connection, screen, wake)
    reader = threading.Thread(target=seat.show, name="terminal", daemon=True)
    try:
        with _raw(keyboard), _resized(wake):
            reader.start()
            left = _served(seat, keyboard, woken)
        connection.close()
        reader.join(timeout=5)
    finally:
        os.close(woken)
        os.close(wake)
    return left


class _Seat:
    def __init__(self, connection: "Connection", screen: int, wake: int) -> None:
        self.connection = connection
        self.left: Left | None = None
        self._screen = screen
        self._wake = wake

    def show(self) -> None:
        """What the job writes, as it comes; runs in a thread of its own."""
        from websockets.exceptions import ConnectionClosedError  # noqa: PLC0415  loaded by then

        left = Left.LOST
        with suppress(ConnectionClosedError, OSError):
            for message in self.connection:
                if isinstance(message, bytes):
                    write_all(self._screen, message)
            # A server that is going away ends the stream properly too, but not the job.
            left = Left.OVER if self.connection.close_code == OVER else Left.LOST
        self.left = self.left or left
        os.write(self._wake, b".")

    def tell_size(self) -> None:
        """The job's terminal gets the size of this one."""
        size = terminal_size(self._screen)
        self.connection.send(size_message(size.lines, size.columns))


def _served(seat: _Seat, keyboard: int, woken: int) -> Left:
    from websockets.exceptions import ConnectionClosed  # noqa: PLC0415  loaded by then

    keys = Keys()
    # A job may be over before anything is sent: the reader then says how it ended.
    with suppress(ConnectionClosed):
        seat.tell_size()
    while True:
        ready, _, _ = select.select([keyboard, woken], [], [])
        with suppress(ConnectionClosed):
            if woken in ready and (left := _woken(seat, woken)) is not None:
                return left
            if keyboard in ready and _typed(seat, keys, keyboard):
                seat.left = Left.DETACHED
                return Left.DETACHED


def _woken(seat: _Seat, woken: int) -> Left | None:
    """How it ended, if it has; else the window has another size."""
    os.read(woken, MOST_AT_ONCE)
    if seat.left is None:
        seat.tell_size()
    return seat.left


def _typed(seat: _Seat, keys: Keys, keyboard: int) -> bool:
    typed = os.read(keyboard, MOST_AT_ONCE)
    if not typed:
        return True
    sent, wants_to_leave = keys.typed(typed)
    if sent:
        seat.connection.send(sent)
    return wants_to_leave


def size_message(rows: int, columns: int) -> str:
    """The text frame that tells a terminal its size."""
    return msgspec.json.encode({"rows": rows, "columns": columns}).decode()


def write_all(descriptor: int, content: bytes) -> None:
    """All of it, however little a terminal takes at once."""
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


@contextmanager
def _raw(keyboard: int) -> Generator[None]:
    """Keys as they are pressed, Ctrl-C included."""
    before = termios.tcgetattr(keyboard)
    tty.setraw(keyboard)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


@contextmanager
def _resized(wake: int) -> Generator[None]:
    """A byte in the pipe whenever the window gets another size."""

    def changed(_number: int, _frame: FrameType | None) -> None:
        os.write(wake, b".")

    before = signal.signal(signal.SIGWINCH, changed)
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
