"""Real Musters on this machine: processes with pretend GPUs and real jobs, and how to wait."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from muster import Client, ClientError
from muster.api.jobs import JobDocument
from muster.api.requests import GroupDocument, SubmitDocument
from muster.model.value import replace
from muster.settings import Settings, keep_settings, made_home

T = TypeVar("T")

PATIENCE_S = 180
"""So long a test waits for what must come: long enough for a machine that has much else to do."""
PATIENT = f"--timeout={PATIENCE_S}s"
"""The same, for a kubectl that waits."""
LONGEST_S = PATIENCE_S + 60
"""A command ends by itself before."""

NODES = 2
GPUS = "4xA100-40GB"


class Process:
    """One daemon, or a process that only answers; `settings` say which."""

    def __init__(self, home: Path, settings: Settings) -> None:
        self.home = made_home(home)
        self._process: subprocess.Popen[bytes] | None = None
        keep_settings(home, settings)

    def client(self) -> Client:
        return Client(f"unix:{self.home / 'muster.sock'}")

    def start(self) -> None:
        with (self.home / "logs" / "muster.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 our own program
                [sys.executable, "-m", "muster.app.daemon", str(self.home)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.home,
            )
        until(self._answers, bool)

    def kill(self) -> None:
        """As if by the kernel: nothing is said, nothing is written."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(PATIENCE_S)
        self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE_S)
            self._process = None

    def leads(self) -> bool:
        """Is it alive, and does it lead?"""
        if self._process is None:
            return False
        try:
            with self.client() as client:
                return client.status().leading
        except ClientError:
            return False

    def log(self) -> str:
        return (self.home / "logs" / "muster.log").read_text(encoding="utf-8", errors="replace")

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log()
        try:
            with self.client() as client:
                return bool(client.status().store)
        except ClientError:
            return False


@contextmanager
def folder() -> Generator[Path]:
    """A folder with a short name that everybody may pass through, and nothing left of it."""
    made = Path(tempfile.mkdtemp(prefix="muster-live-"))
    made.chmod(0o755)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def ahead_of_others() -> Generator[None]:
    """What is started meanwhile comes first, if we may say so: for tests of real time."""
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -15)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, usual)


def until(look: Callable[[], T], is_so: Callable[[T], bool], patience_s: float = PATIENCE_S) -> T:
    """What is seen as soon as it is so; fails when it never is."""
    deadline = time.monotonic() + patience_s
    while not is_so(seen := look()):
        assert time.monotonic() < deadline, f"still {seen}"
        time.sleep(0.01)
    return seen


def shell(text: str, gpus: int = 1, **fields: object) -> SubmitDocument:
    """A job that runs a line of shell."""
    document = SubmitDocument(command=("sh", "-c", text), groups=(GroupDocument(gpus=gpus),))
    return replace(document, **({"workdir": "/", "stdout": "/dev/null"} | fields))


def running(client: Client, job: int) -> JobDocument:
    return until(lambda: client.job(job), lambda seen: seen.state == "running")


def ended(client: Client, jobs: list[int]) -> list[JobDocument]:
    """These jobs, when all of them are over."""
    until(lambda: {job.id for job in client.all_jobs()}, lambda live: live.isdisjoint(jobs))
    return [client.job(job) for job in jobs]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
