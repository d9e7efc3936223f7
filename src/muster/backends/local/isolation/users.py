"""Whose processes they are: the job's user on this machine."""

import contextlib
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
