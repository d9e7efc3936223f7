"""A line to the supervisor of a job, as `muster.backends.local.steps.wire` describes it."""

import json
import os
import select
import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

SCHEME = "unix://"
MOST_FILES = 200

_LENGTH = struct.Struct("!I")


class Lost(Exception):  # noqa: N818 -- a fact, for the caller that waits
    """The supervisor is gone."""


class Line:
    """Connected from the beginning; OSError when no process listens."""

    def __init__(self, address: str) -> None:
        if not address.startswith(SCHEME):
            raise OSError(f"this command cannot start steps at {address}")
        folder, _, name = address[len(SCHEME) :].rpartition("/")
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # The address of a socket may not be long, so that the folder is named by a number.
        number = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        try:
            self._connection.connect(f"/proc/self/fd/{number}/{name}")
        finally:
            os.close(number)
        self._rest = b""

    def fileno(self) -> int:
        return self._connection.fileno()

    def tell(self, kind: str, files: "Sequence[int]" = (), **content: object) -> None:
        """The files go first, a few at a time, each lot with a byte of the message."""
        text = json.dumps({"kind": kind, **content}).encode()
        message = _LENGTH.pack(len(text)) + text
        lots = [files[begin : begin + MOST_FILES] for begin in range(0, len(files), MOST_FILES)]
        try:
            for at, lot in enumerate(lots):
                socket.send_fds(self._connection, [message[at : at + 1]], lot)
            self._connection.sendall(message[len(lots) :])
        except OSError:
            raise Lost from None

    def hear(self) -> "Iterator[dict[str, Any]]":
        """The messages that are complete now, after waiting for at least a part of one."""
        received = self._connection.recv(1_048_576)
        if not received:
            raise Lost
        self._rest += received
        while len(self._rest) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._rest)
            end = _LENGTH.size + length
            if len(self._rest) < end:
                return
            text, self._rest = self._rest[_LENGTH.size : end], self._rest[end:]
            yield json.loads(text)

    def first(self, patience_s: float = 60.0) -> "dict[str, Any]":
        """The next message, waited for."""
        waiting = select.poll()
        waiting.register(self._connection, select.POLLIN)
        while waiting.poll(patience_s * 1_000):
            for message in self.hear():
                return message
        raise Lost
