"""What srun and a supervisor say to each other: JSON behind its length, and open files beside it.

srun to supervisor                         supervisor to srun
want      a step, and what it asks for     busy, refused, created
launch    the programs, with open files    started, exited, aborted, over
signal    to all tasks of the step
hold      the attempt, until we let go     held, revoked
release   the attempt, with an exit code
"""

import contextlib
import json
import os
import socket
import struct
from collections.abc import Iterable, Iterator
from typing import Any, cast

_LENGTH = struct.Struct("!I")
_FILE = struct.Struct("i")
_CHUNK = 65_536
_MOST_FILES = 253
# An environment, and a command for each of very many tasks. A text of brackets alone would take
# fifty times its size when it is read.
_LARGEST = 4 << 20
# What all lines of one listener may keep in our memory before it is a message.
_MOST_UNREAD = 16 << 20
_MOST_PARTS = 100_000

Message = dict[str, Any]


class HungUpError(Exception):
    """The other end is gone, or sends what has no meaning."""


class Line:
    """One end of a connection. `files` are those that came and were not taken yet."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._connection.settimeout(0)
        self._rest = b""
        self.files: list[int] = []

    @property
    def unread(self) -> int:
        """How many bytes came that are no complete message yet."""
        return len(self._rest)

    def fileno(self) -> int:
        return self._connection.fileno()

    def peer(self) -> tuple[int, int]:
        """The process at the other end, and its user."""
        wanted = struct.calcsize("3i")
        found = self._connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, wanted)
        pid, uid, _ = struct.unpack("3i", found)
        return pid, uid

    def send(self, kind: str, **content: object) -> None:
        """What cannot be sent at once is not: an end that does not read counts as gone."""
        with contextlib.suppress(OSError):
            self._connection.send(self.message(kind, **content))

    def send_file(self, kind: str, number: int) -> None:
        """The same with an open file beside it, which is closed here."""
        with contextlib.suppress(OSError):
            socket.send_fds(self._connection, [self.message(kind)], [number])
        os.close(number)

    @staticmethod
    def message(kind: str, **content: object) -> bytes:
        """As it goes over the wire."""
        text = json.dumps({"kind": kind, **content}).encode()
        return _LENGTH.pack(len(text)) + text

    def hear(self) -> Iterator[Message]:
        """The messages that are complete now; HungUpError when there will be none any more."""
        try:
            # Not with recv_fds, which forgets the flag: no task may inherit another's files.
            received, beside, flags, _ = self._connection.recvmsg(
                _CHUNK, socket.CMSG_SPACE(_MOST_FILES * _FILE.size), socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            return
        except OSError:
            raise HungUpError from None
        self.files.extend(_files(beside))
        # Files that there was no room for are lost, and those that came are no longer in order.
        if not received or flags & socket.MSG_CTRUNC:
            raise HungUpError
        self._rest += received
        yield from self._complete()

    def drop_files(self) -> None:
        for number in self.files:
            os.close(number)
        self.files.clear()

    def close(self) -> None:
        self.drop_files()
        self._connection.close()

    def _complete(self) -> Iterator[Message]:
        while len(self._rest) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._rest)
            end = _LENGTH.size + length
            if length > _LARGEST:
                raise HungUpError
            if len(self._rest) < end:
                return
            text, self._rest = self._rest[_LENGTH.size : end], self._rest[end:]
            yield _read(text)


def demand_room(lines: Iterable[Line], most_files: int) -> None:
    """HungUpError when what these have of unfinished messages is more than may wait."""
    unread = files = 0
    for line in lines:
        unread += line.unread
        files += len(line.files)
    if unread > _MOST_UNREAD or files > most_files:
        raise HungUpError


def _read(text: bytes) -> Message:
    """Only whole numbers mean anything here; other ones are refused, and endless nesting too."""
    if text.count(b"[") + text.count(b"{") > _MOST_PARTS:
        raise HungUpError
    try:
        message = json.loads(text, parse_float=_refuse, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise HungUpError from None
    if not isinstance(message, dict):
        raise HungUpError
    return cast("Message", message)


def _refuse(text: str) -> None:
    raise ValueError(text)


def _files(beside: Iterable[tuple[int, int, bytes]]) -> Iterator[int]:
    """The numbers of the files that came beside what was said."""
    for level, kind, content in beside:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            whole = len(content) - len(content) % _FILE.size
            for (number,) in _FILE.iter_unpack(content[:whole]):
                yield int(number)
