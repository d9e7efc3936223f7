"""What containers write, line by line with the time, as container runtimes keep it.

A line of a log file: `2026-11-16T09:14:28.123456789Z stdout F the text`. P instead of F: the line
goes on in the next one.
"""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

LONGEST_LINE = 16_384
MOST_BYTES = 64 << 20
"""What one run of a container may keep; the rest is read, so that it goes on, and dropped."""


class LogFile:
    """What one run of a container wrote, and the beginnings of lines that are not whole yet."""

    def __init__(self, path: Path) -> None:
        _make_closed(path.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC
        self._file = os.open(path, flags, 0o600)
        self._kept = 0
        self._rest: dict[str, bytes] = {}

    def take(self, stream: str, chunk: bytes) -> None:
        """More of `stdout` or `stderr`."""
        *lines, rest = (self._rest.get(stream, b"") + chunk).split(b"\n")
        for line in lines:
            self._keep(stream, line)
        while len(rest) > LONGEST_LINE:
            self._keep(stream, rest[:LONGEST_LINE], is_whole=False)
            rest = rest[LONGEST_LINE:]
        self._rest[stream] = rest

    def end(self, stream: str) -> None:
        """Nothing more comes of it."""
        rest = self._rest.pop(stream, b"")
        if rest:
            self._keep(stream, rest, is_whole=False)

    def close(self) -> None:
        os.close(self._file)

    def _keep(self, stream: str, line: bytes, *, is_whole: bool = True) -> None:
        mark = "F" if is_whole else "P"
        head = f"{fine_now()} {stream} {mark} ".encode()
        if self._kept < MOST_BYTES:
            self._kept += os.write(self._file, head + line + b"\n")


def _make_closed(folder: Path) -> None:
    """With all above it that are missing, and whatever our umask is, nobody else looks into it."""
    if not folder.is_dir():
        _make_closed(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def fine_now() -> str:
    """The time in nanoseconds, as lines of logs begin."""
    seconds, nanos = divmod(time.time_ns(), 1_000_000_000)
    whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{nanos:09d}Z"


def last_lines(path: Path, most_bytes: int, most_lines: int) -> str:
    """The end of a log, without its times."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 4 * most_bytes))
            lines = file.read().splitlines()
    except FileNotFoundError:
        return ""
    texts = [line.split(b" ", 3)[3] for line in lines if line.count(b" ") >= 3]
    joined = b"\n".join(texts[-most_lines:])
    return joined[-most_bytes:].decode(errors="replace")
