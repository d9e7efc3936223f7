"""Where the files of pods are: volumes and last words while they run, and what they wrote."""

import os
import shutil
from pathlib import Path

from muster.backends.local.attempt import spool

FOLDER = "pods"
LOGS = "pod-logs"


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


def make(path: Path, mode: int = 0o711) -> Path:
    """A folder with this mode, whatever our umask is; those above it can be passed."""
    for above in (path.parent.parent, path.parent):
        if not above.exists():
            above.mkdir(mode=0o711)
            above.chmod(0o711)
    path.mkdir(exist_ok=True)
    path.chmod(mode)
    return path


def remove(home: Path, key: str) -> None:
    """The pod is over: its volumes go with it."""
    shutil.rmtree(folder_of(home, key), ignore_errors=True)


def remove_logs(home: Path, job: int) -> None:
    """Nobody can ask for them any more."""
    folder = home / LOGS
    if not folder.is_dir():
        return
    for name in os.listdir(folder):
        parts = spool.parts_of(name)
        if parts is not None and parts[0] == job:
            shutil.rmtree(folder / name, ignore_errors=True)
