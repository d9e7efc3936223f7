"""What both systems are asked to do, and how each of them does it best."""

import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from bench._clients import NOTHING, SLEEP, Loop, MusterLoop, SbatchLoop, SlurmRestLoop, seconds
from bench._musters import AT_ONCE, MUSTER, Home, job, until
from bench.slurm.lab import Lab
from bench.slurm.rest import SlurmRest, submission
from muster.api.pages import JobFilter

LOOK_S = 0.1
"""How often both are asked whether all jobs have ended."""

NODES, GPUS_PER_NODE = 4, 8


class System(Protocol):
    """One of the two. Times are in seconds; names of ways go into the report."""

    @property
    def name(self) -> str: ...

    def loops(self) -> Mapping[str, Loop]:
        """The ways to submit held jobs from a program."""
        ...

    def no_ops(self, count: int) -> float:
        """Submit so many single jobs that do nothing; until the last has ended."""
        ...

    def no_op_array(self, count: int) -> float:
        """The same as one array."""
        ...

    def start(self, script: str) -> None:
        """Submit one job; it is the only one."""
        ...

    def is_idle(self) -> bool:
        """Nothing waits, runs or is being cleaned up."""
        ...

    def fill(self, count: int) -> None:
        """Occupy every GPU, and have so many jobs wait behind that."""
        ...

    def list_by_command(self, out: Path) -> None:
        """The command that prints the queue, into a file."""
        ...

    def list_by_api(self) -> Mapping[str, float]:
        """Read every job as documents in this program; by way, as there may be several."""
        ...

    def clear(self) -> None:
        """Cancel everything, and wait until it is gone."""
        ...


class MusterSystem:
    """Muster, by its Python client and its command."""

    name = "muster"

    def __init__(self, home: Home) -> None:
        self._home = home
        self._client = home.client

    def loops(self) -> Mapping[str, Loop]:
        return {"Python client": MusterLoop(url=self._home.url)}

    def no_ops(self, count: int) -> float:
        document = job(NOTHING)
        began = time.monotonic()
        for _ in range(count):
            self._client.submit_document(document)
        return self._ended_s(began)

    def no_op_array(self, count: int) -> float:
        began = time.monotonic()
        self._client.submit_document(job(NOTHING, array=f"0-{count - 1}"))
        return self._ended_s(began)

    def start(self, script: str) -> None:
        self._client.submit_document(job(script))

    def is_idle(self) -> bool:
        return self._home.live() == 0

    def fill(self, count: int) -> None:
        for _ in range(NODES):
            self._client.submit_document(job(SLEEP, gpus=GPUS_PER_NODE))
        assert until(lambda: self._client.status().gpus_used == NODES * GPUS_PER_NODE, LOOK_S)
        seconds(MusterLoop(url=self._home.url, held=False), clients=4, count=count - 1)
        # Every job has its reason only after a plan that knows it.
        last = self._client.submit_document(job(NOTHING)).id
        assert until(lambda: self._reason_of(last) not in {None, "new"}, LOOK_S)
        assert self._home.live() == count + NODES

    def list_by_command(self, out: Path) -> None:
        with out.open("wb") as file:
            subprocess.run(  # noqa: S603 -- our own command
                [MUSTER, "ps"], env=self._home.environ, stdout=file, check=True
            )

    def list_by_api(self) -> Mapping[str, float]:
        began = time.monotonic()
        jobs = list(self._client.all_jobs(JobFilter(limit=AT_ONCE)))
        taken = time.monotonic() - began
        assert len(jobs) > NODES
        return {"Python client": taken}

    def clear(self) -> None:
        self._home.cancel_all()

    def _ended_s(self, began: float) -> float:
        assert until(self.is_idle, LOOK_S)
        return time.monotonic() - began

    def _reason_of(self, job: int) -> str | None:
        reason = self._client.job(job).reason
        return None if reason is None else reason.kind


class SlurmSystem:
    """Slurm, by slurmrestd and its commands."""

    name = "slurm"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._rest = SlurmRest(lab.layout)

    def loops(self) -> Mapping[str, Loop]:
        return {
            "slurmrestd": SlurmRestLoop(layout=self._lab.layout),
            "sbatch": SbatchLoop(environ=self._lab.environ),
        }

    def no_ops(self, count: int) -> float:
        request = submission(NOTHING)
        began = time.monotonic()
        for _ in range(count):
            self._rest.submit(request)
        return self._ended_s(began)

    def no_op_array(self, count: int) -> float:
        began = time.monotonic()
        self._rest.submit(submission(NOTHING, array=f"0-{count - 1}"))
        return self._ended_s(began)

    def start(self, script: str) -> None:
        self._rest.submit(submission(script))

    def is_idle(self) -> bool:
        return not self._lab.ask("squeue", "-h")

    def fill(self, count: int) -> None:
        for _ in range(NODES):
            self._rest.submit(submission(SLEEP, gpus=GPUS_PER_NODE))
        assert until(lambda: self._count("RUNNING") == NODES, LOOK_S)
        loop = SlurmRestLoop(layout=self._lab.layout, held=False)
        seconds(loop, clients=4, count=count)
        assert self._count("PENDING") == count

    def list_by_command(self, out: Path) -> None:
        with out.open("wb") as file:
            self._lab.write(file, "squeue")

    def list_by_api(self) -> Mapping[str, float]:
        began = time.monotonic()
        jobs = self._rest.jobs()
        by_rest = time.monotonic() - began
        assert len(jobs) > NODES
        with tempfile.TemporaryFile() as out:
            began = time.monotonic()
            self._lab.write(out, "squeue", "--json")
            return {"slurmrestd": by_rest, "squeue --json": time.monotonic() - began}

    def clear(self) -> None:
        # Pending ones first, so that nothing starts where the running ones were.
        for state in ("PENDING", "RUNNING"):
            for user in ("nobody", "root"):
                self._lab.ask("scancel", f"--user={user}", f"--state={state}")
        assert until(self.is_idle, LOOK_S)

    def close(self) -> None:
        """Hang up."""
        self._rest.close()

    def _count(self, state: str) -> int:
        return len(self._lab.ask("squeue", "-h", "-o", "%i", f"--states={state}").split())

    def _ended_s(self, began: float) -> float:
        # A job that is only being cleaned up has ended.
        waiting = ("squeue", "-h", "-o", "%i", "--states=PENDING,CONFIGURING,RUNNING")
        assert until(lambda: not self._lab.ask(*waiting), LOOK_S)
        return time.monotonic() - began
