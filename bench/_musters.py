"""A Muster of its own for a benchmark: in a temporary home, ended and removed afterwards."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path

from muster.api.pages import JobFilter
from muster.api.requests import GroupDocument, SubmitDocument
from muster.backends.local.attempt.spawner_client import SpawnerClient
from muster.client.calls import Client
from muster.model.value import ClusterName

MUSTER = str(Path(sys.executable).parent / "muster")
PATIENCE_S = 600.0
AT_ONCE = 20_000


class Home:
    """A Muster that runs, and how it is asked."""

    def __init__(self, folder: Path, program: str = MUSTER) -> None:
        self.folder = folder
        self._program = program
        self.url = f"unix:{folder}/muster.sock"
        self.environ = environ_of(folder)
        self.client = Client(self.url)

    def run(self, *words: str) -> None:
        """One of Muster's commands; what it prints is not of interest unless it fails."""
        self.said(*words)

    def said(self, *words: str) -> str:
        """What one of Muster's commands prints."""
        command = (self._program, *words)
        done = subprocess.run(  # noqa: S603 -- our own command
            command, env=self.environ, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def stop(self) -> None:
        """End its jobs, itself, and the process that would keep jobs alive without it."""
        self.cancel_all()
        self.client.close()
        self.run("down")
        spawner = SpawnerClient(self.folder, ClusterName("local"))
        spawner.stop(even_if_busy=True)
        spawner.close()

    def live(self) -> int:
        """So many jobs wait or run."""
        return sum(self.client.status().jobs.values())

    def cancel_all(self) -> None:
        """End every job, the youngest first: those that wait, before what they wait for."""
        ids = [job.id for job in self.client.all_jobs(JobFilter(limit=AT_ONCE))][::-1]
        for begin in range(0, len(ids), AT_ONCE):
            self.client.cancel(ids[begin : begin + AT_ONCE])
        until(lambda: self.live() == 0, 0.1)


@contextlib.contextmanager
def muster(*, nodes: int, gpus: str, program: str = MUSTER) -> Generator[Home]:
    """A Muster with pretend nodes, its store and all settings as they are by default.

    program: the `muster` of another checkout, in place of this one's.
    """
    with tempfile.TemporaryDirectory(prefix="muster-") as folder:
        home = Home(Path(folder), program)
        home.run("up", "--nodes", str(nodes), "--gpus", gpus)
        try:
            yield home
        finally:
            home.stop()


@contextlib.contextmanager
def slurm_commands(home: Home) -> Generator[Mapping[str, str]]:
    """The environment of Muster's Slurm commands, installed with their bytecode beside them."""
    own = _without_python() | {"MUSTER_HOME": str(home.folder)}
    with tempfile.TemporaryDirectory(prefix="slurm-bin-") as folder:
        # Any user of this machine may call them.
        Path(folder).chmod(0o755)
        subprocess.run(  # noqa: S603 -- our own command
            [MUSTER, "slurm", "install", folder, "--force"],
            env=own,
            check=True,
            capture_output=True,
        )
        yield own | {"PATH": os.pathsep.join((folder, own["PATH"]))}


def tidy_when_told_to_end() -> None:
    """SIGTERM as an exception, so that every `with` ends what it began."""

    def leave(number: int, _: object) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, leave)


def environ_of(folder: Path) -> Mapping[str, str]:
    """As for an installed Muster: its bytecode is there, and Python behaves as it usually does."""
    own = {"MUSTER_HOME": str(folder), "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
    return _without_python() | own


def _without_python() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def job(
    script: str, *, gpus: int = 1, held: bool = False, array: str | None = None
) -> SubmitDocument:
    """A job with whole GPUs whose output nobody reads."""
    return SubmitDocument(
        name="bench",
        groups=(GroupDocument(gpus=gpus),),
        script=script,
        stdout="/dev/null",
        workdir="/tmp",  # noqa: S108 -- nothing is written there
        time=3_600,
        held=held,
        array=array,
    )


def until(is_so: Callable[[], bool], every_s: float, patience_s: float = PATIENCE_S) -> bool:
    """Look again and again until it is so; False when patience ends."""
    deadline = time.monotonic() + patience_s
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
    return True


def percentile(values: Sequence[float], per_cent: float) -> float:
    """The smallest value that so many of a hundred do not exceed."""
    ordered = sorted(values)
    at = -(-len(ordered) * per_cent // 100)
    return ordered[max(0, int(at) - 1)]
