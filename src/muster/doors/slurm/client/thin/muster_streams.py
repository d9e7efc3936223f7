"""Where the tasks of a step read and write: files, pipes that are relayed here, or a terminal."""

import fcntl
import os
import resource
import select
import stat
import struct
import termios
import tty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import muster_pmi

CHUNK = 65_536
NULL = (1, 3)
"""The device numbers of /dev/null."""

FULL = 1 << 20


class NoFile(Exception):  # noqa: N818 -- shown to the user in Slurm's words
    """A file cannot be opened."""


class Streams:
    """Every open file that the step is given, and what has to be passed on while it runs.

    `outputs` is what is wanted for each task; `triples` are the places of its stdin, stdout and
    stderr in `files`.
    """

    def __init__(
        self, outputs: "list[dict[str, Any]]", name_of: "Callable[[str, int], str]"
    ) -> None:
        self._outputs = outputs
        self._tasks = len(outputs)
        self._name_of = name_of
        self._opened: dict[tuple[str, int], int] = {}
        self.files: list[int] = []
        self.triples: list[list[int]] = []
        self.readers: dict[int, Lines] = {}
        self.fed: Fed | None = None
        self.terminal: Terminal | None = None
        self._reads_terminal = True
        self._pmi: muster_pmi.Pmi | None = None

    def open(self) -> None:
        """Open everything; NoFile says what cannot be."""
        _raise_limit()
        if self._outputs[0]["pty"]:
            self.terminal = Terminal()
        self.fed = Fed() if self._must_be_fed() else None
        for rank in range(self._tasks):
            self.triples.append(self._triple(rank))

    def given(self) -> None:
        """The step has them; ours are closed, so that we notice when its tasks do the same."""
        for number in self.files:
            if number > 2:
                os.close(number)
        self.files.clear()

    def meet(self, step: str) -> None:
        """Each task of an MPI program has a fourth file, to find the others."""
        import muster_pmi  # noqa: PLC0415 -- rarely needed

        self._pmi = muster_pmi.Pmi(step, self._tasks)
        for files in self.triples:
            files.append(self._placed(self._pmi.added()))

    def register(self, waiting: "select.poll") -> None:
        """Say what to wait for."""
        for number in self.readers:
            waiting.register(number, select.POLLIN)
        if self._pmi is not None:
            self._pmi.register(waiting)
        if self.fed is not None:
            self.fed.register(waiting)
        if self.terminal is not None:
            waiting.register(self.terminal.ours, select.POLLIN)
            if self._reads_terminal:
                waiting.register(0, select.POLLIN)

    def relay(self, ready: set[int]) -> None:
        """Pass on whatever there is where something became ready."""
        for number in ready & self.readers.keys():
            if not self.readers[number].relay(number):
                del self.readers[number]
                os.close(number)
        if self._pmi is not None:
            self._pmi.serve(ready)
        if self.fed is not None:
            self.fed.relay(ready)
        if self.terminal is not None:
            self._relay_terminal(self.terminal, ready)

    def _relay_terminal(self, terminal: "Terminal", ready: set[int]) -> None:
        if 0 in ready:
            self._reads_terminal = terminal.type()
        if terminal.ours in ready and not terminal.show():
            terminal.restore()
            self.terminal = None

    def _triple(self, rank: int) -> list[int]:
        if self.terminal is not None:
            end = self._placed(self.terminal.task_end) if rank == 0 else self._null()
            return [end, end, end]
        output = self._outputs[rank]
        out = self._writing(rank, output["stdout"], 1)
        mode = output["stderr"]
        if mode is None and _is_file(output["stdout"]):
            return [self._reading(rank), out, out]
        return [self._reading(rank), out, self._writing(rank, mode, 2)]

    def _reading(self, rank: int) -> int:
        mode = self._outputs[rank]["stdin"]
        if _is_file(mode):
            return self._file(self._name_of(mode, rank), os.O_RDONLY, "stdin")
        if mode == "none" or (mode is not None and int(mode) != rank):
            return self._null()
        if self.fed is not None:
            return self._placed(self.fed.added())
        return self._placed(0)

    def _writing(self, rank: int, mode: "str | None", number: int) -> int:
        if mode == "none":
            return self._null()
        sink, output = number, self._outputs[rank]
        if _is_file(mode):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            flags |= 0 if output["append"] else os.O_TRUNC
            stream = "stdout" if number == 1 else "stderr"
            at = self._file(self._name_of(mode or "", rank), flags, stream)
            if not output["label"]:
                return at
            sink = os.dup(self.files[at])
        elif mode is not None and int(mode) != rank:
            return self._null()
        if self._is_direct(mode, output):
            return self._placed(sink)
        reads, writes = os.pipe()
        width = len(str(self._tasks - 1))
        label = f"{rank:{width}}: ".encode() if output["label"] else b""
        self.readers[reads] = Lines(label, sink)
        return self._placed(writes)

    def _is_direct(self, mode: "str | None", output: "dict[str, Any]") -> bool:
        """May the task write there itself? Lines of several would be mixed with each other."""
        is_alone = self._tasks == 1 or mode is not None or output["unbuffered"]
        return is_alone and not output["label"]

    def _must_be_fed(self) -> bool:
        """Must what we read be passed on? Several tasks read the same, or it is our terminal."""
        mode = self._outputs[0]["stdin"]
        if self.terminal is not None or _is_file(mode) or mode == "none":
            return False
        try:
            found = os.fstat(0)
        except OSError:
            # It is closed: the same as nothing to read.
            os.open(os.devnull, os.O_RDONLY)
            return False
        is_null = stat.S_ISCHR(found.st_mode) and _device(found) == NULL
        return not is_null and (os.isatty(0) or (self._tasks > 1 and mode is None))

    def _file(self, path: str, flags: int, stream: str) -> int:
        key = (path, flags & os.O_ACCMODE)
        if key not in self._opened:
            try:
                number = os.open(path, flags | os.O_CLOEXEC, 0o666)
            except OSError as error:
                raise NoFile(f"Could not open {stream} file: {error.strerror}") from None
            self._opened[key] = self._placed(number)
        return self._opened[key]

    def _null(self) -> int:
        return self._file(os.devnull, os.O_RDWR, "stdin")

    def _placed(self, number: int) -> int:
        if number <= 2 and number in self.files:
            return self.files.index(number)
        self.files.append(number)
        return len(self.files) - 1


