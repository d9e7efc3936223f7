"""The GPU proof's jobs, run by the real local backend: spawner, supervisor, environment and all."""

import getpass
import os
import sys
import threading
import time
from pathlib import Path

from muster.backends.base import Forget, Run
from muster.backends.local.backend import LocalBackend
from muster.backends.local.hardware.machine import Machine, find_machine
from muster.backends.local.hardware.pretend import Pretend
from muster.model.cluster import Cluster
from muster.model.event import JobEnded
from muster.model.job import EndReason, Exited, Job, JobSpec, JobState, TaskGroup
from muster.model.launch import Launch
from muster.model.placement import Allocation, Placement
from muster.model.samples import Samples
from muster.model.site import SHARED_TMP, Confinement
from muster.model.value import ClusterName, Instant, JobId, QueuePath, UserName

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120
# How this very Python finds its libraries and the driver.
PASSED_ON = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH")


class Jobs:
    """A backend in a home of its own; `run` gives what each task of a job printed."""

    def __init__(
        self,
        home: Path,
        pretend: tuple[Pretend, ...] = (),
        *,
        machine: Machine | None = None,
        user: str | None = None,
        confinement: Confinement = SHARED_TMP,
    ) -> None:
        self._home = home
        self._confinement = confinement
        self._woken = threading.Event()
        self._machine = machine or find_machine(home, pretend)
        self._user = user or getpass.getuser()
        self._backend = LocalBackend(home, self._machine, self._woken.set, _now)
        self._backend.adopt(())
        self._count = 0

    @property
    def cluster(self) -> Cluster:
        return self._backend.cluster

    def samples(self) -> Samples:
        """What the backend measures at this moment, of devices, jobs and the machine."""
        return self._backend.samples(_now())

    def run(self, argv: tuple[str, ...], placements: tuple[Placement, ...]) -> list[str]:
        """Run Python so to the end; RuntimeError with the output when it did not end well."""
        self._count += 1
        job = JobId(self._count)
        self._backend.do(self._begun(job, (sys.executable, *argv), placements))
        try:
            why = self._ended(job)
        finally:
            self._backend.do(Forget(job=job, attempt=1))
        printed = [self._printed(f"{job}-{task}.out") for task in range(len(placements))]
        if why != Exited(code=0):
            message = f"the job ended with {why}: {printed}"
            raise RuntimeError(message)
        return printed

    def _printed(self, name: str) -> str:
        file = self._home / name
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def close(self) -> None:
        self._backend.stop_spawner(even_if_busy=True)
        self._backend.close()

    def _begun(self, job: JobId, argv: tuple[str, ...], placements: tuple[Placement, ...]) -> Run:
        env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        spec = JobSpec(
            name="proof",
            user=UserName(self._user),
            queue=QueuePath("default"),
            groups=(TaskGroup(name="proof", count=len(placements)),),
        )
        return Run(
            job=Job(id=job, spec=spec, state=JobState.STARTING, submitted_at=_now(), attempt=1),
            allocation=Allocation(
                job=job,
                attempt=1,
                cluster=ClusterName("local"),
                placements=placements,
                placed_at=_now(),
            ),
            launch=Launch(argv=argv, env=env, workdir=str(ROOT), stdout=f"{self._home}/%j-%t.out"),
            nodes={node.id: node for node in self._machine.nodes()},
            confinement=self._confinement,
        )

    def _ended(self, job: JobId) -> EndReason:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            for event in self._backend.observe(_now()):
                if isinstance(event, JobEnded) and event.job == job:
                    return event.why
            self._woken.wait(0.5)
            self._woken.clear()
        message = f"job {job} did not end within {PATIENCE_S} s"
        raise RuntimeError(message)


def _now() -> Instant:
    return Instant(time.time_ns() // 1_000_000)
