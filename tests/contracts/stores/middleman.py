"""Somebody between a store and PostgreSQL who cuts the line at the worst moment."""

import socket
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from functools import partial
from threading import Thread


class Cut(StrEnum):
    """Once, the line breaks when a commit is on its way, or when its answer is."""

    NEVER = "never"
    BEFORE_COMMIT = "before commit"
    AFTER_COMMIT = "after commit"


class Middleman:
    """Passes on bytes between a port of this machine and a server's socket."""

    def __init__(self, server: str) -> None:
        self.cut = Cut.NEVER
        self._server = server
        self._silenced: socket.socket | None = None
        self._lines: list[socket.socket] = []
        self._threads: list[Thread] = []
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        self._start(self._welcome)

    def close(self) -> None:
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        for line in self._lines:
            _end(line)
        for thread in self._threads:
            thread.join()
        for line in self._lines:
            line.close()

    def _welcome(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._lines += [client, server]
                self._start(partial(self._ask, client, server))
                self._start(partial(self._answer, client, server))

    def _start(self, work: Callable[[], None]) -> None:
        thread = Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while asked := client.recv(65_536):
                if b"COMMIT" in asked and self.cut is Cut.BEFORE_COMMIT:
                    self.cut = Cut.NEVER
                    break
                if b"COMMIT" in asked and self.cut is Cut.AFTER_COMMIT:
                    self._silenced = server
                server.sendall(asked)
        _end(server)
        _end(client)

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while answered := server.recv(65_536):
                if self._silenced is server:
                    self.cut, self._silenced = Cut.NEVER, None
                    break
                client.sendall(answered)
        _end(server)
        _end(client)


def _end(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
