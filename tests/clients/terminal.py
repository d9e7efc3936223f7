"""A program that draws on a terminal, and what it has drawn."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 60
ROWS, COLUMNS = 40, 200
SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
WHERE_IS_THE_CURSOR = b"\x1b[6n"
AT_THE_TOP = b"\x1b[1;1R"


class Terminal:
    """Keys go in, and everything that was drawn so far can be searched."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._drawn = ""

    def shows(self, text: str) -> None:
        """Wait until it was drawn since the last key."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self._drawn:
            assert time.monotonic() < deadline, f"{text!r} is not in {self._drawn!r}"
            self._read()

    def presses(self, key: str) -> None:
        self._drawn = ""
        os.write(self._descriptor, key.encode())

    def _read(self) -> None:
        ready, _, _ = select.select([self._descriptor], [], [], 0.1)
        if not ready:
            return
        part = os.read(self._descriptor, 65_536)
        if WHERE_IS_THE_CURSOR in part:
            os.write(self._descriptor, AT_THE_TOP)
        self._drawn += SEQUENCE.sub(" ", part.decode(errors="replace"))


@contextmanager
def terminal(argv: list[str], folder: Path, environ: dict[str, str]) -> Generator[Terminal]:
    """The program runs meanwhile."""
    child, descriptor = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvpe(argv[0], argv, environ | {"TERM": "xterm"})  # noqa: S606  what a test types
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    try:
        yield Terminal(descriptor)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(descriptor)
