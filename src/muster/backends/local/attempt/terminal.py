"""A job's terminal: a pty for its first task, and a socket that any number of viewers attach to.

What goes over the socket, in both directions, are frames: one byte says the kind, four bytes
(big-endian) the length, then so many bytes.

    D  data: what was typed, or what the job wrote
    R  resize: rows and columns, two bytes each; only from a viewer
    E  end: four bytes, the exit code (128 + signal); only to a viewer, and the last frame

A viewer that attaches is first shown the last of what the job wrote. Detaching ends nothing.
"""

import contextlib
import fcntl
import os
import select
import socket
import struct
import termios
import time
from collections.abc import Iterator

DATA = b"D"
RESIZE = b"R"
END = b"E"

_HEAD = struct.Struct("!cI")
_SIZE = struct.Struct("!HH")
_CODE = struct.Struct("!i")
_REPLAYED = 16_384
_LARGEST = 1 << 20
_CHUNK = 65_536
_BEHIND = 1 << 18
_PATIENCE_S = 10.0
_MOST_VIEWERS = 64
_LAST_WORDS_S = 1.0


def frame(kind: bytes, content: bytes) -> bytes:
    return _HEAD.pack(kind, len(content)) + content


def resize_frame(rows: int, columns: int) -> bytes:
    return frame(RESIZE, _SIZE.pack(rows, columns))


def exit_code(content: bytes) -> int:
    """What an END frame says."""
    return int(_CODE.unpack(content)[0])


class Frames:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, received: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The frames that are complete now; ValueError when this is no such stream."""
        self._rest += received
        while len(self._rest) >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._rest)
            if kind not in (DATA, RESIZE, END) or length > _LARGEST:
                raise ValueError("not a terminal's stream")
            end = _HEAD.size + length
            if len(self._rest) < end:
                return
            content, self._rest = self._rest[_HEAD.size : end], self._rest[end:]
            yield kind, content


class TerminalRelay:
    """Between the pty and its viewers. A viewer that reads nothing for long is let go.

    `socket_path` is bound at once; `task_end` is for the first task.
    """

    def __init__(self, socket_path: str, size: tuple[int, int]) -> None:
        self._master, self.task_end = os.openpty()
        os.set_blocking(self._master, False)
        self._resize(*size)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(socket_path)
        self._listener.bind(socket_path)
        os.chmod(socket_path, 0o600)
        self._listener.listen()
        self._listener.settimeout(0)
        self._viewers: dict[int, _Viewer] = {}
        self._shown = b""
        self._typed = b""
        self._is_open = True
        self._kept: int | None = None

    def keep_in(self, file: int) -> None:
        """What is shown is written to this file as well; one that takes no more is left alone."""
        os.set_blocking(file, False)
        self._kept = file

    def started(self) -> None:
        """The task has its end of the pty; ours is closed so that we notice when it goes."""
        os.close(self.task_end)

    def register(self, waiting: select.poll) -> None:
        """Say what to wait for."""
        waiting.register(self._listener, select.POLLIN)
        # What is typed faster than the job reads it waits with whoever types.
        hears = 0 if len(self._typed) > _BEHIND else select.POLLIN
        for number, viewer in self._viewers.items():
            waiting.register(number, hears | (select.POLLOUT if viewer.unsent else 0))
        wanted = 0 if self._is_behind() else select.POLLIN
        wanted |= select.POLLOUT if self._typed else 0
        if self._is_open and wanted:
            waiting.register(self._master, wanted)

    def relay(self, ready: set[int]) -> None:
        """Pass on whatever there is where something became ready."""
        if self._listener.fileno() in ready:
            self._admit()
        if self._master in ready:
            self._show()
        for number in ready & self._viewers.keys():
            self._send(number, b"")
            if number in self._viewers:
                self._type(number)
        if self._typed and self._is_open:
            self._pass_on()

    def end(self, code: int) -> None:
        """Show what is left, tell every viewer how it ended, and close."""
        while self._is_open and self._show():
            pass
        self._tell(frame(END, _CODE.pack(code)))
        deadline = time.monotonic() + _LAST_WORDS_S
        for viewer in self._viewers.values():
            viewer.finish(max(0.01, deadline - time.monotonic()))
        self._viewers.clear()
        self._listener.close()
        os.close(self._master)
        if self._kept is not None:
            os.close(self._kept)

    def _admit(self) -> None:
        with contextlib.suppress(BlockingIOError):
            viewer, _ = self._listener.accept()
            if len(self._viewers) >= _MOST_VIEWERS:
                viewer.close()
                return
            viewer.settimeout(0)
            self._viewers[viewer.fileno()] = _Viewer(viewer)
            if self._shown:
                self._send(viewer.fileno(), frame(DATA, self._shown))

    def _show(self) -> bool:
        """Whether anything was there to show."""
        try:
            written = os.read(self._master, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            written = b""
        if not written:
            # Every process has closed the terminal.
            self._is_open = False
            return False
        self._shown = (self._shown + written)[-_REPLAYED:]
        if self._kept is not None:
            with contextlib.suppress(OSError):
                os.write(self._kept, written)
        self._tell(frame(DATA, written))
        return True

    def _tell(self, message: bytes) -> None:
        for number in list(self._viewers):
            self._send(number, message)

    def _send(self, number: int, message: bytes) -> None:
        if not self._viewers[number].send(message):
            self._drop(number)

    def _is_behind(self) -> bool:
        """Does a viewer still have to read so much that the job should rather write no more?"""
        return any(len(viewer.unsent) > _BEHIND for viewer in self._viewers.values())

    def _type(self, number: int) -> None:
        viewer = self._viewers[number]
        try:
            received = viewer.connection.recv(_CHUNK)
            if not received:
                self._drop(number)
                return
            for kind, content in viewer.frames.take(received):
                self._obey(kind, content)
        except BlockingIOError:
            return
        except (OSError, ValueError, struct.error):
            self._drop(number)

    def _obey(self, kind: bytes, content: bytes) -> None:
        if kind == RESIZE:
            self._resize(*_SIZE.unpack(content))
        elif kind == DATA and self._is_open:
            self._typed += content
            self._pass_on()

    def _pass_on(self) -> None:
        with contextlib.suppress(BlockingIOError):
            done = os.write(self._master, self._typed)
            self._typed = self._typed[done:]

    def _resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _drop(self, number: int) -> None:
        self._viewers.pop(number).connection.close()


class _Viewer:
    """A user who is attached, and what they have not read yet."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.frames = Frames()
        self.unsent = b""
        self._stuck_since = time.monotonic()

    def send(self, message: bytes) -> bool:
        """Send as much as fits; False when the other end no longer reads."""
        if not self.unsent:
            self._stuck_since = time.monotonic()
        self.unsent += message
        try:
            done = self.connection.send(self.unsent) if self.unsent else 0
        except BlockingIOError:
            return time.monotonic() - self._stuck_since < _PATIENCE_S
        except OSError:
            return False
        self.unsent = self.unsent[done:]
        self._stuck_since = time.monotonic()
        return True

    def finish(self, patience_s: float) -> None:
        """The last words, for which we wait a moment."""
        self.connection.settimeout(patience_s)
        with contextlib.suppress(OSError):
            self.connection.sendall(self.unsent)
        self.connection.close()
