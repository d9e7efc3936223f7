"""Where the files of pods are: volumes and last words while they run, and what they wrote."""

import contextlib
import glob
import os
import shutil
import tempfile
from pathlib import Path

from muster.backends.local.attempt import spool
from muster.backends.local.isolation import trees
from muster.backends.local.isolation.users import LocalUser, acting_as

FOLDER = "pods"
LOGS = "pod-logs"
MEMORY = "/dev/shm"  # noqa: S108 -- the machine's memory as a folder
_MEMORY_PREFIX = "muster-"


def home_of(attempt: Path) -> Path:
    """The folder of the installation, from the folder of an attempt in its spool."""
    return attempt.parents[1]


def folder_of(home: Path, key: str) -> Path:
    """What a pod has on disk while it runs."""
    return home / FOLDER / key


def key_of_task(key: str, rank: int) -> str:
    """Stands for the key of an attempt where a task of its gang has files of its own."""
    return f"{key}/{rank}"


def name_of(file: str, launch: spool.LaunchFile) -> str:
    """What a file of the spool is called for the task that is launched."""
    return spool.of_task(file, launch.get("rank", 0))


def log_path(home: Path, key: str, container: str, run: int) -> Path:
    """What one run of a container wrote."""
    return home / LOGS / key / f"{container}.{run}.log"


def newest_run(home: Path, key: str, container: str) -> int | None:
    """The last run of a container that wrote a log; None where there is none."""
    found = (home / LOGS / key).glob(f"{container}.*.log")
    numbers = [name.split(".")[-2] for name in (path.name for path in found)]
    return max((int(each) for each in numbers if each.isdecimal()), default=None)


def keep_last_logs(home: Path, key: str, container: str, run: int) -> None:
    """Of runs before this one, only the log of the last can be asked for."""
    for path in (home / LOGS / key).glob(f"{glob.escape(container)}.*.log"):
        number = path.name.split(".")[-2]
        if number.isdecimal() and int(number) < run - 1:
            path.unlink(missing_ok=True)


def made_folder(home: Path, key: str, owner: LocalUser | None) -> Path:
    """What a pod has on disk: nobody enters it but root and its owner; None: only we ourselves.

    What is inside may be open to everyone, because containers have users of their own. An owner
    can change all of it at any time, so that whatever is done there must be done as them.
    """
    path = home / FOLDER
    path.mkdir(mode=0o711, exist_ok=True)
    path.chmod(0o711)
    first, *rest = key.split("/")
    path /= first
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
        if owner is not None and owner.changes:
            os.chown(path, owner.uid, owner.gid)
    for part in rest:
        path /= part
        with as_owner(owner), contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
    return path


def as_owner(owner: LocalUser | None) -> contextlib.AbstractContextManager[None]:
    """Do something in the folder of a pod with the rights of whoever can change it."""
    return contextlib.nullcontext() if owner is None else acting_as(owner)


def made_memory() -> Path:
    """A folder in memory, where every user may write: nobody could guess its name or enter it."""
    return Path(tempfile.mkdtemp(prefix=_MEMORY_PREFIX, dir=MEMORY))


def remove(home: Path, key: str) -> None:
    """The pod is over: its volumes go with it."""
    trees.remove(folder_of(home, key))


def remove_memory(folder: Path | str) -> None:
    """As `remove`, for what `made_memory` made."""
    path = Path(folder)
    if path.name.startswith(_MEMORY_PREFIX) and str(path.parent) == MEMORY:
        trees.remove(path)


def remove_logs(home: Path, job: int) -> None:
    """Nobody can ask for them any more."""
    folder = home / LOGS
    if not folder.is_dir():
        return
    for name in os.listdir(folder):
        parts = spool.parts_of(name)
        if parts is not None and parts[0] == job:
            shutil.rmtree(folder / name, ignore_errors=True)
