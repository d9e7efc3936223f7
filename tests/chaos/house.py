"""The Muster under test: its folders, how it is started, and which processes it is made of."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from muster.client.calls import Client

DAEMON = "muster.app.daemon"
PLANNER = "muster.controller.planner.server"
SPAWNER = "muster.backends.local.attempt.spawner"

SMALL_DISK_MIB = 96
UP_PATIENCE_S = 90.0

SITE = """
queues:
  default: {}
classes:
  normal: {priority: 100, grace: 1s}
pools:
  local: {cluster: local}
default_queue: default
"""


class House:
    """A state folder, on a small disk of its own where one may be mounted, and what jobs need."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.work = folder / "work"
        self.evidence = folder / "evidence"
        for each in (self.home, self.work, self.evidence / "written", self.evidence / "locks"):
            each.mkdir(parents=True)
        self.has_small_disk = _is_mounted(self.home)
        # Tells the processes of this Muster's jobs from all others; known after its first start.
        self.mark = "not started"
        (folder / "site.yaml").write_text(SITE)

    @property
    def spool(self) -> Path:
        return self.home / "spool"

    def client(self) -> Client:
        return Client(f"unix:{self.home / 'muster.sock'}")

    def starting(self) -> "subprocess.Popen[str]":
        """The command by which a user starts Muster, under way."""
        asked = ["up", "--nodes", "2", "--gpus", "4xA100-40GB"]
        site = ["--site", str(self.folder / "site.yaml")]
        return self._command(*asked, *site)

    def up(self) -> None:
        """Start Muster as a user would; it must be up when the command returns."""
        command = self.starting()
        said, _ = command.communicate(timeout=UP_PATIENCE_S)
        if command.returncode != 0:
            raise CannotStartError(said)
        self.mark = (self.spool / "token").read_text()

    def down(self) -> None:
        self._command("down").communicate(timeout=UP_PATIENCE_S)

    def close(self) -> None:
        """End what may be left, and take the small disk away."""
        self.down()
        for pid in (*self.processes(DAEMON), *self.processes(SPAWNER), *self.marked()):
            _kill(pid)
        wait_until(lambda: not self.processes(SPAWNER), patience_s=10)
        if not self.has_small_disk:
            return
        # What is on the disk goes with it, and may be needed to find out what went wrong.
        for command in (["cp", "-a", self.home, self.folder / "left"], ["umount", self.home]):
            subprocess.run(command, check=False)  # noqa: S603 our own disk

    def daemon(self) -> int | None:
        return _holder(self.home / "daemon.lock")

    def planner(self) -> int | None:
        return next(iter(self.processes(PLANNER)), None)

    def spawner(self) -> int | None:
        return _holder(self.spool / "spawner.lock")

    def supervisors(self) -> list[int]:
        """They are forked from the spawner and look like it; some wait for an attempt.

        A task looks like its supervisor until it executes its command, and is not to be struck:
        that would be the job's own end, not Muster's.
        """
        found = {pid for pid in self.processes(SPAWNER) if pid != self.spawner()}
        return sorted(pid for pid in found if (state(pid) or ("", 0))[1] not in found)

    def busy_supervisors(self) -> list[int]:
        """Those that are in the folder of an attempt, as long as it is there and after that."""
        return [pid for pid in self.supervisors() if _cwd(pid) not in (self.spool, None)]

    def processes(self, module: str) -> list[int]:
        """The processes of this Muster that run this module."""
        ours = f"MUSTER_HOME={self.home}\0".encode()
        home = f"\0{self.home}\0".encode()
        return [
            pid
            for pid in pids()
            if module.encode() in (words := _bytes(pid, "cmdline"))
            and (home in words or ours in _bytes(pid, "environ"))
        ]

    def marked(self) -> list[int]:
        """Every process of a job of this Muster."""
        ending = f".{self.mark}\0".encode()
        return [pid for pid in pids() if ending in _bytes(pid, "environ")]

    def attempts(self) -> list[str]:
        """What lies in the spool."""
        return sorted(path.name for path in self.spool.iterdir() if path.is_dir())

    def groups(self) -> list[Path]:
        """The control groups of attempts."""
        found = Path("/sys/fs/cgroup").rglob(f"muster-{self.mark[:12]}")
        return [group for ground in found for group in ground.iterdir() if group.is_dir()]

    def _command(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(  # noqa: S603 our own program
            [sys.executable, "-m", "muster", *words],
            env={**os.environ, "MUSTER_HOME": str(self.home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


class CannotStartError(Exception):
    """`muster up` failed; its words are the text."""


def kill(*processes: int | None) -> None:
    """End processes at once, as many of them as there are, and wait until they are gone."""
    struck = [pid for pid in processes if pid is not None and _kill(pid)]
    wait_until(lambda: all(_is_gone(pid) for pid in struck), patience_s=10)


def pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdecimal())


def state(pid: int) -> tuple[str, int] | None:
    """The state of a process, by its letter, and its parent; None when it is gone."""
    fields = _bytes(pid, "stat").rpartition(b")")[2].split()
    return (fields[0].decode(), int(fields[1])) if fields else None


def wait_until(is_so: Callable[[], bool], patience_s: float) -> bool:
    """Look until it is so, or until the time is over."""
    deadline = time.monotonic() + patience_s
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _is_gone(pid: int) -> bool:
    """Has it let go of its files? While other threads are on their way out, it has not."""
    known = state(pid)
    try:
        return known is None or (known[0] == "Z" and len(os.listdir(f"/proc/{pid}/task")) == 1)
    except FileNotFoundError:
        return True


def _is_mounted(home: Path) -> bool:
    if os.getuid() != 0:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    size = f"size={SMALL_DISK_MIB}m,mode=711".encode()
    return libc.mount(b"tmpfs", bytes(home), b"tmpfs", 0, size) == 0


def _holder(path: Path) -> int | None:
    """Who holds the lock of this file. Asks the kernel: to try it would keep others out."""
    try:
        about = path.stat()
    except FileNotFoundError:
        return None
    device = about.st_dev
    file = f"{os.major(device):02x}:{os.minor(device):02x}:{about.st_ino}"
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        if fields[1] == "FLOCK" and fields[5] == file and int(fields[4]) > 0:
            return int(fields[4])
    return None


def _cwd(pid: int) -> Path | None:
    try:
        return Path(os.readlink(f"/proc/{pid}/cwd"))
    except OSError:
        return None


def _bytes(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