class Lines:
    """What one task writes, line by line, with its number in front or without."""

    def __init__(self, label: bytes, sink: int) -> None:
        self._label = label
        self._sink = sink
        self._rest = b""

    def relay(self, number: int) -> bool:
        """Pass on what there is; False when there will be no more."""
        read = os.read(number, CHUNK)
        whole, line_end, rest = (self._rest + read).rpartition(b"\n")
        if line_end:
            lines = whole.split(b"\n")
            write(self._sink, b"".join(self._label + line + b"\n" for line in lines))
        self._rest = rest
        if not read and self._rest:
            write(self._sink, self._label + self._rest + (b"\n" if self._label else b""))
            self._rest = b""
        return bool(read)


class Fed:
    """What we read goes to every task that reads it."""

    def __init__(self) -> None:
        self._unsent: dict[int, bytes] = {}
        self.is_open = True

    def added(self) -> int:
        """The end that a task reads from."""
        reads, writes = os.pipe()
        os.set_blocking(writes, False)
        self._unsent[writes] = b""
        return reads

    def register(self, waiting: "select.poll") -> None:
        """More is read when every task has what there was."""
        behind = [number for number, unsent in self._unsent.items() if unsent]
        for number in behind:
            waiting.register(number, select.POLLOUT)
        if self.is_open and not behind and _is_ours_to_read():
            waiting.register(0, select.POLLIN)

    def relay(self, ready: set[int]) -> None:
        for number in ready & self._unsent.keys():
            self._pass_on(number)
        if 0 in ready:
            self._feed()

    def _feed(self) -> None:
        """Read, and give it to all."""
        try:
            read = os.read(0, CHUNK)
        except OSError:
            read = b""
        if not read:
            self.is_open = False
        for number in tuple(self._unsent):
            self._unsent[number] += read
            self._pass_on(number)

    def _pass_on(self, number: int) -> None:
        try:
            done = os.write(number, self._unsent[number]) if self._unsent[number] else 0
        except BlockingIOError:
            return
        except OSError:
            self._drop(number)
            return
        self._unsent[number] = self._unsent[number][done:]
        if not self.is_open and not self._unsent[number]:
            self._drop(number)

    def _drop(self, number: int) -> None:
        del self._unsent[number]
        os.close(number)


class Terminal:
    """A terminal for the first task; ours becomes a mere window to it."""

    def __init__(self) -> None:
        self.ours, self.task_end = os.openpty()
        self._before: list[Any] | None = None
        self.resize()
        if os.isatty(0):
            self._before = termios.tcgetattr(0)
            # Now, and not after throwing away what was typed ahead.
            tty.setraw(0, termios.TCSANOW)

    def resize(self) -> None:
        try:
            size = fcntl.ioctl(0, termios.TIOCGWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
            fcntl.ioctl(self.ours, termios.TIOCSWINSZ, size)
        except OSError:
            # We have none ourselves.
            return

    def show(self) -> bool:
        """What the task wrote; False when no process has the terminal any more."""
        try:
            read = os.read(self.ours, CHUNK)
        except OSError:
            return False
        write(1, read)
        return bool(read)

    def type(self) -> bool:
        """What was typed; False at its end."""
        read = os.read(0, CHUNK)
        # Without a terminal of ours, the end of what we read is Ctrl-D for the task.
        write(self.ours, read or b"\x04")
        return bool(read)

    def restore(self) -> None:
        if self._before is not None:
            termios.tcsetattr(0, termios.TCSADRAIN, self._before)
            self._before = None


def write(number: int, content: bytes) -> None:
    """All of it; a reader that has gone misses it."""
    left = memoryview(content)
    while left:
        try:
            left = left[os.write(number, left) :]
        except OSError:
            return


def _is_ours_to_read() -> bool:
    """Not the terminal of the shell that sent us to the background."""
    try:
        return not os.isatty(0) or os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _is_file(mode: "str | None") -> bool:
    return mode is not None and mode != "none" and not mode.isdecimal()


def _device(found: os.stat_result) -> tuple[int, int]:
    return os.major(found.st_rdev), os.minor(found.st_rdev)


def _raise_limit() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
