"""What jobs wrote: in the logs of their pods while those are there, and kept here after."""

import contextlib
import os
from pathlib import Path

from muster.model.errors import UnknownError
from muster.model.running import Output
from muster.model.value import JobId, Value

MOST = 16 * 1_048_576
"""So much of a log is kept, and shown."""
_MOST_FILES = 2_000
_MOST_BYTES = 2 * 1_024**3
"""So much all kept logs may be together."""


class LogName(Value, gc=False):
    """Whose log it is. container: of a user's pod; previous: of its run before the last one."""

    job: JobId
    attempt: int
    rank: int
    container: str = ""
    previous: bool = False


class KeptOutput:
    """Logs of attempts that are over, the oldest removed when there are many."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def keep(self, log: LogName, content: bytes) -> None:
        path = self._path(log)
        new = path.with_suffix(".new")
        new.write_bytes(content)
        os.replace(new, path)
        self._prune()

    def read(self, log: LogName) -> bytes:
        try:
            return self._path(log).read_bytes()
        except OSError:
            raise UnknownError(f"nothing is kept of what job {log.job} wrote") from None

    def _prune(self) -> None:
        newest_first = sorted(self._folder.glob("*.log"), key=_age, reverse=True)
        size = 0
        for number, path in enumerate(newest_first):
            with contextlib.suppress(OSError):
                size += path.stat().st_size
            if number >= _MOST_FILES or (number and size > _MOST_BYTES):
                path.unlink(missing_ok=True)

    def _path(self, log: LogName) -> Path:
        whose = f".{log.container}" if log.container else ""
        which = ".previous" if log.previous else ""
        return self._folder / f"{log.job}.{log.attempt}.{log.rank}{whose}{which}.log"


def as_lines(raw: bytes, *, is_whole: bool) -> bytes:
    """A log with times as container runtimes keep it: a cluster does not say which stream.

    is_whole: its last line is not going on.
    """
    *lines, rest = raw.split(b"\n")
    whole = b"".join(_line(each, b"F") for each in lines)
    return whole + _line(rest, b"P") if rest and is_whole else whole


def _line(line: bytes, mark: bytes) -> bytes:
    at, _, words = line.partition(b" ")
    return b" ".join((at, b"stdout", mark, words)) + b"\n"


def part_of(content: bytes, offset: int, limit: int) -> Output:
    """From `offset` on; below zero, from the end."""
    begin = max(0, len(content) + offset) if offset < 0 else offset
    part = content[begin : begin + limit]
    return Output(content=part, next=begin + len(part))


def _age(path: Path) -> float:
    with contextlib.suppress(OSError):
        return path.stat().st_mtime
    return 0.0
