"""Users and groups by name and number, as this machine knows them."""

import grp
import pwd
from functools import lru_cache


@lru_cache(maxsize=4_096)
def uid_of(user: str) -> int:
    """By the machine's list of users; a user without a name has their number as name."""
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return int(user) if user.isdecimal() else 65_534


def is_user(name_or_uid: str) -> bool:
    """Does the machine know such a user? A number needs no name."""
    try:
        return name_or_uid.isdecimal() or bool(pwd.getpwnam(name_or_uid))
    except KeyError:
        return False


@lru_cache(maxsize=4_096)
def user_of(name_or_uid: str) -> str:
    """The name that is meant by a name or a number."""
    if not name_or_uid.isdecimal():
        return name_or_uid
    try:
        return pwd.getpwuid(int(name_or_uid)).pw_name
    except KeyError:
        return name_or_uid


def is_group(name: str) -> bool:
    try:
        return bool(grp.getgrnam(name))
    except KeyError:
        return False


@lru_cache(maxsize=4_096)
def group_of(user: str) -> tuple[str, int]:
    """The user's own group: its name and number."""
    try:
        gid = pwd.getpwnam(user).pw_gid
        return grp.getgrgid(gid).gr_name, gid
    except KeyError:
        return user, uid_of(user)
