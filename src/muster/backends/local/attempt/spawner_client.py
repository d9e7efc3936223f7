"""The backend's end of the spawner: starts one when there is none, and asks it to run attempts."""

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from muster.backends.local.attempt import spawner, spool
from muster.model.errors import BackendDownError
from muster.model.value import ClusterName

_PATIENCE_S = 10.0


class SpawnerClient:
    """Any thread may call. Losing the spawner loses nothing: the next call starts another."""

    def __init__(self, home: Path, cluster: ClusterName) -> None:
        self._home = home
        self._cluster = cluster
        self._connection: socket.socket | None = None
        self._lock = threading.Lock()

    def run(self, key: str) -> None:
        """Have a supervisor started for this attempt, unless it has or had one."""
        message = spawner.RUN + key.encode()
        with self._lock:
            if self._sent(message):
                return
            self._reconnect()
            if not self._sent(message):
                raise BackendDownError(
                    self._cluster, "the spawner of jobs ended while it was asked"
                )

    def stop(self, *, even_if_busy: bool) -> bool:
        """End the spawner, if there is one; False when it stays because it is in use."""
        with self._lock:
            if self._connection is None and not self._is_connected():
                return True
            if not self._sent(spawner.STOP if even_if_busy else spawner.REST):
                return True
            is_ended = self._answer() != spawner.BUSY
            if is_ended:
                self._drop()
            return is_ended

    def leave(self) -> bool:
        """Disconnect from the spawner, which ends unless it is in use; False when it stays."""
        is_ended = self._connection is None or self.stop(even_if_busy=False)
        self.close()
        return is_ended

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _sent(self, message: bytes) -> bool:
        if self._connection is None:
            return False
        try:
            self._connection.send(message)
        except OSError:
            self._drop()
            return False
        return True

    def _answer(self) -> bytes:
        if self._connection is None:
            return b""
        try:
            return self._connection.recv(64)
        except OSError:
            return b""

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _reconnect(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        if self._is_connected():
            return
        _start_spawner(self._home)
        while not self._is_connected():
            if time.monotonic() > deadline:
                log = self._home / "logs" / "spawner.log"
                raise BackendDownError(
                    self._cluster, f"the spawner of jobs did not start; see {log}"
                )
            time.sleep(0.005)

    def _is_connected(self) -> bool:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.settimeout(_PATIENCE_S)
        try:
            with reachable(self._home / "spool") as folder:
                connection.connect(f"{folder}/{spool.SPAWNER_SOCKET}")
        except OSError:
            connection.close()
            return False
        self._connection = connection
        return not self._is_strange()

    def _is_strange(self) -> bool:
        """Was the spawner left by another Muster? Then it is ended; its supervisors go on."""
        lock = self._home / "spool" / spool.SPAWNER_LOCK
        try:
            if lock.read_text(encoding="utf-8", errors="replace") == spawner.stamp():
                return False
        except FileNotFoundError:
            pass
        self._sent(spawner.STOP)
        self._answer()
        self._drop()
        return True


class reachable:  # noqa: N801 -- reads as a phrase: `with reachable(folder) as path`
    """A short path for a folder: the address of a unix socket holds about a hundred bytes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = -1

    def __enter__(self) -> str:
        self._number = os.open(self._folder, os.O_PATH | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._number}"

    def __exit__(self, *_: object) -> None:
        os.close(self._number)


def _start_spawner(home: Path) -> None:
    logs = home / "logs"
    logs.mkdir(mode=0o700, exist_ok=True)
    with (logs / "spawner.log").open("ab") as log:
        # It forks and leaves at once, so there is hardly anything to wait for.
        subprocess.run(  # noqa: S603 -- our own module, with our own interpreter
            [sys.executable, "-m", "muster.backends.local.attempt.spawner", str(home)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
            cwd="/",
            env=_plain_environment(),
            # What it makes is partly for users; only the server keeps everything to itself.
            umask=0o022,
        )


def _plain_environment() -> dict[str, str]:
    """Supervisors are forked from the spawner: nothing of ours should reach jobs through it."""
    kept = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TZ", "HOME", "XDG_RUNTIME_DIR", "DOCKER_HOST")
    return {
        name: text
        for name, text in os.environ.items()
        if name in kept or name.startswith("CONTAINERS_") or _is_tool_option(name)
    }


def _is_tool_option(name: str) -> bool:
    """What the administrator adds to each use of a container tool."""
    return name.startswith("MUSTER_") and name.endswith("_OPTIONS")
