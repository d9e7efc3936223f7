"""The user's end of a job's terminal: speaks the frames of `terminal.py` over a socket."""

import asyncio
import socket

from muster.backends.local.attempt.terminal import DATA, END, Frames, exit_code, frame, resize_frame

_MOST_AT_ONCE = 65_536


class SocketTerminal:
    """A connected stream to the supervisor of an attempt."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(0)
        self._connection = connection
        self._frames = Frames()
        self._exit_code: int | None = None

    @property
    def exit_code(self) -> int | None:
        return self._exit_code

    async def read(self) -> bytes:
        """Frames that arrive together are shown together; nothing comes after the exit code."""
        loop = asyncio.get_running_loop()
        shown = b""
        while not shown and self._exit_code is None:
            received = await loop.sock_recv(self._connection, _MOST_AT_ONCE)
            if not received:
                raise ConnectionError("the terminal closed before the job ended")
            for kind, content in self._frames.take(received):
                if kind == END:
                    self._exit_code = exit_code(content)
                    break
                shown += content
        return shown

    async def write(self, keys: bytes) -> None:
        for begin in range(0, len(keys), _MOST_AT_ONCE):
            await self._send(frame(DATA, keys[begin : begin + _MOST_AT_ONCE]))

    async def resize(self, rows: int, columns: int) -> None:
        await self._send(resize_frame(rows, columns))

    def close(self) -> None:
        self._connection.close()

    async def _send(self, content: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._connection, content)
