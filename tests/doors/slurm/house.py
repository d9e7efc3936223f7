"""A real Muster with pretend GPUs, and Slurm's commands on the PATH as a user has them."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE_S = 60

NO_MAIL = ("--mail-program", "/bin/true")
"""No mail is really sent, and no warning says so."""


INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
DATE = re.compile(r"\w{3} \w{3} \d\d \d\d:\d\d:\d\d \d{4}")


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a command came to."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, kw_only=True)
class House:
    """A machine with Muster on it, and a folder to work in."""

    root: Path
    more: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def environ(self) -> dict[str, str]:
        """No variable names the server: the commands know it since they were installed."""
        strange = ("MUSTER", "SLURM", "SBATCH", "SQUEUE")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(strange)}
        path = f"{self.bin}:{Path(sys.executable).parent}:{kept['PATH']}"
        return kept | {"PATH": path, "TZ": "UTC"}

    def shell(self, line: str, **env: str) -> Ran:
        """As if typed."""
        run = subprocess.run(  # noqa: S603  what a test types
            ["/bin/bash", "-c", line],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            env=self.environ | env,
            cwd=self.work,
        )
        return Ran(code=run.returncode, out=run.stdout, err=run.stderr)

    def out(self, line: str, **env: str) -> str:
        """What a command that must go well prints."""
        ran = self.shell(line, **env)
        assert ran.code == 0, f"{line}: {ran.out}{ran.err}"
        return ran.out

    def submits(self, line: str) -> str:
        return self.out(f"sbatch --parsable {line}").strip()

    def muster(self, *argv: str, **env: str) -> str:
        run = subprocess.run(  # noqa: S603  our own program
            [sys.executable, "-m", "muster", *argv],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            env={**self.environ, "MUSTER_HOME": str(self.root / "home"), **self.more, **env},
            cwd=self.work,
        )
        assert run.returncode == 0, run.stderr
        return run.stdout

    def starts(self, nodes: int, gpus: str, rules: str) -> None:
        """With nodes that are alike, or none but this machine; and with rules if there are any."""
        path = self.root / "site.yaml"
        path.write_text(rules, encoding="utf-8")
        given = ("--site", str(path)) if rules else ()
        pretend = ("--nodes", str(nodes), "--gpus", gpus) if nodes else ()
        self.muster("up", *pretend, *NO_MAIL, *given)

    def imports(self, site: Path) -> None:
        """Start with what Slurm's files in a folder say."""
        rules, nodes = self.root / "cluster.yaml", self.root / "nodes.yaml"
        files = [str(path) for path in sorted(site.iterdir())]
        rules.write_text(self.muster("import", *files, "--nodes", str(nodes)))
        self.muster("up", "--site", str(rules), "--pretend", str(nodes), *NO_MAIL)

    def tidies_up(self) -> None:
        """End every job, and empty the folder to work in."""
        self.shell("scancel -u root; scancel --me")
        self.waits_until(lambda: not self.out("squeue -h").strip())
        shutil.rmtree(self.work)
        self.work.mkdir()

    def waits_until(self, look: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not look():
            assert time.monotonic() < deadline, self.out("squeue -t all")
            time.sleep(0.02)

    def waits_for(self, job: str, state: str) -> None:
        line = f"squeue -h -t all -r -j {shlex.quote(job)} -o %T"
        self.waits_until(lambda: self.shell(line).out.split() == [state])


@contextmanager
def house(
    nodes: int = 2,
    site: Path | None = None,
    *,
    gpus: str = "4xA100-40GB",
    rules: str = "",
    **more: str,
) -> Generator[House]:
    """Muster started with `more` in its environment; nodes alike, or those of a site's files."""
    # Short, because the path of a socket may not be long; for all, because jobs are users'.
    found = House(root=Path(tempfile.mkdtemp(prefix="muster-slurm-")), more=more)
    found.root.chmod(0o755)
    found.work.mkdir()
    (found.root / "home").mkdir()
    try:
        if site is None:
            found.starts(nodes, gpus, rules)
        else:
            found.imports(site)
        # Where there is a real Slurm as well, ours is wanted here.
        found.muster("slurm", "install", str(found.bin), "--force")
        yield found
        found.tidies_up()
    finally:
        found.muster("down")
        shutil.rmtree(found.root, ignore_errors=True)


def masked(text: str, root: Path) -> str:
    """Without what differs from run to run."""
    text = text.replace(str(root), "ROOT").replace(os.uname().nodename, "HOST")
    text = re.sub(r"^   OS=.*$", "   OS=THIS", text, flags=re.MULTILINE)
    return DATE.sub("DATE", INSTANT.sub("TIME", text))
