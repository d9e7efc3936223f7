"""The files of an attempt: what they are called, what is in them, how they are written and read.

Everything that happened to an attempt is a small JSON file in its folder; datagrams only say that
it is worth looking. Only the standard library is used here: every supervisor carries it.
"""

import contextlib
import errno
import fcntl
import json
import os
import signal
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from muster.backends.local.attempt import processes

FOLDER = "spool"
LAUNCH = "launch.json"
BEGUN = "begun.json"
STARTED = "started.json"
CHECKPOINT = "checkpoint.json"
SUSPENDED = "suspended.json"
END = "end.json"
ORDER = "order-"
TERMINAL_SOCKET = "terminal.sock"
STEP_SOCKET = "steps.sock"
VISIT_SOCKET = "visits.sock"
SCRIPT = "script"
HOSTS = "hosts"
CONTAINERS = "containers.json"
POD = "pod.json"
SUPPLIES = "supplies.json"
PRIVATE_TMP = "private-tmp.json"
POD_MEMORY = "pod-memory.json"
ORDERS_SIGNAL = signal.SIGUSR1
# Processes of an attempt are recognised by this variable when everything else is lost.
MARKER_VARIABLE = "MUSTER_ATTEMPT_KEY"

TOKEN = "token"  # noqa: S105 -- the name of a file
NOTIFY_SOCKET = "notify.sock"
SPAWNER_SOCKET = "spawner.sock"
SPAWNER_LOCK = "spawner.lock"

_PATIENCE_S = 1.0
_PATIENCE_TO_START_S = 10.0


class TaskFile(TypedDict):
    """One process to start. gpus: the real ones, which a container must be given.

    memory_mib: its own part of the attempt's memory; 0 means that it has all of it.
    node: where it was placed.
    """

    env: dict[str, str]
    stdin: str | None
    stdout: str
    stderr: str | None
    gpus: list[str]
    memory_mib: int
    node: NotRequired[str]


class WarnFile(TypedDict):
    """The signal that comes before the end, and how long before."""

    signal: int
    lead_ms: int
    shell_only: bool


class CheckpointingFile(TypedDict):
    """Where checkpoints are written, and the signal that asks for one."""

    path: str
    signal: int | None


class HostsFile(TypedDict):
    """The lines of a host file, and the variables that name it."""

    text: str
    variables: list[str]


class WallFile(TypedDict):
    """A DeviceWall."""

    majors: list[int]
    given: list[tuple[int, int]]


class LaunchFile(TypedDict):
    """Everything a supervisor needs to know about its attempt.

    steps_only: nothing is started by itself; the attempt lasts as long as a client holds it.
    hosts: for scripts of batch systems that expect a host file.
    shares: each a NodeShare. pod: a PodLaunch, whose containers run instead of a command.
    gang: a PodGang, where each task is a pod. rank: which task it is, where only one is meant.
    processes: at most so many at once; 0 means no limit. wall: which devices may be opened.
    mps: where the pipes of the daemon are through which its tasks use a GPU.
    """

    key: str
    marker: str
    job: int
    node: str
    user: str
    argv: list[str]
    script: str | None
    image: str | None
    images_on_host: bool
    env: dict[str, str]
    tasks: list[TaskFile]
    hosts: HostsFile | None
    workdir: str | None
    append: bool
    umask: int | None
    warn: WarnFile | None
    checkpoint: CheckpointingFile | None
    terminal: tuple[int, int] | None
    limit_ms: int | None
    grace_ms: int
    memory_mib: int
    cpu_milli: int
    cpus: list[int]
    processes: int
    wall: WallFile | None
    private_tmp: bool
    mps: str | None
    new_privileges: bool
    master_port: int
    steps_only: bool
    shares: list[dict[str, Any]]
    pod: NotRequired[dict[str, Any] | None]
    gang: NotRequired[dict[str, Any] | None]
    rank: NotRequired[int]


class Begun(TypedDict):
    """Who supervises the attempt; `born` tells a process from a later one of the same number."""

    pid: int
    born: int


class Started(TypedDict):
    """The tasks run, as these processes; `problems` says what had to be left out."""

    at: int
    pids: list[int]
    problems: list[str]


class Checkpointed(TypedDict):
    """The newest checkpoint that is really finished."""

    at: int
    path: str


class Suspended(TypedDict):
    """The attempt's processes stand still since then."""

    at: int


class UsedFile(TypedDict):
    """What the processes used."""

    cpu_ms: int
    max_memory_mib: int
    system_ms: int
    read_kib: int
    written_kib: int
    faults: int


class StepFile(TypedDict):
    """A step began: what it is, and what it may use; the same by component where there are any."""

    at: int
    name: str
    command: str
    tasks: int
    nodes: list[str]
    amount: dict[str, int]
    parts: NotRequired[list[dict[str, Any]]]


