"""Backends that run real processes as engines: waiting takes the time it takes."""

import os
import pwd
import signal
import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path

from contracts.backends.engine import Doing, Engine
from contracts.backends.example import ExampleBackend
from contracts.backends.given import CLUSTER, NODES, job_of, run_of
from muster.backends.base import Backend, Run
from muster.backends.local.attempt import processes
from muster.backends.local.backend import LocalBackend
from muster.backends.local.hardware.machine import find_machine
from muster.backends.local.hardware.pretend import parse_pretend
from muster.model.cluster import Node
from muster.model.launch import Checkpointing, Launch
from muster.model.value import Duration, Instant, JobId, UserName, replace

HARDWARE = (parse_pretend("2xA100-40GB", nodes=2),)


class RealEngine(Engine):
    slack = Duration(10_000)
    patience_s = 20.0

    def __init__(self, home: Path) -> None:
        super().__init__()
        self.home = home
        self.news = threading.Event()
        self._work = home / "work"
        self._work.mkdir()
        self._is_open = False
        self._open()
        self.backend.adopt(())

    @abstractmethod
    def nodes(self) -> tuple[Node, ...]: ...

    @abstractmethod
    def opened(self) -> Backend:
        """Another backend object over the same home."""

    def clears_up(self) -> None:
        """Nothing runs any more: end what the backend itself left running."""

    def now(self) -> Instant:
        return clock()

    def begins(self, doing: Doing, limit: int | None) -> Run:
        self.jobs += 1
        job = job_of(self.jobs, 1, limit)
        me = UserName(pwd.getpwuid(os.getuid()).pw_name)
        job = replace(job, spec=replace(job.spec, user=me))
        launch = Launch(
            argv=("/bin/sh", "-c", _script(doing, job.id)),
            workdir=str(self._work),
            checkpoint=_checkpointing(doing, job.id),
        )
        return run_of(job, clock(), self.nodes()[:1], launch)

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self.patience_s
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain: {self.heard}"
            self.news.wait(0.02)
            self.news.clear()
            self.heard.extend(self.backend.observe(clock()))

    def until_over_unseen(self, run: Run) -> None:
        deadline = time.monotonic() + self.patience_s
        while self.lives(run) or not self.is_ready(run):
            assert time.monotonic() < deadline, "it does not end"
            self.news.wait(0.02)

    def is_ready(self, run: Run) -> bool:
        return self._said(run, "pid").endswith("\n")

    def lives(self, run: Run) -> bool:
        return self.is_ready(run) and processes.born(int(self._said(run, "pid"))) is not None

    def times_run(self, run: Run) -> int:
        return self._said(run, "runs").count("\n")

    def reopens(self, *adopting: Run) -> None:
        self.leaves()
        self.heard.clear()
        self._open()
        self.backend.adopt(tuple(run.allocation for run in adopting))

    def leaves(self) -> None:
        if self._is_open:
            self.backend.close()
        self._is_open = False

    def ends(self) -> None:
        self.reopens()
        self.clears_up()
        self.leaves()
        self._until_nobody_is_left()

    def _until_nobody_is_left(self) -> None:
        deadline = time.monotonic() + self.patience_s
        while left := [pid for pid in processes.everybody() if str(self.home) in words_of(pid)]:
            assert time.monotonic() < deadline, f"still running: {left}"
            self.news.wait(0.02)

    def _open(self) -> None:
        self.backend = self.opened()
        self._is_open = True

    def _said(self, run: Run, what: str) -> str:
        path = self._work / f"{run.job.id}.{what}"
        return path.read_text(encoding="utf-8") if path.exists() else ""


class LocalEngine(RealEngine):
    def nodes(self) -> tuple[Node, ...]:
        return find_machine(self.home, HARDWARE).nodes()

    def opened(self) -> Backend:
        self._local = LocalBackend(
            self.home, find_machine(self.home, HARDWARE), self.news.set, clock
        )
        return self._local

    def clears_up(self) -> None:
        self._local.stop_spawner(even_if_busy=True)


class ExampleEngine(RealEngine):
    def nodes(self) -> tuple[Node, ...]:
        return tuple(NODES.values())

    def opened(self) -> Backend:
        attempts = self.home / "attempts"
        attempts.mkdir(exist_ok=True)
        return ExampleBackend(attempts, CLUSTER, self.nodes(), clock)


def clock() -> Instant:
    return Instant(time.time_ns() // 1_000_000)


def words_of(pid: int) -> str:
    """How a process was called; nothing when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _script(doing: Doing, job: JobId) -> str:
    """Traps are set before the job says that it is ready, so that no signal comes too early."""
    save = f"echo saved > {job}.new; mv {job}.new {job}.saved"
    lines = [f"echo begun >> {job}.runs"]
    if doing.is_stubborn:
        lines.append("trap '' TERM")
    if doing.saves_when_asked:
        lines.append(f"trap '{save}' USR1")
    lines.append(f"echo $$ > {job}.pid")
    if doing.saves:
        lines.append(save)
    if doing.code is None:
        lines.append("while :; do sleep 0.05; done")
    else:
        lines.append(f"sleep {doing.lasts / 1_000}; exit {doing.code}")
    return "\n".join(lines)


def _checkpointing(doing: Doing, job: JobId) -> Checkpointing | None:
    if not doing.saves and not doing.saves_when_asked:
        return None
    asks = int(signal.SIGUSR1) if doing.saves_when_asked else None
    return Checkpointing(path=f"{job}.saved", signal=asks)
