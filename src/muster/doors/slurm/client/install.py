"""Putting the commands into a folder: one small program for each, compiled if that is possible."""

import contextlib
import os
import py_compile
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

from muster.client.address import own_home
from muster.doors.slurm.answering import NAMES
from muster.doors.slurm.client.compiling import (
    MARK,
    THIN,
    CommandSettings,
    NotCompiledError,
    compiled,
    compiler,
    wanted_by,
    with_settings,
)
from muster.model.errors import MusterError
from muster.model.value import Value

HOLDING = frozenset({"srun", "salloc", "sbcast"})
"""Commands that do something here, and bring what they need for it: in Python."""

LONGEST_INTERPRETER = 120
"""The kernel reads no longer first line of a script."""


PROFILES = Path("/etc/profile.d")
SYSTEM_PYTHON = "/usr/bin/python3"
TRIES = 5
CLEARLY = 0.9
"""Another Python is used if it takes less than so much of the time that ours takes to start."""


class WouldShadowError(MusterError):
    """The user: there is a real Slurm, or another program of that name; --force goes ahead."""


class Installed(Value):
    """Where the commands are now, and what their user should know. made: what they are, and why."""

    folder: str
    names: tuple[str, ...]
    made: str
    notes: tuple[str, ...] = ()


class Programs(Value):
    """The commands as files."""

    contents: dict[str, bytes]
    made: str


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
        # Only to start sooner: who may not write where root installed us does without.
        with contextlib.suppress(OSError):
            py_compile.compile(str(module), doraise=True)
    found = programs(quickest_python())
    for name, content in found.contents.items():
        _put(folder / name, content)
    notes = tuple(_notes(folder))
    return Installed(folder=str(folder), names=NAMES, made=found.made, notes=notes)


def profile_file(folder: Path, profiles: Path) -> Path:
    """A file by which login shells find the commands; they set PATH anew before they read it."""
    file = profiles / "muster-slurm.sh"
    try:
        profiles.mkdir(parents=True, exist_ok=True)
        file.write_text(
            f"# Written by muster slurm install.\n{path_line(folder)}\n", encoding="utf-8"
        )
        file.chmod(0o644)
    except OSError as error:
        text = f"{file} cannot be written ({error.strerror}); run this as root, or use --profile"
        raise WouldShadowError(text) from error
    return file


def programs(python: str) -> Programs:
    """Compiled where there is a compiler, but for those that do much here."""
    scripts = {name: _script(name, python) for name in NAMES}
    try:
        by = compiler()
        program = compiled(by)
        quick = {
            name: with_settings(program, _settings(name, python))
            for name in NAMES
            if is_quick(name)
        }
    except NotCompiledError as error:
        made = f"They are Python scripts, which start a little later than compiled ones: {error}."
        return Programs(contents=scripts, made=made)
    kept = ", ".join(sorted(HOLDING))
    made = f"They are compiled by {by}; {kept} are Python scripts."
    return Programs(contents=scripts | quick, made=made)


def is_quick(name: str) -> bool:
    """Does it ask and print, and no more?"""
    return name not in HOLDING


def path_line(folder: Path) -> str:
    """What a shell evaluates to find the commands first."""
    return f'export PATH="{folder}:$PATH"'


def quickest_python() -> str:
    """Ours, or the system's if that starts sooner: most of a command's time is Python's start.

    What root installs is for all users, who may not get to a Python in root's own folder.
    """
    ours, theirs = _start_s(sys.executable), _start_s(SYSTEM_PYTHON)
    if ours is None or theirs is None:
        return sys.executable
    is_lacking = os.geteuid() == 0 and not is_for_all(Path(sys.executable))
    return SYSTEM_PYTHON if is_lacking or theirs < CLEARLY * ours else sys.executable


def is_for_all(path: Path) -> bool:
    """Can every user of the machine get there, whatever links lead to it?"""
    ways = {path.absolute(), path.resolve()}
    return all(each.stat().st_mode & stat.S_IXOTH for way in ways for each in (way, *way.parents))


def _start_s(python: str) -> float | None:
    """How long it takes to be ready; None if it cannot run the same compiled modules."""
    ready = "import _json, _socket, sys; print(sys.implementation.cache_tag)"
    best: float | None = None
    for _ in range(TRIES):
        began = time.perf_counter()
        try:
            messages = subprocess.run(  # noqa: S603  one of the two
                [python, "-IS", "-c", ready], capture_output=True, text=True, check=True
            ).stdout
        except (OSError, subprocess.CalledProcessError):
            return None
        if messages.strip() != sys.implementation.cache_tag:
            return None
        took = time.perf_counter() - began
        best = took if best is None else min(best, took)
    return best


def _settings(name: str, python: str) -> CommandSettings:
    home = os.environ.get("MUSTER_HOME")
    code = f"{_imports('muster_thin')}\nmuster_thin.main({name!r}, {home!r}, "
    return CommandSettings(
        command=name, home=home or "", python=python, code=code, wanted=wanted_by(name)
    )


def _script(name: str, python: str) -> bytes:
    home = os.environ.get("MUSTER_HOME")
    module = "muster_thin" if is_quick(name) else "muster_steps"
    lines = [*_first_lines(python), MARK, _imports(module), f"{module}.main({name!r}, {home!r})"]
    return "\n".join([*lines, ""]).encode()


def _imports(module: str) -> str:
    return f"import sys\nsys.path.append({str(THIN)!r})\nimport {module}"


def _first_lines(python: str) -> list[str]:
    """-I and -S: nothing of the user's, and no site packages, which would take their time."""
    if len(python) <= LONGEST_INTERPRETER and " " not in python:
        return [f"#!{python} -IS"]
    return ["#!/bin/sh", f"''':'\nexec '{python}' -IS \"$0\" \"$@\"\n'''"]


def _put(path: Path, content: bytes) -> None:
    """In one step: a user who runs the command meanwhile gets the old one or the new one."""
    made = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        made.write_bytes(content)
        made.chmod(0o755)
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)


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
    """A command of this name that is not ours."""
    for place in os.environ.get("PATH", "").split(os.pathsep):
        found = shutil.which("sbatch", path=place) if place else None
        if found and Path(found).parent != folder and not is_ours(Path(found)):
            return found
    return None


def is_ours(path: Path) -> bool:
    """Was it written by us?"""
    try:
        return MARK.encode() in path.read_bytes()
    except OSError:
        return False


def _notes(folder: Path) -> list[str]:
    notes: list[str] = []
    if os.geteuid() == 0 and not is_for_all(THIN):
        notes.append(f"Other users cannot use them: they may not read {THIN}")
    if str(folder) in os.environ.get("PATH", "").split(os.pathsep):
        return notes
    notes.append(f"Put them on your PATH: {path_line(folder)}")
    if (real := real_slurm(folder)) is not None:
        notes.append(f"There is a real Slurm as well ({real}); whichever comes first is used.")
    return notes
