"""Processes as /proc shows them: whose child is whose, who was born when, who listens to what."""

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterable

_libc = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38


def adopt_orphans() -> None:
    """From now on descendants whose parent ends become our children, wherever they went."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """From now on we are killed when our parent ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def give_up_new_privileges() -> None:
    """From now on no program makes us more than we are, such as sudo."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


_ENDING = frozenset(
    {
        signal.SIGTERM,
        signal.SIGINT,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGKILL,
        signal.SIGSTOP,
        signal.SIGCONT,
        signal.SIGTSTP,
    }
)
"""Signals that mean the same to every process, whether it listens or not."""


def descendants(root: int) -> list[int]:
    """Every process below this one, parents before children."""
    found: list[int] = []
    ahead = children(root)
    while ahead:
        pid = ahead.pop()
        found.append(pid)
        ahead.extend(children(pid))
    return found


def children(pid: int) -> list[int]:
    """The children of a process, those that wait to be reaped included."""
    found: list[int] = []
    for thread in _names(f"/proc/{pid}/task"):
        found.extend(int(each) for each in _text(f"/proc/{pid}/task/{thread}/children").split())
    return found


def born(pid: int) -> int | None:
    """When the process began, in ticks since the machine did; None when it is gone."""
    fields = _after_name(pid)
    return int(fields[19]) if fields else None


def session(pid: int) -> int | None:
    fields = _after_name(pid)
    return int(fields[3]) if fields else None


def is_alive(pid: int) -> bool:
    """Does it run? A process that only waits to be reaped does not."""
    fields = _after_name(pid)
    return bool(fields) and fields[0] not in ("Z", "X")


def everybody() -> list[int]:
    return [int(name) for name in _names("/proc") if name.isdecimal()]


def marked(marker: bytes) -> list[int]:
    """Every process that was given something with this ending in its environment.

    An environment variable ends with a zero byte, and so must the marker.
    """
    me = os.getpid()
    return [pid for pid in everybody() if pid != me and marker in environ(pid)]


def environ(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""


def catches(pid: int, number: int) -> bool:
    """Has the process a handler of its own for this signal?"""
    for line in _text(f"/proc/{pid}/status").splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def listeners(pids: Iterable[int], number: int) -> list[int]:
    """Which of these processes get a signal that a user or the job asked for.

    A shell that knows nothing of SIGUSR1 would die of it while the program it waits for listens.
    So where any of them has a handler, only those get it; otherwise all do.
    """
    everyone = list(pids)
    if number in _ENDING:
        return everyone
    return [pid for pid in everyone if catches(pid, number)] or everyone


def send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _after_name(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; the name before may hold anything."""
    return _text(f"/proc/{pid}/stat").rpartition(")")[2].split()


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