class StepEndFile(TypedDict):
    """A step is over, and each of its parts."""

    at: int
    code: int
    signal: int
    used: UsedFile
    parts: list[dict[str, Any]]


class End(TypedDict):
    """The attempt is over; `why` is an EndReason in its JSON form."""

    at: int
    why: dict[str, Any]
    used: UsedFile | None


def of_task(name: str, rank: int) -> str:
    """The name of this file for one task of a gang of pods: `pod-2.json`; the first: `pod.json`."""
    stem, dot, kind = name.rpartition(".")
    return f"{stem}-{rank}{dot}{kind}" if rank else name


def task_of(name: str, written: str) -> int | None:
    """Which task's file this is, if it is this file; see `of_task`."""
    if written == name:
        return 0
    stem, dot, kind = name.rpartition(".")
    rank = written.removesuffix(f"{dot}{kind}").removeprefix(f"{stem}-")
    return int(rank) if rank.isdecimal() and written == of_task(name, int(rank)) else None


def key_of(job: int, attempt: int) -> str:
    """The name of an attempt's folder."""
    return f"{job}.{attempt}"


def step_name(number: int) -> str:
    """The file that says what a step is."""
    return f"step-{number}.json"


def step_end_name(number: int) -> str:
    """The file that says how it ended."""
    return f"step-{number}-end.json"


def mount_point(number: int) -> str:
    """A folder at which the tool that runs an image finds one of the user's."""
    return f"mount-{number}"


def parts_of(key: str) -> tuple[int, int] | None:
    """Job and attempt, or None where the name is not that of an attempt's folder."""
    job, _, attempt = key.partition(".")
    if not (job.isdecimal() and attempt.isdecimal()):
        return None
    return int(job), int(attempt)


def write(path: Path | str, content: Mapping[str, Any]) -> None:
    """Write a file that is there whole or not at all."""
    write_text(path, json.dumps(content, ensure_ascii=False))


def write_text(path: Path | str, text: str) -> None:
    unfinished = f"{path}~"
    opened = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    # Names of files and steps are the user's, and need be no text at all.
    content = text.encode("utf-8", "replace")
    try:
        if os.write(opened, content) < len(content):
            # The disk became full in the middle: half a file must not get its name.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), unfinished)
    finally:
        os.close(opened)
    os.rename(unfinished, path)


def read(path: Path | str) -> Any:
    """What the file says, or None where there is no such file."""
    try:
        with open(path, "rb") as file:
            return json.loads(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return None


def remove(folder: Path) -> None:
    """Take an attempt's folder away, at once and whole, also while another process reads it."""
    gone = f"{folder}~"
    try:
        os.rename(folder, gone)
    except FileNotFoundError:
        return
    for name in os.listdir(gone):
        path = f"{gone}/{name}"
        # Never what is in a folder: something of the user's could be mounted there.
        os.rmdir(path) if os.path.isdir(path) else os.unlink(path)
    os.rmdir(gone)


def take() -> int | None:
    """Become the one supervisor of the folder we are in; None when there is or was another.

    What is returned holds the lock for as long as it is open.
    """
    try:
        lock = os.open(BEGUN, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return None
    fcntl.flock(lock, fcntl.LOCK_EX)
    me = os.getpid()
    os.write(lock, json.dumps({"pid": me, "born": processes.born(me)}).encode())
    return lock


def begun(folder: Path) -> Begun | None:
    """Who supervises the attempt, or did; None before that."""
    try:
        return read(folder / BEGUN)
    except ValueError:
        # CreatedStep a moment ago, and not written yet.
        return None


def lock_abandoned(folder: Path) -> int | None:
    """The lock of an attempt whose supervisor is gone; None while it lives or was never there.

    The process that has it is the only one that may clear up.
    """
    try:
        lock = os.open(folder / BEGUN, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    if _is_starting(os.fstat(lock)):
        os.close(lock)
        return None
    return lock


def notify(where: str, key: str) -> None:
    """Notify the backend, if there is one, that there is news of an attempt."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        # The kernel queues ten datagrams: a busy receiver is waited for, a stuck one is not.
        sender.settimeout(_PATIENCE_S)
        with contextlib.suppress(OSError):
            sender.sendto(key.encode(), where)


def signal_orders(folder: Path) -> None:
    """Signal the attempt's supervisor, if there is one, that there are orders."""
    found = begun(folder)
    if found is None:
        return
    with contextlib.suppress(ProcessLookupError):
        supervisor = os.pidfd_open(found["pid"])
        try:
            # The number may belong to another process by now.
            if processes.born(found["pid"]) == found["born"]:
                signal.pidfd_send_signal(supervisor, ORDERS_SIGNAL)
        finally:
            os.close(supervisor)


def _is_starting(begun: os.stat_result) -> bool:
    """Between creating the file and locking it there is a moment; it does not last seconds."""
    return begun.st_size == 0 and time.time() - begun.st_mtime < _PATIENCE_TO_START_S
