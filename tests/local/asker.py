"""Somebody who asks a supervisor for steps, without srun in between."""

import json
import os
import socket
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from muster.backends.local.attempt.spawner_client import reachable

PATIENCE_S = 10.0
HEAD = struct.Struct("!I")
WISH: dict[str, Any] = {"tasks": 1, "on": [], "off": []}


class Asker:
    """Connected to the socket in the folder of an attempt."""

    def __init__(self, folder: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with reachable(folder) as short:
                    self._socket.connect(f"{short}/steps.sock")
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            else:
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _what: object, _where: TracebackType | None
    ) -> None:
        self._socket.close()

    def says(self, kind: str, files: Sequence[int] = (), **content: object) -> None:
        text = json.dumps({"kind": kind, **content}).encode()
        socket.send_fds(self._socket, [HEAD.pack(len(text)) + text], files)

    def hears(self, kind: str) -> dict[str, Any]:
        """The next message of this kind; others may come before it."""
        while True:
            (length,) = HEAD.unpack(self._exactly(HEAD.size))
            message: dict[str, Any] = json.loads(self._exactly(length))
            if message["kind"] == kind:
                return message

    def is_hung_up(self) -> bool:
        return self._socket.recv(1) == b""

    def wants(self, **wish: object) -> None:
        limit_ms = wish.pop("limit_ms", None)
        self.says("want", wish=WISH | wish, name="step", command="a step", limit_ms=limit_ms)

    def launches(self, *argv: str, cwd: Path) -> None:
        null = os.open(os.devnull, os.O_RDWR)
        try:
            self.says(
                "launch",
                [null],
                argvs=[argv],
                streams=[[0, 0, 0]],
                env={"PATH": os.environ["PATH"]},
                cwd=str(cwd),
                umask=0o022,
                label=False,
                pty=False,
            )
        finally:
            os.close(null)

    def _exactly(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            part = self._socket.recv(count - len(found))
            assert part, "hung up"
            found += part
        return found
