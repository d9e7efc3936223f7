"""What processes see as a thing of their own: mounts, and memory and messages that they share."""

import ctypes
import os
from dataclasses import dataclass

_NEW_MOUNTS, _NEW_IPC = 0x0002_0000, 0x0800_0000
_NOSUID, _NODEV, _NOEXEC = 0x2, 0x4, 0x8
_BIND, _REC, _SLAVE = 0x1000, 0x4000, 0x8_0000

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, kw_only=True)
class Namespaces:
    """Open ones, for `enter`: a process's /proc/PID/ns/mnt and /proc/PID/ns/ipc."""

    mounts: int
    ipc: int


def opened(pid: int) -> Namespaces:
    """Those that a process is in; they last as long as they are open."""
    kinds = ("mnt", "ipc")
    mounts, ipc = (os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in kinds)
    return Namespaces(mounts=mounts, ipc=ipc)


def close(namespaces: Namespaces) -> None:
    """They end, unless a process is in them."""
    os.close(namespaces.mounts)
    os.close(namespaces.ipc)


def own_mounts() -> None:
    """From now on what we mount is ours alone; what the machine mounts is still seen."""
    _must(_libc.unshare(_NEW_MOUNTS), "unshare")
    _mount("none", "/", "", _REC | _SLAVE)


def own_ipc() -> None:
    """From now on we share memory and messages with our own children alone."""
    _must(_libc.unshare(_NEW_IPC), "unshare")


def bind(source: str, target: str) -> None:
    """Have a folder, with whatever is mounted in it, at another place as well."""
    _mount(source, target, "", _BIND | _REC)


def mount_memory(target: str, options: str) -> None:
    """A file system in memory, which counts as memory of the processes that write to it."""
    _mount("tmpfs", target, "tmpfs", _NOSUID | _NODEV, options)


def mount_queues(target: str) -> None:
    """The messages that are queued where we are, as files."""
    _mount("mqueue", target, "mqueue", _NOSUID | _NODEV | _NOEXEC)


def enter(namespaces: Namespaces) -> None:
    """See what is seen where these were opened."""
    _must(_libc.setns(namespaces.ipc, _NEW_IPC), "setns")
    _must(_libc.setns(namespaces.mounts, _NEW_MOUNTS), "setns")


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    words = [os.fsencode(word) for word in (source, target, kind)]
    _must(_libc.mount(*words, ctypes.c_ulong(flags), os.fsencode(options)), target)


def _must(answer: int, what: str) -> None:
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
