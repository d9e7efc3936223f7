"""The visitor's end of a visit to a pod: files that a command reads and writes, or a connection."""

import asyncio
import contextlib
import errno
import fcntl
import os
import re
import select
import socket
import struct
import termios
import tty
from pathlib import Path

from muster.backends.local.attempt import spool
from muster.backends.local.attempt.spawner_client import reachable
from muster.backends.local.steps.wire import HungUpError, Line, Message
from muster.model.errors import UnknownError
from muster.model.running import STDERR, STDOUT, AttachTo, ConnectTo, RunInside, Visit

NOT_STARTED = 126
"""The exit code of a command that could not be started."""

_CHUNK = 65_536
_BEGINS_WITHIN_S = 75.0
_TOOL_FAILED = (125, 126, 127)
_OF_RUNTIME = b"OCI runtime"
_WHY = re.compile(
    r"unable to start container process: (.*?)(?:: OCI runtime .*|: unknown)?$", re.DOTALL
)


def visit(folder: Path, task: int, wanted: Visit) -> "PodVisit":
    """Begin a visit to a task of the attempt in a folder of the spool.

    UnknownError when it cannot be.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with reachable(folder) as near:
            connection.connect(f"{near}/{spool.of_task(spool.VISIT_SOCKET, task)}")
    except OSError:
        connection.close()
        raise UnknownError("the pod does not run") from None
    files = _Files.of(wanted)
    try:
        files.offer(connection, _message(wanted))
        return PodVisit(connection, files, wanted)
    except (HungUpError, OSError):
        files.close()
        connection.close()
        raise UnknownError("the pod does not run any more") from None
    except UnknownError:
        files.close()
        connection.close()
        raise


class _Files:
    """Ends of pipes: ours to use, and theirs until they are handed over."""

    def __init__(self) -> None:
        self.reads: dict[int, int] = {}
        self.writes: int | None = None
        self.terminal: int | None = None
        self._theirs: list[int] = []

    @classmethod
    def of(cls, wanted: Visit) -> "_Files":
        files = cls()
        match wanted:
            case RunInside(tty=True):
                files._add_terminal()
            case RunInside(stdin=stdin):
                files._add_input(is_open=stdin)
                files._add_outputs()
            case AttachTo(stdin=stdin):
                files._add_outputs()
                if stdin:
                    files._add_input(is_open=True)
            case ConnectTo():
                pass
        return files

    def offer(self, connection: socket.socket, message: bytes) -> None:
        """Send the message, and their ends with it."""
        if self._theirs:
            socket.send_fds(connection, [message[:1]], self._theirs)
            message = message[1:]
        connection.sendall(message)
        for number in self._theirs:
            os.close(number)
        self._theirs = []

    def end_input(self) -> None:
        if self.writes is not None and self.writes != self.terminal:
            os.close(self.writes)
        self.writes = None

    def drop(self, number: int) -> None:
        """Nothing more comes from there."""
        del self.reads[number]
        if number != self.terminal:
            os.close(number)

    def close(self) -> None:
        self.end_input()
        for number in tuple(self.reads):
            self.drop(number)
        if self.terminal is not None:
            os.close(self.terminal)
            self.terminal = None
        for number in self._theirs:
            os.close(number)
        self._theirs = []

    def _add_terminal(self) -> None:
        master, slave = os.openpty()
        # Inside is another one, which echoes and ends lines.
        tty.setraw(slave)
        os.set_blocking(master, False)
        self.reads, self.writes, self.terminal = {master: STDOUT}, master, master
        self._theirs.append(slave)

    def _add_input(self, *, is_open: bool) -> None:
        if not is_open:
            self._theirs.append(os.open(os.devnull, os.O_RDONLY))
            return
        reads, self.writes = os.pipe()
        os.set_blocking(self.writes, False)
        self._theirs.append(reads)

    def _add_outputs(self) -> None:
        for name in (STDOUT, STDERR):
            reads, writes = os.pipe()
            os.set_blocking(reads, False)
            self.reads[reads] = name
            self._theirs.append(writes)


class PodVisit:
    """A visit that has begun."""

    def __init__(self, connection: socket.socket, files: _Files, wanted: Visit) -> None:
        self._files = files
        self._wanted = wanted
        self._line = Line(connection)
        self._exit_code: int | None = None
        self._failure: str | None = None
        self._held = b""
        self._held_of = STDERR
        self._socket: socket.socket | None = None
        begun = self._first()
        self._id = str(begun.get("id", ""))
        if begun["kind"] == "refused" and begun["is_there"]:
            self._failure, self._exit_code = str(begun["text"]), NOT_STARTED
        elif begun["kind"] == "refused":
            raise UnknownError(str(begun["text"]))
        elif isinstance(wanted, ConnectTo):
            self._socket = socket.socket(fileno=self._line.files.pop())
            self._socket.settimeout(0)
            number = self._socket.fileno()
            files.reads, files.writes = {number: STDOUT}, number

    @property
    def exit_code(self) -> int | None:
        return self._exit_code

    @property
    def failure(self) -> str | None:
        return self._failure

    async def read(self) -> tuple[int, bytes]:
        """All that was written before the end is given before it."""
        while True:
            self._hear()
            for number, stream in tuple(self._files.reads.items()):
                chunk = self._taken(number)
                if chunk and not self._holds_back(stream, chunk):
                    return stream, chunk
            if self._exit_code is not None or (self._socket and not self._files.reads):
                return self._last()
            await self._ready(*self._files.reads, self._line.fileno())

    async def write(self, content: bytes) -> None:
        rest = memoryview(content)
        while rest and (number := self._files.writes) is not None:
            try:
                rest = rest[os.write(number, rest) :]
            except BlockingIOError:
                await _writable(number)
            except OSError:
                # Who reads no more is not sent any more.
                self._end_writing()

    async def end_input(self) -> None:
        # A terminal has no end: who closes it hangs up.
        if self._files.terminal is None:
            self._end_writing()

    async def resize(self, rows: int, columns: int) -> None:
        if self._files.terminal is not None:
            size = struct.pack("HHHH", rows, columns, 0, 0)
            fcntl.ioctl(self._files.terminal, termios.TIOCSWINSZ, size)
        elif isinstance(self._wanted, AttachTo):
            self._line.send("resize", rows=rows, columns=columns)

    def close(self) -> None:
        if self._socket is not None:
            # Its number is in none of the files any more before another gets it.
            self._files.reads, self._files.writes = {}, None
            self._socket.close()
        self._files.close()
        self._line.close()

    def _end_writing(self) -> None:
        if self._socket is None:
            self._files.end_input()
            return
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        self._files.writes = None

    def _first(self) -> Message:
        """Whether it begins; waited for, since nothing else can be done before."""
        waiting = select.poll()
        waiting.register(self._line.fileno(), select.POLLIN)
        while waiting.poll(int(_BEGINS_WITHIN_S * 1_000)):
            for message in self._line.hear():
                return message
        raise HungUpError

    def _hear(self) -> None:
        if self._exit_code is not None or self._socket is not None:
            return
        try:
            for message in self._line.hear():
                if message["kind"] == "exited":
                    self._exit_code = int(message["code"])
        except HungUpError:
            raise ConnectionError("the pod is gone") from None

    def _taken(self, number: int) -> bytes:
        try:
            chunk = os.read(number, _CHUNK)
        except BlockingIOError:
            return b""
        except ConnectionError as error:
            self._failure = f"dial tcp4: connect: {(error.strerror or str(error)).lower()}"
            chunk = b""
        except OSError as error:
            # The end of a terminal that everybody has closed.
            if error.errno != errno.EIO:
                raise
            chunk = b""
        if not chunk and self._socket is None:
            self._files.drop(number)
        elif not chunk:
            self._files.reads.clear()
        return chunk

    def _holds_back(self, stream: int, chunk: bytes) -> bool:
        """Is it what a container tool says when there is no such program?"""
        is_first = isinstance(self._wanted, RunInside) and not self._held
        if is_first and chunk.startswith(b"Error: ") and _OF_RUNTIME in chunk:
            self._held, self._held_of = chunk, stream
            return True
        return False

    def _last(self) -> tuple[int, bytes]:
        held, self._held = self._held, b""
        if not held:
            return STDOUT, b""
        if self._exit_code not in _TOOL_FAILED:
            return self._held_of, held
        text = held.decode(errors="replace").strip()
        found = _WHY.search(text)
        why = text.removeprefix("Error: ") if found is None else found[1]
        self._failure = (
            f'failed to exec in container: failed to start exec "{self._id}": OCI runtime exec '
            f"failed: exec failed: unable to start container process: {why}: unknown"
        )
        return STDOUT, b""

    async def _ready(self, *numbers: int) -> None:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        for number in numbers:
            loop.add_reader(number, _wake, ready)
        try:
            await ready
        finally:
            for number in numbers:
                loop.remove_reader(number)


async def _writable(number: int) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_writer(number, _wake, ready)
    try:
        await ready
    finally:
        loop.remove_writer(number)


def _wake(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)


def _message(wanted: Visit) -> bytes:
    match wanted:
        case RunInside(container=container, argv=argv, stdin=stdin):
            return Line.message("exec", container=container, argv=list(argv), stdin=stdin)
        case AttachTo(container=container):
            return Line.message("attach", container=container)
        case ConnectTo(port=port):
            return Line.message("connect", port=port)
