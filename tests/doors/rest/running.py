"""A real Muster in a process of its own, with pretend GPUs and real jobs."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from muster import Client, ClientError
from muster.api.jobs import JobDocument
from muster.api.requests import GroupDocument, SubmitDocument
from muster.model.value import replace
from muster.settings import Listen, Settings, keep_settings, made_home

T = TypeVar("T")

PATIENCE_S = 60.0


class Daemon:
    """One installation: it can be started and stopped as often as a test likes."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        return self.home / "muster.sock"

    def client(self, door: str = "python") -> Client:
        return Client(f"unix:{self.socket}", door=door)

    def start(self) -> None:
        with (self.home / "logs" / "muster.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 -- our own program
                [sys.executable, "-m", "muster.app.daemon", str(self.home)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.home,
            )
        until(self._is_up, bool)

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        self._process.wait(PATIENCE_S)
        self._process = None

    def log(self) -> str:
        return (self.home / "logs" / "muster.log").read_text(encoding="utf-8", errors="replace")

    def _is_up(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log()
        try:
            with self.client() as client:
                return client.status().leading and bool(client.status().nodes)
        except ClientError:
            return False


@contextmanager
def running(listen: Listen | None = None) -> Generator[Daemon]:
    # Not below pytest's own folder, which other users may not enter.
    home = Path(tempfile.mkdtemp(prefix="muster-rest-"))
    home.chmod(0o755)
    keep_settings(made_home(home), Settings(nodes=2, gpus="4xA100-40GB", listen=listen))
    daemon = Daemon(home)
    try:
        daemon.start()
        yield daemon
        with daemon.client() as client:
            client.cancel([job.id for job in client.all_jobs()])
            until(lambda: client.jobs().jobs, lambda jobs: not jobs)
    finally:
        daemon.stop()
        shutil.rmtree(home, ignore_errors=True)


def until(look: Callable[[], T], is_so: Callable[[T], bool], patience_s: float = PATIENCE_S) -> T:
    """What is seen as soon as it is so; fails when it never is."""
    deadline = time.monotonic() + patience_s
    while not is_so(seen := look()):
        assert time.monotonic() < deadline, f"still {seen}"
        time.sleep(0.01)
    return seen


def shell(text: str, gpus: int = 0, **fields: Any) -> SubmitDocument:
    """A job that runs a line of shell."""
    document = SubmitDocument(command=("sh", "-c", text), groups=(GroupDocument(gpus=gpus),))
    return replace(document, **({"workdir": "/", "stdout": "/dev/null"} | fields))


def started(client: Client, job: int) -> JobDocument:
    return until(lambda: client.job(job), lambda seen: seen.state == "running")


def as_uid(uid: int, act: Callable[[], str]) -> str:
    """What a process of another user gets; the test must be root."""
    reader, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            answer = act()
        except BaseException as error:  # noqa: BLE001 -- it is the answer
            answer = f"{type(error).__name__}: {error}"
        os.write(tell, answer.encode())
        os._exit(0)
    os.close(tell)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(child, 0)
    return answer
