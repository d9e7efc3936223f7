"""Looking at the files of a job, by a process with the job's own rights and limits.

Whatever the user has put there, the supervisor that asked waits only so long, and keeps little.
"""

import json
import os
import resource
import select
import signal
import time
from typing import Any, cast

from muster.backends.checkpoints import CheckpointPlace, Seen, candidates
from muster.backends.local.attempt import processes
from muster.backends.local.attempt.tasks import RunningTasks
from muster.backends.local.isolation import namespaces
from muster.backends.local.isolation.users import become

_MOST_MS = 5_000
_MOST_CPU_S = 2
_MOST_MEMORY = 256 << 20
_LARGEST = 1 << 20
_CHUNK = 65_536


class Look:
    """One look for checkpoints, from its start on. `pid` is the process that looks."""

    def __init__(self, place: CheckpointPlace, running: RunningTasks) -> None:
        self.ends_ms = _clock_ms() + _MOST_MS
        self.has_failed = False
        self._text = b""
        self._reads, writes = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._reads)
            _look_and_exit(place, running, writes)
        os.close(writes)
        os.set_blocking(self._reads, False)

    def fileno(self) -> int:
        return self._reads

    def found(self) -> list[Seen] | None:
        """What it saw, once that is known; nothing where it took too long or was killed."""
        if not self._is_whole():
            if _clock_ms() < self.ends_ms:
                return None
            self._fail()
        self.close()
        try:
            return [_read(each) for each in json.loads(self._text)]
        except (ValueError, TypeError, LookupError, RecursionError):
            self.has_failed = True
            return []

    def wait(self, patience_ms: int) -> list[Seen]:
        """What it saw, if it can be known by then."""
        self.ends_ms = min(self.ends_ms, _clock_ms() + patience_ms)
        while (found := self.found()) is None:
            waiting = select.poll()
            waiting.register(self._reads, select.POLLIN)
            waiting.poll(max(0, self.ends_ms - _clock_ms()))
        return found

    def close(self) -> None:
        """Give up whatever it still does."""
        if self._reads < 0:
            return
        processes.send([self.pid], signal.SIGKILL)
        os.close(self._reads)
        self._reads = -1

    def _is_whole(self) -> bool:
        try:
            while received := os.read(self._reads, _CHUNK):
                self._text += received
                if len(self._text) > _LARGEST:
                    self._fail()
                    return True
        except BlockingIOError:
            return False
        return True

    def _fail(self) -> None:
        self.has_failed, self._text = True, b""


def _look_and_exit(place: CheckpointPlace, running: RunningTasks, writes: int) -> None:
    """Never returns. What is done here is done by the user, within what the job may use."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGUSR1):
            signal.signal(number, signal.SIG_DFL)
        if running.group is not None:
            running.group.join()
        if running.inside is not None:
            namespaces.enter(running.inside)
        become(running.user)
        processes.die_with_parent()
        signal.alarm(_MOST_MS // 1_000)
        resource.setrlimit(resource.RLIMIT_CPU, (_MOST_CPU_S, _MOST_CPU_S))
        held = _address_space() + _MOST_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (held, held))
        seen = [[each.path, each.mtime_ms, each.shape] for each in candidates(place)]
        _write_all(writes, json.dumps(seen).encode())
    finally:
        os._exit(0)


def _write_all(number: int, content: bytes) -> None:
    while content:
        content = content[os.write(number, content) :]


def _address_space() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _read(written: Any) -> Seen:
    path, mtime_ms, shape = cast("tuple[str, int, str]", written)
    # Files can be dated in the future, and what was written then would always be the newest.
    return Seen(
        path=str(path), mtime_ms=min(int(mtime_ms), time.time_ns() // 1_000_000), shape=str(shape)
    )


def _clock_ms() -> int:
    return time.monotonic_ns() // 1_000_000
