"""What a process sees mounted, as a thing of its own: mounts that no other process sees."""

import ctypes
import os

_NEW_MOUNTS = 0x0002_0000
_NOSUID, _NODEV = 0x2, 0x4
_BIND, _REC, _SLAVE = 0x1000, 0x4000, 0x8_0000

_libc = ctypes.CDLL(None, use_errno=True)


def own_mounts() -> None:
    """From now on what we mount is ours alone; what the machine mounts is still seen."""
    _must(_libc.unshare(_NEW_MOUNTS), "unshare")
    _mount("none", "/", "", _REC | _SLAVE)


def bind(source: str, target: str) -> None:
    """Have a folder, with whatever is mounted in it, at another place as well."""
    _mount(source, target, "", _BIND | _REC)


def mount_memory(target: str, options: str) -> None:
    """A file system in memory, which counts as memory of the processes that write to it."""
    _mount("tmpfs", target, "tmpfs", _NOSUID | _NODEV, options)


def enter(mounts: int) -> None:
    """See what is mounted where this was opened: a process's /proc/PID/ns/mnt."""
    _must(_libc.setns(mounts, _NEW_MOUNTS), "setns")


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    words = [os.fsencode(word) for word in (source, target, kind)]
    _must(_libc.mount(*words, ctypes.c_ulong(flags), os.fsencode(options)), target)


def _must(answer: int, what: str) -> None:
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
