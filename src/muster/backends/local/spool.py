"""The files of an attempt: what they are called, what is in them, how they are written and read.

Everything that happened to an attempt is a small JSON file in its folder; datagrams only say that
it is worth looking. Only the standard library is used here: every supervisor carries it.
"""

import contextlib
import fcntl
import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

LAUNCH = "launch.json"
LOCK = "lock"
BEGUN = "begun.json"
STARTED = "started.json"
CHECKPOINT = "checkpoint.json"
SUSPENDED = "suspended.json"
END = "end.json"
ORDER = "order-"
ORDERS_SOCKET = "orders.sock"
TERMINAL_SOCKET = "terminal.sock"
SCRIPT = "script"

TOKEN = "token"  # noqa: S105 -- the name of a file
POKE_SOCKET = "poke.sock"
KEEPER_SOCKET = "keeper.sock"
KEEPER_LOCK = "keeper.lock"

_PATIENCE_S = 1.0


class TaskFile(TypedDict):
    """One process to start: what differs between the tasks of an attempt."""

    env: dict[str, str]
    stdin: str | None
    stdout: str
    stderr: str | None


class WarnFile(TypedDict):
    """The signal that comes before the end, and how long before."""

    signal: int
    lead_ms: int
    shell_only: bool


class CheckpointingFile(TypedDict):
    """Where checkpoints are written, and the signal that asks for one."""

    path: str
    signal: int | None


class LaunchFile(TypedDict):
    """Everything a supervisor needs to know about its attempt."""

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
    master_port: int


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


class End(TypedDict):
    """The attempt is over; `why` is an EndReason in its JSON form."""

    at: int
    why: dict[str, Any]
    used: UsedFile | None


def key_of(job: int, attempt: int) -> str:
    """The name of an attempt's folder."""
    return f"{job}.{attempt}"


def parts_of(key: str) -> tuple[int, int] | None:
    """Job and attempt, or None where the name is not that of an attempt's folder."""
    job, _, attempt = key.partition(".")
    if not (job.isdecimal() and attempt.isdecimal()):
        return None
    return int(job), int(attempt)


def write(path: Path | str, content: Mapping[str, Any]) -> None:
    """Write a file that is there whole or not at all."""
    write_text(path, json.dumps(content))


def write_text(path: Path | str, text: str) -> None:
    unfinished = f"{path}~"
    opened = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(opened, text.encode())
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


def take() -> int | None:
    """Become the one supervisor of the folder we are in; None when there is or was another.

    What is returned holds the lock for as long as it is open.
    """
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(os.open(BEGUN, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except (BlockingIOError, FileExistsError):
        os.close(lock)
        return None
    return lock


def lock_of_the_dead(folder: Path) -> int | None:
    """The lock of an attempt whose supervisor is gone; None while it lives or was never there.

    Whoever has it may clear up what is left, alone.
    """
    if not (folder / BEGUN).exists():
        return None
    try:
        lock = os.open(folder / LOCK, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def poke(where: str, key: str) -> None:
    """Tell the backend that there is news of an attempt; without a backend, nobody is told."""
    send(where, key.encode())


def send(where: str, message: bytes) -> None:
    """Send one datagram to a socket that may not be there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        # The kernel queues ten datagrams: a busy receiver is waited for, a stuck one is not.
        sender.settimeout(_PATIENCE_S)
        with contextlib.suppress(OSError):
            sender.sendto(message, where)
