"""A /tmp and a /dev/shm for one attempt alone: what other users find there is not of this job.

They are mounts of the attempt's own. A folder on the disk of /tmp is behind the one, memory behind
the other, which counts as the job's. Memory and messages that have no file (System V's, and queues
of POSIX) are the attempt's own too.
"""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from muster.backends.local.isolation import namespaces, trees
from muster.backends.local.isolation.namespaces import Namespaces
from muster.backends.local.isolation.users import LaunchError, LocalUser, acting_as

_TMP, _SHM, _QUEUES = "/tmp", "/dev/shm", "/dev/mqueue"  # noqa: S108 -- the places themselves, not files in them
_PREFIX = "muster-tmp-"


@dataclass(frozen=True, kw_only=True)
class PrivateTmp:
    """What an attempt has for itself, as long as it is open.

    folder: what is behind /tmp. of_job: what its processes enter.
    of_tools: what container tools enter: they see the machine's /tmp and /dev/shm, where they keep
    things of their own. memory: where they see the job's /dev/shm; None: it is the machine's.
    """

    folder: str
    of_job: Namespaces
    of_tools: Namespaces
    memory: str | None

    def close(self) -> None:
        namespaces.close(self.of_job)
        namespaces.close(self.of_tools)
        remove(self.folder)


def made(user: LocalUser, kept: Iterable[str], *, shares_memory: bool = False) -> PrivateTmp:
    """Make them for this user. `kept`: folders that are seen even where they lie in /tmp.

    shares_memory: /dev/shm stays the machine's.
    """
    folder = tempfile.mkdtemp(prefix=_PREFIX, dir=_TMP)
    inside = os.path.join(folder, "tmp")
    os.mkdir(inside)
    # As /tmp itself: whoever runs in the job may make files, and none removes another's.
    os.chmod(inside, 0o1777)  # noqa: S103 -- see above
    memory = None
    if not shares_memory and os.path.isdir(_SHM):
        memory = os.path.join(folder, "memory")
        os.mkdir(memory)
    real = {os.path.realpath(path): path for path in kept}
    hidden = {place: path for place, path in real.items() if _is_hidden(place, memory)}
    try:
        of_tools, of_job = _opened_after(
            lambda: _mount_for_tools(memory), lambda: _mount_for_job(user, inside, memory, hidden)
        )
    except OSError as error:
        remove(folder)
        raise LaunchError(f"cannot make a /tmp for the job: {error}") from None
    return PrivateTmp(folder=folder, of_job=of_job, of_tools=of_tools, memory=memory)


def remove(folder: str) -> None:
    """Remove what is behind a /tmp, with all that the job left there, if that can be done soon.

    What is left is for the program that cleans up the machine's /tmp.
    """
    if os.path.basename(folder).startswith(_PREFIX):
        trees.remove(folder)


def _is_hidden(place: str, memory: str | None) -> bool:
    return place.startswith(f"{_TMP}/") or (memory is not None and place.startswith(f"{_SHM}/"))


def _mount_for_tools(memory: str | None) -> None:
    namespaces.own_mounts()
    namespaces.own_ipc()
    if memory is not None:
        namespaces.mount_memory(memory, "mode=1777")
    if os.path.isdir(_QUEUES):
        namespaces.mount_queues(_QUEUES)


def _mount_for_job(
    user: LocalUser, inside: str, memory: str | None, hidden: Mapping[str, str]
) -> None:
    """Of what the tools see, more is hidden."""
    namespaces.own_mounts()
    opened = {place: _opened(user, path) for place, path in hidden.items()}
    if memory is not None:
        namespaces.bind(memory, _SHM)
    namespaces.bind(inside, _TMP)
    for place, number in opened.items():
        if number is not None:
            # Below a /tmp that is empty: no link of the user's leads from there elsewhere.
            os.makedirs(place, exist_ok=True)
            namespaces.bind(f"/proc/self/fd/{number}", place)


def _opened_after(*steps: Callable[[], None]) -> list[Namespaces]:
    """Those of a process that takes these steps, after each of them; the process then ends."""
    says, said = os.pipe()
    goes_on, go_on = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(says)
        os.close(go_on)
        _step_and_exit(steps, said, goes_on)
    os.close(said)
    os.close(goes_on)
    found: list[Namespaces] = []
    try:
        for _ in steps:
            words = os.read(says, 256).decode(errors="replace")
            if words != _DONE:
                raise OSError(words or "the mounts could not be made")
            found.append(namespaces.opened(pid))
            os.write(go_on, b"\n")
    except OSError:
        for each in found:
            namespaces.close(each)
        raise
    finally:
        os.close(says)
        os.close(go_on)
        os.waitpid(pid, 0)
    return found


_DONE = "done"


def _step_and_exit(steps: Iterable[Callable[[], None]], said: int, goes_on: int) -> None:
    try:
        for step in steps:
            step()
            os.write(said, _DONE.encode())
            os.read(goes_on, 1)
    except OSError as error:
        os.write(said, str(error).encode()[:256])
    finally:
        os._exit(0)


def _opened(user: LocalUser, path: str) -> int | None:
    """A folder of the user's as they can reach it; what they cannot is hidden from them."""
    with contextlib.suppress(OSError), acting_as(user):
        number = os.open(path, os.O_PATH | os.O_DIRECTORY)
        os.stat(".", dir_fd=number)
        return number
    return None
