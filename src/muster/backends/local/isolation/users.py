"""Whose processes they are: the job's user on this machine."""

import contextlib
import ctypes
import os
import pwd
from collections.abc import Generator
from dataclasses import dataclass


class LaunchError(Exception):
    """The attempt cannot begin; the text is for the job's user, the number is the system's."""

    def __init__(self, text: str, number: int = 1) -> None:
        super().__init__(text)
        self.number = number


class NoToolError(LaunchError):
    """The image cannot be run, because nothing here runs images."""


@dataclass(frozen=True, kw_only=True)
class LocalUser:
    """A user of this machine. `changes` says that a process must become them first."""

    name: str
    uid: int
    gid: int
    home: str
    shell: str
    changes: bool


def local_user(name: str) -> LocalUser:
    """The user of this name; a Muster that is not root runs jobs of its own user only."""
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise LaunchError(f"user {name} does not exist on this machine") from None
    changes = found.pw_uid != os.geteuid()
    if changes and os.geteuid() != 0:
        raise LaunchError(f"Muster does not run as root here and cannot start jobs of user {name}")
    return LocalUser(
        name=name,
        uid=found.pw_uid,
        gid=found.pw_gid,
        home=found.pw_dir,
        shell=found.pw_shell or "/bin/sh",
        changes=changes,
    )


def become(user: LocalUser) -> None:
    """Give up every right that the user does not have; there is no way back."""
    if not user.changes:
        return
    os.initgroups(user.name, user.gid)
    os.setgid(user.gid)
    os.setuid(user.uid)


@contextlib.contextmanager
def acting_as(user: LocalUser) -> Generator[None]:
    """Have the user's rights for a while; only for a process that has one thread."""
    if not user.changes:
        yield
        return
    groups, gid, uid = os.getgroups(), os.getegid(), os.geteuid()
    os.initgroups(user.name, user.gid)
    os.setegid(user.gid)
    os.seteuid(user.uid)
    try:
        yield
    finally:
        os.seteuid(uid)
        os.setegid(gid)
        os.setgroups(groups)


@contextlib.contextmanager
def opening_as(user: LocalUser) -> Generator[None]:
    """Open files with the user's rights and no others; for one thread of many."""
    if not user.changes:
        yield
        return
    groups, gid = os.getgroups(), os.getegid()
    _set_groups_of_thread(os.getgrouplist(user.name, user.gid))
    _libc.setfsgid(user.gid)
    # The last of the three, and the first to be taken back: it takes the right to do the others.
    _libc.setfsuid(user.uid)
    try:
        if _libc.setfsuid(user.uid) != user.uid:
            raise PermissionError(f"cannot open files as user {user.name}")
        yield
    finally:
        _libc.setfsuid(os.geteuid())
        _libc.setfsgid(gid)
        _set_groups_of_thread(groups)


_libc = ctypes.CDLL(None, use_errno=True)
_SETGROUPS = {"x86_64": 116, "aarch64": 159, "riscv64": 159, "ppc64le": 81, "s390x": 206}
"""setgroups(2) by the kind of machine: the C library's function changes all threads."""


def _set_groups_of_thread(groups: list[int]) -> None:
    number = _SETGROUPS.get(os.uname().machine)
    if number is None:
        raise PermissionError(f"cannot open files as another user on {os.uname().machine}")
    listed = (ctypes.c_uint32 * len(groups))(*groups)
    if _libc.syscall(number, ctypes.c_size_t(len(groups)), listed) != 0:
        raise PermissionError(os.strerror(ctypes.get_errno()))


def start_folder(workdir: str | None, user: LocalUser) -> str:
    """Where the job begins: where the launch says, else at home, else at the root."""
    if workdir:
        return workdir
    return user.home if os.path.isdir(user.home) else "/"


def surroundings(user: LocalUser) -> dict[str, str]:
    """What every process finds in its environment unless the job says otherwise."""
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": user.home,
        "USER": user.name,
        "LOGNAME": user.name,
        "SHELL": user.shell,
    }
