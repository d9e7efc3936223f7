"""This machine with a backend on it, for tests that start real processes."""

import json
import os
import pwd
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from muster.backends.base import Cut, Run
from muster.backends.local.attempt import processes
from muster.backends.local.backend import LocalBackend
from muster.backends.local.hardware.inventory import DeviceError
from muster.backends.local.isolation.devices import DeviceWall
from muster.model.cluster import BackendKind, Cluster, Node
from muster.model.event import (
    Event,
    JobCheckpointed,
    JobEnded,
    JobStarted,
    JobSuspended,
)
from muster.model.job import Job, JobSpec, JobState, TaskGroup
from muster.model.launch import Launch
from muster.model.placement import Allocation, DeviceShare, Placement
from muster.model.resources import Resources
from muster.model.samples import DeviceSample
from muster.model.site import SHARED_TMP, Confinement
from muster.model.value import (
    ClusterName,
    Duration,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    Value,
    replace,
)

PATIENCE_S = 10.0
HERE = ClusterName("here")
NODE = NodeId("n1")

JobNews = JobStarted | JobCheckpointed | JobSuspended | JobEnded
_News = TypeVar("_News", JobStarted, JobCheckpointed, JobSuspended, JobEnded)
_Found = TypeVar("_Found")


class Plain:
    """A machine with nothing special: one node, no devices, no pinning."""

    def __init__(self, cpus: tuple[int, ...] = ()) -> None:
        self._cpus = cpus
        self.released: list[Placement] = []

    def nodes(self) -> tuple[Node, ...]:
        node = Node(
            id=NODE, cluster=HERE, pool=PoolName("all"), cpu_milli=64_000, memory_mib=65_536
        )
        return (node,)

    def cluster(self) -> Cluster:
        return Cluster(name=HERE, backend=BackendKind.LOCAL)

    def adopt(self, allocations: tuple[Allocation, ...]) -> None: ...

    def visible(self, share: DeviceShare) -> str:
        return share.device

    def sharing(self, placement: Placement) -> Mapping[str, str]:
        return {"SHARED_ON": placement.node} if placement.devices else {}

    def release(self, placement: Placement) -> None:
        self.released.append(placement)

    def cpus(self, allocation: Allocation) -> tuple[int, ...]:
        del allocation
        return self._cpus

    def errors(self) -> tuple[DeviceError, ...]:
        return ()

    def free(self, job: JobId, attempt: int) -> None: ...

    def wall(self, allocation: Allocation) -> DeviceWall | None:
        del allocation
        return None

    def cut(self, action: Cut) -> None: ...

    def resume(self, node: NodeId) -> None: ...

    def samples(self, now: Instant) -> tuple[DeviceSample, ...]:  # noqa: ARG002 -- it has none
        return ()

    def poll(self, now: Instant) -> bool:
        del now
        return False

    def close(self) -> None: ...


class Wanted(Value):
    """What differs from a job of one small task of ours."""

    job: int = 1
    attempt: int = 1
    name: str = "train"
    user: str = ""
    tasks: int = 1
    memory_mib: int = 0
    limit_ms: int | None = None
    checkpoint: str | None = None
    cpu_milli: int = 0
    confinement: Confinement = SHARED_TMP


