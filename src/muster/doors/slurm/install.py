"""Putting the commands into a folder: one small file for each, that imports almost nothing."""

import os
import py_compile
import shutil
import subprocess
import sys
import time
from pathlib import Path

from muster.client.address import own_home
from muster.doors.slurm.answering import NAMES
from muster.model.errors import MusterError
from muster.model.value import Value

MARK = "# A Slurm command of Muster; `muster slurm install` wrote it."
THIN = Path(__file__).parent / "thin"
HOLDING = frozenset({"srun", "salloc", "sbcast"})
"""Commands that do something here, and bring what they need for it."""

LONGEST_INTERPRETER = 120
"""The kernel reads no longer first line of a script."""


SYSTEM_PYTHON = "/usr/bin/python3"
TRIES = 5
CLEARLY = 0.9
"""Another Python is used if it takes less than so much of the time that ours takes to start."""


class WouldShadowError(MusterError):
    """The user: there is a real Slurm, or another program of that name; --force goes ahead."""


class Installed(Value):
    """Where the commands are now, and what their user should know."""

    folder: str
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


def usual_folder() -> Path:
    """Beside the state of the Muster of this user."""
    return own_home() / "slurm-bin"


def install(folder: Path, *, force: bool = False) -> Installed:
    """Write them all, or none and say why not."""
    if not force:
        _demand_free(folder)
        _demand_no_shadow(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for module in sorted(THIN.glob("*.py")):
        py_compile.compile(str(module), doraise=True)
    python = quickest_python()
    for name in NAMES:
        path = folder / name
        path.unlink(missing_ok=True)
        path.write_text(_script(name, python), encoding="utf-8")
        path.chmod(0o755)
    return Installed(folder=str(folder), names=NAMES, notes=tuple(_notes(folder)))


def path_line(folder: Path) -> str:
    """What a shell evaluates to find the commands first."""
    return f'export PATH="{folder}:$PATH"'


def quickest_python() -> str:
    """Ours, or the system's if that starts sooner: most of a command's time is Python's start."""
    ours, theirs = _start_s(sys.executable), _start_s(SYSTEM_PYTHON)
    if ours is None or theirs is None:
        return sys.executable
    return SYSTEM_PYTHON if theirs < CLEARLY * ours else sys.executable


def _start_s(python: str) -> float | None:
    """How long it takes to be ready; None if it cannot run the same compiled modules."""
    ready = "import _json, _socket, sys; print(sys.implementation.cache_tag)"
    best: float | None = None
    for _ in range(TRIES):
        began = time.perf_counter()
        try:
            told = subprocess.run(  # noqa: S603  one of the two
                [python, "-IS", "-c", ready], capture_output=True, text=True, check=True
            ).stdout
        except (OSError, subprocess.CalledProcessError):
            return None
        if told.strip() != sys.implementation.cache_tag:
            return None
        took = time.perf_counter() - began
        best = took if best is None else min(best, took)
    return best


def _script(name: str, python: str) -> str:
    home = os.environ.get("MUSTER_HOME")
    module = "muster_steps" if name in HOLDING else "muster_thin"
    return "\n".join(
        [
            *_first_lines(python),
            MARK,
            "import sys",
            f"sys.path.append({str(THIN)!r})",
            f"import {module}",
            f"{module}.main({name!r}, {home!r})",
            "",
        ]
    )


def _first_lines(python: str) -> list[str]:
    """-I and -S: nothing of the user's, and no site packages, which would take their time."""
    if len(python) <= LONGEST_INTERPRETER and " " not in python:
        return [f"#!{python} -IS"]
    return ["#!/bin/sh", f"''':'\nexec '{python}' -IS \"$0\" \"$@\"\n'''"]


def _demand_free(folder: Path) -> None:
    for name in NAMES:
        path = folder / name
        if path.exists() and not is_ours(path):
            raise WouldShadowError(
                f"{path} is not Muster's; choose another folder, or replace it with --force"
            )


def _demand_no_shadow(folder: Path) -> None:
    """In a folder that is searched, they would come before or behind a real Slurm's."""
    if str(folder) not in os.environ.get("PATH", "").split(os.pathsep):
        return
    if (real := real_slurm(folder)) is not None:
        raise WouldShadowError(
            f"{real} is a real Slurm's, and {folder} is on the PATH as well; "
            "choose a folder that is not, or go ahead with --force"
        )


def real_slurm(folder: Path) -> str | None:
    """A command of this name that is somebody else's."""
    for place in os.environ.get("PATH", "").split(os.pathsep):
        found = shutil.which("sbatch", path=place) if place else None
        if found and Path(found).parent != folder and not is_ours(Path(found)):
            return found
    return None


def is_ours(path: Path) -> bool:
    """Was it written by us?"""
    try:
        return MARK.encode() in path.read_bytes()[:1_000]
    except OSError:
        return False


def _notes(folder: Path) -> list[str]:
    if str(folder) in os.environ.get("PATH", "").split(os.pathsep):
        return []
    notes = [f"Put them on your PATH: {path_line(folder)}"]
    if (real := real_slurm(folder)) is not None:
        notes.append(f"There is a real Slurm as well ({real}); whichever comes first is used.")
    return notes
