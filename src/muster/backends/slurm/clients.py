"""Our commands of Slurm's names, which a job there must not take for Slurm's own."""

import contextlib
import os

_SCRIPT_START = 4_096


def without_clients(path: str) -> str:
    """Where programs are found, but for our commands of Slurm's names: there, Slurm's are meant."""
    return os.pathsep.join(each for each in path.split(os.pathsep) if not _has_client(each))


def _has_client(folder: str) -> bool:
    with contextlib.suppress(OSError), open(os.path.join(folder, "srun"), "rb") as file:
        start = file.read(_SCRIPT_START)
        return start.startswith(b"#!") and b"muster" in start
    return False
