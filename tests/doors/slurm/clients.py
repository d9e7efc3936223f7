"""The client of the commands in each form that it is installed in."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from doors.slurm.house import House, Ran
from muster.doors.slurm.client.compiling import NotCompiledError, compiled, compiler

KINDS = ("compiled", "python", "sanitized")
CAREFUL = (
    *("-Werror", "-Wpedantic", "-Wshadow", "-Wconversion", "-g", "-fno-omit-frame-pointer"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)
PATIENCE_S = 60


@dataclass(frozen=True, kw_only=True)
class Client:
    """The commands of one form, in a house."""

    kind: str
    folder: Path
    house: House

    @property
    def environ(self) -> dict[str, str]:
        path = f"{self.folder}:{self.house.environ['PATH']}"
        # What the end of the process frees is not freed here.
        return self.house.environ | {"PATH": path, "ASAN_OPTIONS": "detect_leaks=0"}

    def shell(self, line: str, **env: str) -> Ran:
        return self.house.shell(line, **(self.environ | env))

    def out(self, line: str, **env: str) -> str:
        """What a command that must go well prints."""
        ran = self.shell(line, **env)
        assert ran.code == 0, f"{line}: {ran.out}{ran.err}"
        return ran.out

    def starts(
        self, *argv: str | bytes, env: Mapping[str, str] | None = None, stdout: int | None = None
    ) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(  # noqa: S603  the command under test
            [self.folder / os.fsdecode(argv[0]), *argv[1:]],
            env={**self.environ, **(env or {})},
            cwd=self.house.work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if stdout is None else stdout,
            stderr=subprocess.PIPE,
        )

    def runs(self, *argv: str | bytes, env: Mapping[str, str] | None = None) -> Ran:
        with self.starts(*argv, env=env) as process:
            out, err = process.communicate(timeout=PATIENCE_S)
        return Ran(code=process.returncode, out=out.decode(), err=err.decode())


def client(kind: str, house: House) -> Client:
    """Installed once for each house."""
    made = Client(kind=kind, folder=house.root / f"bin-{kind}", house=house)
    if not made.folder.exists():
        house.muster("slurm", "install", str(made.folder), "--force", **_surroundings(kind, house))
    return made


def _surroundings(kind: str, house: House) -> dict[str, str]:
    """What makes the installer choose."""
    if kind == "python":
        return {"PATH": str(house.work)}
    if kind == "sanitized":
        return {"PATH": f"{_careful_compiler(house)}:{os.environ['PATH']}"}
    _demand_compiler(())
    return {}


def _careful_compiler(house: House) -> Path:
    """A compiler that takes every warning for an error, and builds in checks of memory."""
    _demand_compiler(CAREFUL)
    folder = house.root / "careful"
    folder.mkdir()
    flags = " ".join(CAREFUL)
    script = f'for each; do [ "$each" = -static ] && exit 1; done; exec {compiler()} {flags} "$@"'
    (folder / "cc").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "cc").chmod(0o755)
    return folder


def _demand_compiler(flags: tuple[str, ...]) -> None:
    try:
        compiled(compiler(), links=(flags,))
    except NotCompiledError as error:
        pytest.skip(str(error))
