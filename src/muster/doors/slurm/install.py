"""Putting the commands into a folder: one small file for each, that imports almost nothing."""

import os
import py_compile
import shutil
import sys
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
    for name in NAMES:
        path = folder / name
        path.unlink(missing_ok=True)
        path.write_text(_script(name), encoding="utf-8")
        path.chmod(0o755)
    return Installed(folder=str(folder), names=NAMES, notes=tuple(_notes(folder)))


def path_line(folder: Path) -> str:
    """What a shell evaluates to find the commands first."""
    return f'export PATH="{folder}:$PATH"'


def _script(name: str) -> str:
    home = os.environ.get("MUSTER_HOME")
    module = "muster_steps" if name in HOLDING else "muster_thin"
    return "\n".join(
        [
            *_first_lines(sys.executable),
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
