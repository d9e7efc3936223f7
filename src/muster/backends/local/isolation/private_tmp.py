"""A /tmp and a /dev/shm for one attempt alone: what other users find there is not of this job.

They are mounts of the attempt's own. A folder on the disk of /tmp is behind the one, memory behind
the other, which counts as the job's.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from muster.backends.local.isolation import namespaces, trees
from muster.backends.local.isolation.users import LaunchError, LocalUser, acting_as

_TMP, _SHM = "/tmp", "/dev/shm"  # noqa: S108 -- the places themselves, not files in them
_PREFIX = "muster-tmp-"


@dataclass(frozen=True, kw_only=True)
class PrivateTmp:
    """folder: what is behind /tmp. mounts: for `namespaces.enter`, open as long as it is used."""

    folder: str
    mounts: int


def made(user: LocalUser, kept: Iterable[str]) -> PrivateTmp:
    """Make them for this user. `kept`: folders that are seen even where they lie in /tmp."""
    folder = tempfile.mkdtemp(prefix=_PREFIX, dir=_TMP)
    inside = os.path.join(folder, "tmp")
    os.mkdir(inside)
    # As /tmp itself: whoever runs in the job may make files, and none removes another's.
    os.chmod(inside, 0o1777)  # noqa: S103 -- see above
    real = {os.path.realpath(path): path for path in kept}
    hidden = {place: path for place, path in real.items() if _is_hidden(place)}
    try:
        return PrivateTmp(folder=folder, mounts=_mounted(user, inside, hidden))
    except OSError as error:
        remove(folder)
        raise LaunchError(f"cannot make a /tmp for the job: {error}") from None


def remove(folder: str) -> None:
    """Remove what is behind a /tmp, with all that the job left there, if that can be done soon.

    What is left is for the program that cleans up the machine's /tmp.
    """
    if os.path.basename(folder).startswith(_PREFIX):
        trees.remove(folder)


def _is_hidden(place: str) -> bool:
    return place.startswith((f"{_TMP}/", f"{_SHM}/"))


def _mounted(user: LocalUser, inside: str, hidden: Mapping[str, str]) -> int:
    """A process makes the mounts and ends; they stay as long as what is returned is open."""
    is_made, makes = os.pipe()
    may_end, ends = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(is_made)
        os.close(ends)
        _mount_and_exit(user, inside, hidden, (makes, may_end))
    os.close(makes)
    os.close(may_end)
    try:
        said = os.read(is_made, 256).decode(errors="replace")
        if said != "made":
            raise OSError(said or "the mounts could not be made")
        return os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(is_made)
        os.close(ends)
        os.waitpid(pid, 0)


def _mount_and_exit(
    user: LocalUser, inside: str, hidden: Mapping[str, str], ends: tuple[int, int]
) -> None:
    makes, may_end = ends
    try:
        namespaces.own_mounts()
        opened = {place: _opened(user, path) for place, path in hidden.items()}
        namespaces.bind(inside, _TMP)
        if os.path.isdir(_SHM):
            namespaces.mount_memory(_SHM, "mode=1777")
        for place, number in opened.items():
            if number is not None:
                # Below a /tmp that is empty: no link of the user's leads from there elsewhere.
                os.makedirs(place, exist_ok=True)
                namespaces.bind(f"/proc/self/fd/{number}", place)
        os.write(makes, b"made")
        os.read(may_end, 1)
    except OSError as error:
        os.write(makes, str(error).encode()[:256])
    finally:
        os._exit(0)


def _opened(user: LocalUser, path: str) -> int | None:
    """A folder of the user's as they can reach it; what they cannot is hidden from them."""
    with contextlib.suppress(OSError), acting_as(user):
        number = os.open(path, os.O_PATH | os.O_DIRECTORY)
        os.stat(".", dir_fd=number)
        return number
    return None
