"""A user with a client of Kubernetes: its environment, a folder, and a namespace to work in."""

import os
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from doors.kubernetes.cluster import KubernetesHouse, Ran

HERE = Path(__file__).parent
SCRIPTS = HERE / "scripts"
PATIENCE_S = 600


@dataclass(frozen=True, kw_only=True)
class Desk:
    """Where a user works; `environment` holds the clients that were installed for them."""

    house: KubernetesHouse
    environment: Path
    folder: Path
    place: str

    @property
    def environ(self) -> dict[str, str]:
        """As after a login: the client's programs first, and a home of one's own."""
        known = self.house.environ
        path = os.pathsep.join([str(self.environment / "bin"), known["PATH"]])
        quiet = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": ""}
        return known | {"PATH": path, "HOME": str(self.folder)} | quiet

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

    def runs(self, script: str, *argv: str) -> dict[str, str]:
        """Run a script of this folder in the namespace; its lines by their first word."""
        ran = self.uses("python", str(SCRIPTS / script), self.place, *argv)
        return {line.partition(" ")[0]: line.partition(" ")[2] for line in ran.out.splitlines()}

    @contextmanager
    def beside(self, *argv: str, **env: str) -> Generator[Path]:
        """A program that runs while the test does; the file that has what it says."""
        said = self.folder / "said.txt"
        with (
            said.open("w") as file,
            subprocess.Popen(  # noqa: S603  what a test types
                argv, stdout=file, stderr=file, env=self.environ | env, cwd=self.folder
            ) as process,
        ):
            try:
                yield said
            finally:
                process.terminate()

    def kubectl(self, line: str, *, stdin: str = "") -> str:
        """What a kubectl in this namespace prints."""
        verb, _, rest = line.partition(" ")
        return self.house.kubectl(f"{verb} -n {self.place} {rest}", stdin=stdin)


def comes_true(is_so: Callable[[], bool], why_not: Callable[[], str]) -> None:
    """Wait for it; what is said instead if it never is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain: {why_not()}"
        time.sleep(0.1)
