"""The pods of a gang: one for each task of an attempt, each with containers of its own.

Imported only for attempts that are gangs. It has the methods of `PodRun`, for all of them.
"""

import resource
import select
import signal
from pathlib import Path
from typing import cast

import msgspec

from muster.backends.local.attempt import spool
from muster.backends.local.attempt.tasks import RunningTasks
from muster.backends.local.pods import places
from muster.backends.local.pods.runner import PodRun, WriteFile
from muster.backends.timeline import Why
from muster.model.pod import PodGang


class GangRun:
    """The pods of the attempt in the folder we are in."""

    def __init__(self, launch: spool.LaunchFile, write: WriteFile) -> None:
        self._launch = launch
        gang = msgspec.convert(launch.get("gang"), PodGang)
        self._leader = gang.leader
        self._pods = [
            PodRun(launch_of_task(launch, rank, msgspec.to_builtins(pod)), write)
            for rank, pod in enumerate(gang.pods)
        ]

    @property
    def is_over(self) -> bool:
        return all(pod.is_over for pod in self._pods)

    def open(self, running: RunningTasks) -> None:
        """The attempt has its place: containers may begin. LaunchError where none can."""
        for pod in self._pods:
            pod.open(running)

    def why(self) -> Why:
        """How it ended by itself: as its leader did, or as the first rank that failed."""
        if self._leader is not None:
            return self._pods[self._leader].why()
        ends = [pod.why() for pod in self._pods]
        return next((why for why in ends if _is_failure(why)), ends[0])

    def register(self, waiting: select.poll) -> None:
        for pod in self._pods:
            pod.register(waiting)

    def serve(self, ready: set[int]) -> None:
        for pod in self._pods:
            pod.serve(ready)

    def next_ms(self) -> int | None:
        """When something is due next, on the supervisor's clock."""
        times = [at for at in (pod.next_ms() for pod in self._pods) if at is not None]
        return min(times, default=None)

    def advance(self) -> None:
        """Do what is due, and write down how it is."""
        for pod in self._pods:
            pod.advance()

    def note(self, pid: int, status: int, usage: resource.struct_rusage) -> bool:
        """A process ended; False when it is none of ours."""
        return any(pod.note(pid, status, usage) for pod in self._pods)

    def stop(self) -> None:
        """The attempt must end."""
        for pod in self._pods:
            pod.stop()

    def send(self, number: int) -> None:
        """A signal for every container."""
        for pod in self._pods:
            pod.send(number)

    def send_to(self, task: int, number: int) -> None:
        """A signal for the pod of one task; SIGTERM ends it, with its grace."""
        if number == signal.SIGTERM:
            self._pods[task].stop()
        else:
            self._pods[task].send(number)

    def supplied(self) -> None:
        """There are new supplies."""
        for pod in self._pods:
            pod.supplied()

    def close(self) -> None:
        """Nothing runs any more."""
        for pod in self._pods:
            pod.close()
        places.remove(places.home_of(Path.cwd()), self._launch["key"])


def launch_of_task(launch: spool.LaunchFile, rank: int, pod: dict[str, object]) -> spool.LaunchFile:
    """What one pod of the gang is run by: its own task, its node, and its part of the memory."""
    task = launch["tasks"][rank]
    node = task.get("node", launch["node"])
    own = {
        **launch,
        "key": places.key_of_task(launch["key"], rank),
        "rank": rank,
        "pod": pod,
        "gang": None,
        "tasks": [task],
        "node": node,
        "shares": [share for share in launch["shares"] if share["node"] == node],
        "memory_mib": task["memory_mib"] if launch["memory_mib"] else 0,
        "cpu_milli": 0,
    }
    return cast("spool.LaunchFile", own)


def _is_failure(why: Why) -> bool:
    return why["type"] != "exited" or why["code"] != 0
