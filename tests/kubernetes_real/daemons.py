"""Daemons that a test starts and ends, each with a log, all on this machine alone."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

PATIENCE_S = 300.0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def until(is_so: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + patience_s
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.1)


class Daemon:
    """One program, which can be started again as it was."""

    def __init__(self, words: Sequence[object], log: Path) -> None:
        self._words = [str(each) for each in words]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 -- programs of the tests
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "KUBECONFIG": "/nonexistent"},
            )

    def demand_alive(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"{self._words[0]} ended:\n{self.tail()}"
        return True

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def tail(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-3_000:]

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None
