"""A user with a client of Slurm: its environment, a folder to work in, and Muster's commands."""

import hashlib
import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from doors.slurm.house import House, Ran

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SCRIPTS = HERE / "scripts"
EXAMPLES = ROOT / "examples" / "clients"
PATIENCE_S = 300
USER = pwd.getpwuid(os.getuid()).pw_name


@dataclass(frozen=True, kw_only=True)
class Desk:
    """Where a user works; `environment` holds the clients that were installed for them."""

    slurm: House
    environment: Path
    folder: Path

    @property
    def python(self) -> str:
        return str(self.environment / "bin" / "python")

    @property
    def environ(self) -> dict[str, str]:
        """As after a login: the client's programs, Muster's commands, a home of one's own."""
        known = self.slurm.environ
        path = os.pathsep.join([str(self.slurm.bin), str(self.environment / "bin"), known["PATH"]])
        quiet = {"PYTHONDONTWRITEBYTECODE": "1", "VIRTUAL_ENV": str(self.environment)}
        return known | {"PATH": path, "HOME": str(self.folder), "USER": USER} | quiet

    def tries(self, *argv: str, **env: str) -> Ran:
        """Run a program of the client's, however it ends."""
        run = subprocess.run(  # noqa: S603  what a test types
            argv,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            env=self.environ | env,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
        )
        return Ran(code=run.returncode, out=run.stdout, err=run.stderr)

    def uses(self, *argv: str, **env: str) -> Ran:
        """Run one that must end well."""
        ran = self.tries(*argv, **env)
        assert ran.code == 0, f"{' '.join(argv)} ended with {ran.code}:\n{ran.out}{ran.err}"
        return ran

    def runs(self, script: str, *argv: str, **env: str) -> dict[str, str]:
        """Run a script of this folder; its lines by their first word."""
        ran = self.uses(self.python, str(SCRIPTS / script), *argv, **env)
        return {line.partition(" ")[0]: line.partition(" ")[2] for line in ran.out.splitlines()}

    def state(self, job: str) -> str:
        return self.slurm.out(f"squeue -h -t all -r -j {job} -o %T").strip()

    def text(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")


def environment(lists: Path, name: str) -> Path:
    """Where `make clients` puts what this list names; without it the test is skipped."""
    listed = (lists / f"requirements-{name}.txt").read_bytes()
    found = f"{lists.name}-{name}-{hashlib.sha256(listed).hexdigest()[:12]}"
    folder = ROOT / ".tools" / found
    if not (folder / "complete").exists():
        pytest.skip(f"the clients of requirements-{name}.txt are not installed: run make clients")
    return folder
