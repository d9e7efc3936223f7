"""The compiled client: built once by this machine's C compiler, then given its command's name."""

import runpy
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from muster.model.errors import MusterError
from muster.model.value import Value

THIN = Path(__file__).parent / "thin"
MARK = "# A Slurm command of Muster; `muster slurm install` wrote it."
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-s")
LINKS = (("-static",), ())
"""A program without shared libraries starts sooner, where there is a C library for it."""

PATIENCE_S = 60
MOST_SETTINGS = 16_384
EVERYTHING = "*"


class NotCompiledError(MusterError):
    """The user: a C compiler is missing, or does not work; the commands are Python then."""


class CommandSettings(Value):
    """What one command is, as `muster_command.c` reads it.

    home: of the server, or empty. code: what Python runs for all that is not compiled; a
    descriptor and a bracket are added. wanted: how variables begin that are sent, or `*`.
    """

    command: str
    home: str
    python: str
    code: str
    wanted: tuple[str, ...]

    def written(self) -> bytes:
        """Behind the mark, with zeros between them and after them."""
        texts = (MARK, self.command, self.home, self.python, self.code, *self.wanted)
        block = b"".join(text.encode(errors="surrogateescape") + b"\0" for text in texts)
        if len(block) >= MOST_SETTINGS:
            raise NotCompiledError("the names of folders are too long for a compiled command")
        return block.ljust(MOST_SETTINGS, b"\0")


def compiler() -> str:
    """The first there is."""
    found = next(filter(None, map(shutil.which, COMPILERS)), None)
    if found is None:
        raise NotCompiledError(f"there is no C compiler ({', '.join(COMPILERS)})")
    return found


def compiled(with_compiler: str, links: Sequence[Sequence[str]] = LINKS) -> bytes:
    """The program, which does not know yet which command it is."""
    wrong = ""
    for link in links:
        with tempfile.TemporaryDirectory(prefix="muster-slurm-") as folder:
            made = Path(folder) / "command"
            wrong = _wrong(with_compiler, link, made)
            if not wrong:
                return made.read_bytes()
    raise NotCompiledError(f"{with_compiler} cannot compile the commands ({wrong})")


def with_settings(program: bytes, settings: CommandSettings) -> bytes:
    """The program that is this command."""
    empty = MARK.encode().ljust(MOST_SETTINGS, b"\0")
    if program.count(empty) != 1:
        raise NotCompiledError("the compiled program has no place for its settings")
    return program.replace(empty, settings.written())


def wanted_by(command: str) -> tuple[str, ...]:
    """What it sends of the environment: as the Python client says."""
    client = runpy.run_path(str(THIN / "muster_thin.py"))
    return (EVERYTHING,) if command in client["SUBMITTING"] else tuple(client["NEEDED"])


def _wrong(with_compiler: str, link: Sequence[str], made: Path) -> str:
    """What the compiler complains of, in a line; empty if it went well."""
    sources = map(str, sorted(THIN.glob("*.c")))
    try:
        done = subprocess.run(  # noqa: S603 -- the machine's own compiler
            [with_compiler, *FLAGS, *link, "-o", str(made), *sources],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0 and made.exists():
        return ""
    lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    return (lines or ["it does not say why"])[0].strip()
