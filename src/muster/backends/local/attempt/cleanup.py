"""What is left of an attempt whose supervisor is gone: found, killed, and written down."""

import os
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from muster.backends.local.attempt import processes, spool
from muster.backends.local.attempt.usage import UsageSum
from muster.backends.local.isolation import cgroup, private_tmp
from muster.backends.local.isolation.cgroup import CgroupRoots
from muster.backends.local.pods import places

_PATIENCE_S = 20.0


def marker(key: str, token: str) -> str:
    """The value by which processes of this attempt are known."""
    return f"{key}.{token}"


def end_abandoned(folder: Path, roots: CgroupRoots, orphans: Iterable[int] = ()) -> bool:
    """End an attempt whose supervisor is dead: nothing of it runs after this, and it is written.

    False when its supervisor lives, or when there never was one.
    """
    lock = spool.lock_abandoned(folder)
    if lock is None:
        return False
    try:
        if (folder / spool.END).exists():
            return True
        launch: spool.LaunchFile = spool.read(folder / spool.LAUNCH)
        _remove_containers(folder)
        clear(folder.name, launch["marker"], roots, orphans)
        _end_steps(folder)
        why = {"type": "node_failed", "node": launch["node"]}
        end = {"at": time.time_ns() // 1_000_000, "why": why, "used": None}
        spool.write(folder / spool.END, end)
        _remove_tmp(folder)
        _remove_pods(folder)
    finally:
        os.close(lock)
    return True


def clear(key: str, mark: str, roots: CgroupRoots, orphans: Iterable[int] = ()) -> None:
    """Kill every process of the attempt that can be found, until there is none."""
    groups = cgroup.existing(roots, key)
    orphaned = set(orphans)
    deadline = time.monotonic() + _PATIENCE_S
    cgroup.wake(groups)
    while time.monotonic() < deadline:
        found = cgroup.members(groups) | _marked(mark) | _alive(orphaned)
        if not found:
            break
        below = {pid for root in found for pid in processes.descendants(root)}
        processes.send(found | below, signal.SIGKILL)
        time.sleep(0.005)
    cgroup.remove(groups)


def kill_supervisor(folder: Path) -> None:
    """Kill the attempt's supervisor, if it lives, and wait until it does not."""
    deadline = time.monotonic() + _PATIENCE_S
    while _is_supervised(folder) and time.monotonic() < deadline:
        begun = spool.begun(folder)
        if begun is not None and processes.born(begun["pid"]) == begun["born"]:
            processes.send([begun["pid"]], signal.SIGKILL)
        time.sleep(0.002)


def kill_strays(token: str, kept: Iterable[str]) -> None:
    """Kill every process that was marked by us and belongs to none of the attempts kept."""
    endings = f".{token}\0".encode()
    keeps = [f"={key}.{token}\0".encode() for key in kept]
    for pid in processes.marked(endings):
        environ = processes.environ(pid)
        if environ and not any(each in environ for each in keeps):
            processes.send([*processes.descendants(pid), pid], signal.SIGKILL)


def _end_steps(folder: Path) -> None:
    """Steps that went on when their supervisor ended were killed with it."""
    used = UsageSum().file(0)
    number = 0
    while (folder / spool.step_name(number)).exists():
        name = folder / spool.step_end_name(number)
        if not name.exists():
            now_ms = time.time_ns() // 1_000_000
            end = {"at": now_ms, "code": 0, "signal": int(signal.SIGKILL), "used": used}
            spool.write(name, end)
        number += 1


def _remove_containers(folder: Path) -> None:
    for name in sorted(os.listdir(folder)):
        if spool.task_of(spool.CONTAINERS, name) is None:
            continue
        containers: dict[str, list[list[str]]] | None = spool.read(folder / name)
        for argv in (containers or {}).get("remove", ()):
            subprocess.run(  # noqa: S603 -- written by a supervisor
                argv, check=False, capture_output=True, stdin=subprocess.DEVNULL
            )


def _remove_tmp(folder: Path) -> None:
    written: dict[str, str] | None = spool.read(folder / spool.PRIVATE_TMP)
    if written is not None:
        private_tmp.remove(written["folder"])


def _remove_pods(folder: Path) -> None:
    for name in sorted(os.listdir(folder)):
        if spool.task_of(spool.POD_MEMORY, name) is not None:
            written: dict[str, str] = spool.read(folder / name)
            places.remove_memory(written["folder"])
    places.remove(places.home_of(folder.absolute()), folder.name)


def _is_supervised(folder: Path) -> bool:
    if not (folder / spool.BEGUN).exists():
        return False
    lock = spool.lock_abandoned(folder)
    if lock is None:
        return True
    os.close(lock)
    return False


def _marked(mark: str) -> set[int]:
    return {pid for pid in processes.marked(f"={mark}\0".encode()) if processes.is_alive(pid)}


def _alive(pids: Iterable[int]) -> set[int]:
    return {pid for pid in pids if processes.is_alive(pid)}
