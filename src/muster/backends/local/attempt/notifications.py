"""Hears from supervisors and the spawner which attempts have news."""

import contextlib
import socket
import threading
from pathlib import Path

from muster.backends.base import Wake
from muster.backends.local.attempt import spool
from muster.backends.local.attempt.spawner_client import reachable

_LONGEST = 256


class Notifications:
    """A thread that listens, and the attempts it heard of since they were last taken."""

    def __init__(self, folder: Path, wake: Wake) -> None:
        self._wake = wake
        self._keys: set[str] = set()
        self._lock = threading.Lock()
        self._is_closed = False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with contextlib.suppress(FileNotFoundError):
            (folder / spool.NOTIFY_SOCKET).unlink()
        with reachable(folder) as short:
            self._socket.bind(f"{short}/{spool.NOTIFY_SOCKET}")
        self._folder = folder
        self._thread = threading.Thread(target=self._listen, name="local-pokes", daemon=True)
        self._thread.start()

    def add(self, key: str) -> None:
        """There is news of this attempt, or there may be."""
        with self._lock:
            self._keys.add(key)
        self._wake()

    def taken(self) -> set[str]:
        """Every attempt with news since this was last asked."""
        with self._lock:
            keys, self._keys = self._keys, set()
        return keys

    def close(self) -> None:
        self._is_closed = True
        # Wakes the thread, which waits for a datagram and nothing else.
        self._socket.shutdown(socket.SHUT_RD)
        self._thread.join()
        self._socket.close()

    def _listen(self) -> None:
        while not self._is_closed:
            key = self._socket.recv(_LONGEST).decode(errors="replace")
            if spool.parts_of(key) is not None and not self._is_closed:
                self.add(key)
