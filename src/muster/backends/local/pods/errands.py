"""Processes beside the containers: probes, hooks, pulls. Nobody waits for them."""

import contextlib
import os
import select
import signal
from collections.abc import Callable
from dataclasses import dataclass

from muster.backends.local.attempt import processes
from muster.backends.local.isolation.users import LaunchError
from muster.backends.local.pods import probing

Done = Callable[[int, str], None]
"""What the end of a process means: its exit code, and what it wrote."""


@dataclass
class _Errand:
    done: Done
    hears: int
    pid: int
    ends_ms: int | None = None
    text: bytes = b""


class Errands:
    """Those of one pod that are under way."""

    def __init__(self) -> None:
        self._by_pid: dict[int, _Errand] = {}

    @property
    def are_over(self) -> bool:
        return not self._by_pid

    def send_out(self, done: Done, go: Callable[[int], int], ends_ms: int | None = None) -> None:
        """Have one started; go: starts it with a file for what it writes. LaunchError: it is not.

        ends_ms: when it is given up.
        """
        hears, tells = os.pipe()
        os.set_blocking(hears, False)
        try:
            pid = go(tells)
        except LaunchError:
            os.close(hears)
            raise
        finally:
            os.close(tells)
        self._by_pid[pid] = _Errand(done=done, hears=hears, ends_ms=ends_ms, pid=pid)

    def register(self, waiting: select.poll) -> None:
        for errand in self._by_pid.values():
            waiting.register(errand.hears, select.POLLIN)

    def serve(self, ready: set[int]) -> None:
        for errand in self._by_pid.values():
            if errand.hears in ready:
                _listen(errand)

    def times(self) -> list[int | None]:
        """When each is given up."""
        return [errand.ends_ms for errand in self._by_pid.values()]

    def note(self, pid: int, code: int) -> bool:
        """A process ended; False when it is none of these."""
        errand = self._by_pid.pop(pid, None)
        if errand is None:
            return False
        _listen(errand)
        os.close(errand.hears)
        errand.done(code, errand.text.decode(errors="replace").strip())
        return True

    def end_overdue(self, now_ms: int) -> None:
        for errand in self._by_pid.values():
            if errand.ends_ms is not None and errand.ends_ms <= now_ms:
                errand.ends_ms = None
                errand.text = b"timed out"
                processes.send([*processes.descendants(errand.pid), errand.pid], signal.SIGKILL)

    def close(self) -> None:
        for errand in self._by_pid.values():
            os.close(errand.hears)
        self._by_pid.clear()


def _listen(errand: _Errand) -> None:
    with contextlib.suppress(BlockingIOError):
        while chunk := os.read(errand.hears, probing.LONGEST_TEXT):
            errand.text = (errand.text + chunk)[-4 * probing.LONGEST_TEXT :]