class Here:
    """A backend and everything it was heard to say."""

    def __init__(self, home: Path, machine: Plain | None = None) -> None:
        self.home = home
        self.work = home / "work"
        self.work.mkdir(exist_ok=True)
        self.machine = machine or Plain()
        self._news = threading.Event()
        self.heard: list[Event] = []
        self.backend = LocalBackend(home, self.machine, self._news.set, now)

    def adopts(self, *runs: Run) -> None:
        self.backend.adopt(tuple(run.allocation for run in runs))

    def run(self, launch: Launch, wanted: Wanted | None = None) -> Run:
        """Begin a job in the working folder and return what was sent."""
        sent = run_of(self._placed(launch), wanted or Wanted())
        self.backend.do(sent)
        return sent

    def shell(self, text: str, wanted: Wanted | None = None) -> Run:
        return self.run(Launch(argv=("/bin/sh", "-c", text)), wanted)

    def python(self, text: str, wanted: Wanted | None = None) -> Run:
        return self.run(Launch(argv=("/usr/bin/env", "python3", "-c", text)), wanted)

    def sees(self, kind: type[_News], job: int = 1, *, again: bool = False) -> _News:
        """Wait until the backend says so; `again` asks for something not heard before."""
        before = len(self._of(kind, job)) if again else 0
        self.until(lambda: len(self._of(kind, job)) > before)
        return self._of(kind, job)[-1]

    def ends(self, job: int = 1) -> JobEnded:
        return self.sees(JobEnded, job)

    def until(self, condition: Callable[[], bool]) -> None:
        """Observe until it is so."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain: {self.heard}\n{self._log()}"
            self._news.wait(0.02)
            self._news.clear()
            self.heard.extend(self.backend.observe(now()))

    def until_gone(self, condition: Callable[[], bool]) -> None:
        """Wait for what happens when the backend is closed already."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, "waited in vain"
            self._news.wait(0.02)

    def text(self, name: str) -> str:
        """What is in a file of the working folder, empty as long as there is none."""
        path = self.work / name
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def pid_in(self, name: str) -> int:
        """A process number that a job writes into a file."""
        self.until(lambda: self.text(name).endswith("\n"))
        return int(self.text(name))

    def folder(self, job: int = 1, attempt: int = 1) -> Path:
        return self.home / "spool" / f"{job}.{attempt}"

    def spawner(self) -> int:
        """The process that keeps this home; there must be one."""
        wanted = str(self.home).encode()
        found = [pid for pid in processes.everybody() if wanted in _words(pid) and _is_spawner(pid)]
        return min(found, key=lambda pid: (processes.born(pid) or 0, pid))

    def supervisor(self) -> int:
        pid: int = json.loads((self.folder() / "begun.json").read_text())["pid"]
        return pid

    def kill_supervisor(self) -> None:
        os.kill(self.supervisor(), signal.SIGKILL)

    def remnants(self) -> list[int]:
        """Processes below the spawner that are no supervisors, and those that were not reaped."""
        supervisors = [pid for pid in processes.children(self.spawner()) if _is_spawner(pid)]
        below = processes.descendants(self.spawner())
        return [pid for pid in below if pid not in supervisors or not processes.is_alive(pid)]

    def leaves(self) -> None:
        """End every job and the spawner."""
        self.backend.adopt(())
        self.backend.stop_spawner(even_if_busy=True)
        self.backend.close()

    def _log(self) -> str:
        path = self.home / "logs" / "spawner.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def _placed(self, launch: Launch) -> Launch:
        return launch if launch.workdir else _with_workdir(launch, str(self.work))

    def _of(self, kind: type[_News], job: int) -> list[_News]:
        return [each for each in self.heard if isinstance(each, kind) and each.job == job]


def now() -> Instant:
    return Instant(time.time_ns() // 1_000_000)


def run_of(launch: Launch, wanted: Wanted) -> Run:
    spec = JobSpec(
        name=wanted.name,
        user=UserName(wanted.user or own_name()),
        queue=QueuePath("lab"),
        groups=(TaskGroup(count=wanted.tasks),),
        time_limit=None if wanted.limit_ms is None else Duration(wanted.limit_ms),
    )
    job = Job(
        id=JobId(wanted.job),
        spec=spec,
        submitted_at=now(),
        attempt=wanted.attempt,
        state=JobState.STARTING,
    )
    return Run(
        job=job,
        allocation=_allocation(wanted),
        launch=launch,
        nodes={node.id: node for node in Plain().nodes()},
        checkpoint=wanted.checkpoint,
        restarts=wanted.attempt - 1,
        confinement=wanted.confinement,
    )


def own_name() -> str:
    return pwd.getpwuid(os.getuid()).pw_name


def is_gone(pid: int) -> bool:
    """Neither runs nor waits to be reaped."""
    return processes.born(pid) is None


def _allocation(wanted: Wanted) -> Allocation:
    amount = Resources(memory_mib=wanted.memory_mib, cpu_milli=wanted.cpu_milli)
    return Allocation(
        job=JobId(wanted.job),
        attempt=wanted.attempt,
        cluster=HERE,
        placed_at=now(),
        placements=tuple(
            Placement(group="main", index=index, node=NODE, pool=PoolName("all"), amount=amount)
            for index in range(wanted.tasks)
        ),
    )


def _with_workdir(launch: Launch, workdir: str) -> Launch:
    return replace(launch, workdir=workdir)


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _is_spawner(pid: int) -> bool:
    return b"muster.backends.local.attempt.spawner" in _words(pid)
