"""What a container reads and writes: kept in its log, shown to whoever is attached, typed by them.

Who is attached and reads slowly slows the container down; who does not read is let go.
"""

import contextlib
import fcntl
import os
import select
import struct
import termios
import time
import tty
from pathlib import Path

from muster.backends.local.attempt.process import Streams
from muster.backends.local.pods.logs import LogFile
from muster.model.pod import Container

STDOUT, STDERR = "stdout", "stderr"

_CHUNK = 65_536
_BEHIND = 1 << 18
"""When so much waits for somebody who is attached, or for the container, no more is read."""

_PATIENCE_MS = 10_000


class Viewer:
    """Somebody who is attached: files for what is written, and one for what they type."""

    def __init__(self, shows: dict[str, int], typed: int | None) -> None:
        self.typed = typed
        self.is_gone = False
        self.gives_up_ms: int | None = None
        self._shows = shows
        self._unsent = dict.fromkeys(shows.values(), b"")
        for number in (*shows.values(), *([] if typed is None else [typed])):
            os.set_blocking(number, False)

    @property
    def is_behind(self) -> bool:
        return any(len(unsent) > _BEHIND for unsent in self._unsent.values())

    def show(self, stream: str, chunk: bytes) -> None:
        number = self._shows.get(stream)
        if number is not None:
            self._unsent[number] += chunk
            self.send(number)

    def waiting(self) -> list[int]:
        """Files that could not take all of it yet."""
        return [number for number, unsent in self._unsent.items() if unsent]

    def send(self, number: int) -> None:
        """As much as fits; who takes nothing for long is gone."""
        now_ms = time.monotonic_ns() // 1_000_000
        try:
            done = os.write(number, self._unsent[number])
            self._unsent[number] = self._unsent[number][done:]
            self.gives_up_ms = now_ms + _PATIENCE_MS if self._unsent[number] else None
        except BlockingIOError:
            self.gives_up_ms = self.gives_up_ms or now_ms + _PATIENCE_MS
        except OSError:
            self.is_gone = True

    def end_typing(self) -> None:
        if self.typed is not None:
            os.close(self.typed)
            self.typed = None

    def close(self) -> None:
        self.end_typing()
        for number in self._unsent:
            os.close(number)
        self._unsent.clear()
        self._shows = {}


class Stdio:
    """The streams of one run of a container."""

    def __init__(self, path: Path, spec: Container) -> None:
        self._log = LogFile(path)
        self._once = spec.stdin_once
        self._reads: dict[int, str] = {}
        self._theirs: list[int] = []
        self._input: int | None = None
        self._typed = b""
        self._is_last_typed = False
        self.viewers: list[Viewer] = []
        self.is_terminal = spec.tty
        if spec.tty:
            self._open_terminal()
        else:
            self._open_pipes(has_input=spec.stdin)

    def _open_terminal(self) -> None:
        master, slave = os.openpty()
        # The container has a terminal of its own inside, which echoes and ends lines.
        tty.setraw(slave)
        os.set_blocking(master, False)
        self._reads, self._theirs, self._input = {master: STDOUT}, [slave], master

    def _open_pipes(self, *, has_input: bool) -> None:
        if has_input:
            reads, self._input = os.pipe()
            os.set_blocking(self._input, False)
        else:
            reads = os.open(os.devnull, os.O_RDONLY)
        self._theirs.append(reads)
        for name in (STDOUT, STDERR):
            reads, writes = os.pipe()
            os.set_blocking(reads, False)
            self._reads[reads] = name
            self._theirs.append(writes)

    @property
    def given(self) -> Streams:
        """What the process gets."""
        if self.is_terminal:
            return Streams(stdin=None, stdout="", stderr=None, terminal=self._theirs[0])
        first, second, third = self._theirs
        return Streams(stdin=None, stdout="", stderr=None, given=(first, second, third))

    def handed_over(self) -> None:
        """The process has its ends."""
        for number in self._theirs:
            os.close(number)
        self._theirs = []

    def register(self, waiting: select.poll) -> None:
        is_held = any(viewer.is_behind for viewer in self.viewers)
        wanted: dict[int, int] = {} if is_held else dict.fromkeys(self._reads, select.POLLIN)
        if self._input is not None and self._typed:
            wanted[self._input] = wanted.get(self._input, 0) | select.POLLOUT
        for viewer in self.viewers:
            if viewer.typed is not None and len(self._typed) < _BEHIND:
                wanted[viewer.typed] = select.POLLIN
        for number, events in wanted.items():
            waiting.register(number, events)

    def serve(self, ready: set[int]) -> None:
        for number in tuple(self._reads.keys() & ready):
            self._read(number)
        for viewer in self.viewers:
            if viewer.typed in ready:
                self._listen_to(viewer)
        if self._typed:
            self._pass_on()

    def resize(self, rows: int, columns: int) -> None:
        if self.is_terminal and self._input is not None:
            size = struct.pack("HHHH", rows, columns, 0, 0)
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._input, termios.TIOCSWINSZ, size)

    def leave(self, viewer: Viewer) -> None:
        """They are attached no more; whoever let them in closes what they brought."""
        if viewer in self.viewers:
            self.viewers.remove(viewer)
            self._end_typing(viewer)

    def close(self) -> None:
        """Everything that was written is kept."""
        self.handed_over()
        for number in tuple(self._reads):
            self._read(number, is_going=False)
            if number in self._reads:
                self._end(number)
        if self._input is not None and not self.is_terminal:
            os.close(self._input)
        self._input = None
        self._log.close()

    def _read(self, number: int, *, is_going: bool = True) -> None:
        stream = self._reads[number]
        with contextlib.suppress(BlockingIOError):
            while chunk := _chunk_of(number):
                self._log.take(stream, chunk)
                for viewer in self.viewers:
                    viewer.show(stream, chunk)
                if is_going and any(viewer.is_behind for viewer in self.viewers):
                    return
            self._end(number)

    def _end(self, number: int) -> None:
        self._log.end(self._reads.pop(number))
        if number == self._input:
            self._input = None
        os.close(number)

    def _listen_to(self, viewer: Viewer) -> None:
        try:
            chunk = os.read(viewer.typed or 0, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if chunk:
            self._typed += chunk
        else:
            self._end_typing(viewer)

    def _end_typing(self, viewer: Viewer) -> None:
        """Who typed is done; a container that takes input once has had it then."""
        if viewer.typed is None:
            return
        viewer.end_typing()
        if self._once and not self.is_terminal:
            self._is_last_typed = True
            self._pass_on()

    def _pass_on(self) -> None:
        if self._input is None:
            self._typed = b""
            return
        try:
            done = os.write(self._input, self._typed) if self._typed else 0
            self._typed = self._typed[done:]
        except BlockingIOError:
            return
        except OSError:
            self._typed = b""
        if self._is_last_typed and not self._typed:
            os.close(self._input)
            self._input = None


def _chunk_of(number: int) -> bytes:
    """Of a terminal that everybody has closed there is no more, which comes as an error."""
    try:
        return os.read(number, _CHUNK)
    except BlockingIOError:
        raise
    except OSError:
        return b""
