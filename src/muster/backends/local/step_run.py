"""One step: its tasks from their start to their end, as children of the supervisor."""

import os
import resource
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from muster.backends.local import binding, spool, step_environment, step_files, tasks, tree
from muster.backends.local.outset import Outset
from muster.backends.local.person import LaunchError
from muster.backends.local.step_environment import Around
from muster.backends.local.step_files import Created, PartEnd
from muster.backends.local.step_room import Part
from muster.backends.local.step_wire import Line, Message

Tell = Callable[[str, dict[str, Any]], None]
"""Writes a file of the attempt."""

_PID_NAME = "SLURM_TASK_PID"
_STANDARD = 3
"""Stdin, stdout, stderr."""


class StepRun:
    """A step that goes on; it has begun in the books as soon as it has its room."""

    def __init__(self, created: Created, launch: spool.LaunchFile, line: Line, tell: Tell) -> None:
        self.created = created
        self.line = line
        self.ends_ms: int | None = None
        self.kills_ms: int | None = None
        self._launch = launch
        self._tell = tell
        self._ranks: dict[int, int] = {}
        self._sessions: set[int] = set()
        self._left = created.tasks
        self._ends = [PartEnd() for _ in created.wishes]
        self._wish_of = {rank: part.wish for part in created.parts for rank in part.ranks}
        tell(spool.step_name(created.number), step_files.begun(created, launch, _now_ms()))
        line.tell(
            "created",
            step=created.number,
            nodes=self._nodes(),
            parts=self._layout(),
            binds=all(part.cpu_ids for part in created.parts),
        )

    @property
    def is_over(self) -> bool:
        return self._left <= 0

    @property
    def runs(self) -> bool:
        """Is there a task of it?"""
        return bool(self._ranks)

    def begin(self, message: Message, running: Outset) -> None:
        """Start every task; whoever cannot be started has ended, with the error as its code."""
        files, self.line.files = self.line.files, []
        if self.created.limit_ms is not None:
            self.ends_ms = _clock_ms() + self.created.limit_ms
        try:
            for part in self.created.parts:
                for rank in part.ranks:
                    self._begin_task(message, running, (part, rank), files)
        finally:
            for number in files:
                os.close(number)
        self.line.tell("started", pids=[*self._ranks])

    def note(self, pid: int, status: int, usage: resource.struct_rusage) -> bool:
        """A process ended; False when it is none of our tasks."""
        rank = self._ranks.pop(pid, None)
        if rank is None:
            return False
        self._ends[self._wish_of[rank]].tally.add(usage)
        self._exited(rank, status)
        return True

    def send(self, number: int) -> None:
        """To the tasks and whatever they started."""
        everyone = [pid for task in self._ranks for pid in (task, *tree.descendants(task))]
        tree.send(tree.listeners(everyone, number), number)

    def kill(self) -> None:
        self._kill_all([*self._ranks])

    def finish(self) -> None:
        """It is over: nothing that its tasks left behind may go on."""
        if self._sessions:
            below = tree.descendants(os.getpid())
            self._kill_all([pid for pid in below if tree.session(pid) in self._sessions])
        for end, wish in zip(self._ends, self.created.wishes, strict=True):
            if end.exits < wish.tasks and not end.signal:
                end.signal = signal.SIGKILL
        name = spool.step_end_name(self.created.number)
        self._tell(name, step_files.ended(self._ends, _now_ms()))
        self.line.tell("over")

    def _begin_task(
        self, message: Message, running: Outset, seat: tuple[Part, int], files: Sequence[int]
    ) -> None:
        part, rank = seat
        argvs, streams = message["argvs"], message["streams"]
        # Where there is one component alone, it is told once.
        own: list[Message] = [message, *message.get("beside", ())]
        around = Around(
            launch=self._launch,
            number=self.created.number,
            wishes=self.created.wishes,
            parts=self.created.parts,
            envs=tuple(each["env"] for each in own),
            umask=message["umask"],
            label=message["label"],
        )
        way = tasks.Way(
            argv=tuple(argvs[rank] if len(argvs) > 1 else argvs[0]),
            user=running.user,
            group=running.group,
            folder=own[part.wish]["cwd"],
            umask=message["umask"],
            cpus=tuple(self._launch["cpus"]),
            pid_name=_PID_NAME,
            bound=part.cpu_ids,
        )
        given: list[int] = [files[at] for at in streams[rank]]
        try:
            has_terminal = message["pty"] and rank == 0
            env = step_environment.of_task(around, part, rank) | _meeting(given, around, rank)
            way, told = self._bound(way, (part, rank), own[part.wish].get("bind"))
            pid = tasks.begin(way, env | told, _streams(given, has_terminal=has_terminal))
        except LaunchError as error:
            self._exited(rank, error.number << 8, str(error), way.argv[0])
            return
        self._ranks[pid] = rank
        self._sessions.add(pid)

    def _bound(
        self, way: tasks.Way, seat: tuple[Part, int], asked: dict[str, Any] | None
    ) -> tuple[tasks.Way, dict[str, str]]:
        """On the CPUs that were asked for, of those that the step has; and what is told of it."""
        part, rank = seat
        bind = binding.read(asked)
        if bind is None or not part.cpu_ids:
            return way, {}
        wish = self.created.wishes[part.wish]
        seats = binding.Seats(
            cpus=part.cpu_ids, tasks=len(part.ranks), cpus_per_task=wish.cpus_per_task
        )
        found = binding.cpus_of_tasks(bind, seats)
        node, local = self._launch["rooms"][part.node]["node"], part.ranks.index(rank)
        if found is None:
            problem = "some of the CPUs that --cpu-bind names are not the step's"
            text = f"slurmstepd-{node}: error: {problem}, disabling affinity\n"
            return replace(way, remark=text), {}
        remark = binding.remark(bind, node, rank, local, found[local]) if bind.verbose else ""
        return replace(way, bound=found[local], remark=remark), binding.variables(bind, found)

    def _exited(self, rank: int, status: int, text: str = "", command: str = "") -> None:
        self._left -= 1
        self._ends[self._wish_of[rank]].add(status)
        self.line.tell("exited", task=rank, status=status, text=text, command=command)

    def _kill_all(self, pids: Sequence[int]) -> None:
        for pid in pids:
            tree.send((*tree.descendants(pid), pid), signal.SIGKILL)

    def _nodes(self) -> list[str]:
        return [self._launch["rooms"][part.node]["node"] for part in self.created.parts]

    def _layout(self) -> list[list[int]]:
        return [list(part.ranks) for part in self.created.parts]


def _streams(given: Sequence[int], *, has_terminal: bool) -> tasks.Streams:
    if has_terminal:
        return tasks.Streams(stdin=None, stdout="", stderr=None, terminal=given[0])
    beside = given[3] if len(given) > _STANDARD else None
    own = (given[0], given[1], given[2])
    return tasks.Streams(stdin=None, stdout="", stderr=None, given=own, beside=beside)


def _meeting(given: Sequence[int], around: Around, rank: int) -> dict[str, str]:
    """By these a task of an MPI program finds the others, over the file beside its own."""
    if len(given) <= _STANDARD:
        return {}
    return {
        "PMI_FD": str(given[_STANDARD]),
        "PMI_RANK": str(rank),
        "PMI_SIZE": str(around.tasks),
    }


def _clock_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
