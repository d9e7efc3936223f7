"""One step: its tasks from their start to their end, as children of the supervisor."""

import os
import resource
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from muster.backends.local.attempt import process, processes, spool
from muster.backends.local.attempt.tasks import RunningTasks
from muster.backends.local.attempt.usage import UsageSum
from muster.backends.local.isolation.cgroup import Group
from muster.backends.local.isolation.users import LaunchError
from muster.backends.local.steps.messages import StartStep
from muster.backends.local.steps.topology import SysTopology
from muster.backends.local.steps.wire import Line
from muster.launch.steps import binding, variables
from muster.launch.steps.allocator import StepRequest, StepShare
from muster.launch.steps.binding import Bind
from muster.launch.steps.shares import NodeShare
from muster.launch.steps.variables import StepLaunch


@dataclass(frozen=True, kw_only=True)
class CreatedStep:
    """A step that has its resources. limit_ms: how long it may run.

    A request, a name and a command for each component of the job that it runs in.
    shares: those of the attempt, to which `parts` refers.
    """

    number: int
    shares: tuple[NodeShare, ...]
    names: tuple[str, ...]
    commands: tuple[str, ...]
    requests: tuple[StepRequest, ...]
    parts: tuple[StepShare, ...]
    limit_ms: int | None = None

    @property
    def tasks(self) -> int:
        return sum(request.tasks for request in self.requests)


@dataclass(kw_only=True)
class PartEnd:
    """How the tasks of one component ended, as far as they did."""

    exits: int = 0
    code: int = 0
    signal: int = 0
    tally: UsageSum = field(default_factory=UsageSum)

    def add(self, status: int) -> None:
        """One more is over."""
        self.exits += 1
        if os.WIFSIGNALED(status):
            self.signal = self.signal or os.WTERMSIG(status)
        else:
            self.code = max(self.code, os.waitstatus_to_exitcode(status))


WriteFile = Callable[[str, dict[str, Any]], None]
"""Writes a file of the attempt."""

HERE = "127.0.0.1"
"""Where srun is, seen from the tasks: all run on this machine."""

OUT_OF_MEMORY = 125
"""How a task is said to have ended that was killed for its memory: by a signal of Slurm's own."""

_PID_NAME = "SLURM_TASK_PID"
_STANDARD = 3
"""Stdin, stdout, stderr."""


class StepRun:
    """A step that has begun, which it has as soon as it has its resources."""

    def __init__(
        self, created: CreatedStep, launch: spool.LaunchFile, line: Line, write: WriteFile
    ) -> None:
        self.created = created
        self.line = line
        self.ends_ms: int | None = None
        self.kills_ms: int | None = None
        self.has_begun = False
        self._part: Group | None = None
        self._launch = launch
        self._write = write
        self._running: RunningTasks | None = None
        self._ranks: dict[int, int] = {}
        self._sessions: set[int] = set()
        self._left = created.tasks
        self._ends = [PartEnd() for _ in created.requests]
        self._request_of = {rank: part.request for part in created.parts for rank in part.ranks}
        write(spool.step_name(created.number), _begun_file(created, _now_ms()))
        line.send(
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

    def begin(self, start: StartStep, running: RunningTasks) -> None:
        """Start every task; one that cannot be started has ended, with the error as its code."""
        files, self.line.files = self.line.files, []
        self.has_begun = True
        self._running = running
        if self.created.limit_ms is not None:
            self.ends_ms = time.monotonic_ns() // 1_000_000 + self.created.limit_ms
        try:
            _check(start, self.created, len(files))
            step = self._step_launch(start)
            for part in self.created.parts:
                for rank in part.ranks:
                    self._begin_task(start, running, step, (part, rank), files)
        finally:
            for number in files:
                os.close(number)
            # Whatever went wrong, the step is over with those tasks that did begin.
            self._left = len(self._ranks)
        self.line.send("started", pids=[*self._ranks])

    def note(self, pid: int, status: int, usage: resource.struct_rusage) -> bool:
        """A process ended; False when it is none of our tasks."""
        rank = self._ranks.pop(pid, None)
        if rank is None:
            return False
        self._ends[self._request_of[rank]].tally.add(usage)
        is_short = self._running is not None and self._running.take_memory_kills()
        self._exited(rank, OUT_OF_MEMORY if status and is_short else status)
        return True

    def send(self, number: int) -> None:
        """To the tasks and whatever they started."""
        everyone = [pid for task in self._ranks for pid in (task, *processes.descendants(task))]
        processes.send(processes.listeners(everyone, number), number)

    def kill(self) -> None:
        self._kill_all([*self._ranks])

    def finish(self) -> None:
        """It is over: nothing that its tasks left behind may go on."""
        if self._sessions:
            below = processes.descendants(os.getpid())
            self._kill_all([pid for pid in below if processes.session(pid) in self._sessions])
        for end, request in zip(self._ends, self.created.requests, strict=True):
            if end.exits < request.tasks and not end.signal:
                end.signal = signal.SIGKILL
        if self._part is not None:
            self._part.give_up_part()
        name = spool.step_end_name(self.created.number)
        self._write(name, _ended_file(self._ends, _now_ms()))
        self.line.send("over")

    def _step_launch(self, start: StartStep) -> StepLaunch:
        launch = self._launch
        return StepLaunch(
            job=launch["job"],
            shares=self.created.shares,
            env=launch["env"],
            number=self.created.number,
            requests=self.created.requests,
            parts=self.created.parts,
            envs=tuple(each.env for each in start.programs),
            umask=start.umask,
            label=start.label,
            fixed={spool.MARKER_VARIABLE: launch["marker"]},
            address=HERE,
        )

    def _begin_task(
        self,
        start: StartStep,
        running: RunningTasks,
        step: StepLaunch,
        seat: tuple[StepShare, int],
        files: Sequence[int],
    ) -> None:
        part, rank = seat
        own = start.programs[part.request]
        way = process.Invocation(
            argv=start.argvs[rank if len(start.argvs) > 1 else 0],
            user=running.user,
            group=self._group_of(running),
            folder=own.cwd,
            umask=start.umask,
            cpus=tuple(self._launch["cpus"]),
            pid_name=_PID_NAME,
            bound=part.cpu_ids,
            inside=running.inside,
            new_privileges=self._launch["new_privileges"],
        )
        given = [files[at] for at in start.streams[rank]]
        try:
            has_terminal = start.pty and rank == 0
            env = variables.of_task(step, part, rank) | _pmi_variables(given, step, rank)
            way, bound = self._bound(way, (part, rank), own.bind)
            pid = process.begin(way, env | bound, _streams(given, has_terminal=has_terminal))
        except LaunchError as error:
            self._exited(rank, error.number << 8, str(error), way.argv[0])
            return
        self._ranks[pid] = rank
        self._sessions.add(pid)

    def _group_of(self, running: RunningTasks) -> Group | None:
        """With a limit of its own, if the step asked for memory and the attempt has a limit."""
        if self._part is None and running.group is not None and self._launch["memory_mib"]:
            wanted = sum(part.memory_mib for part in self.created.parts)
            self._part = running.group.part(f"step-{self.created.number}", wanted)
        return self._part or running.group

    def _bound(
        self, way: process.Invocation, seat: tuple[StepShare, int], bind: Bind | None
    ) -> tuple[process.Invocation, dict[str, str]]:
        """On the CPUs that were asked for, of those that the step has; and the variables for it."""
        part, rank = seat
        if bind is None or not part.cpu_ids:
            return way, {}
        request = self.created.requests[part.request]
        cpus = binding.StepCpus(
            cpus=part.cpu_ids, tasks=len(part.ranks), cpus_per_task=request.cpus_per_task
        )
        found = binding.cpus_of_tasks(bind, cpus, SysTopology())
        node, local = self.created.shares[part.node].node, part.ranks.index(rank)
        if found is None:
            problem = "some of the CPUs that --cpu-bind names are not the step's"
            text = f"slurmstepd-{node}: error: {problem}, disabling affinity\n"
            return replace(way, remark=text), {}
        remark = binding.remark(bind, node, rank, local, found[local]) if bind.verbose else ""
        return replace(way, bound=found[local], remark=remark), binding.variables(bind, found)

    def _exited(self, rank: int, status: int, text: str = "", command: str = "") -> None:
        self._left -= 1
        self._ends[self._request_of[rank]].add(status)
        self.line.send("exited", task=rank, status=status, text=text, command=command)

    def _kill_all(self, pids: Sequence[int]) -> None:
        for pid in pids:
            processes.send((*processes.descendants(pid), pid), signal.SIGKILL)

    def _nodes(self) -> list[str]:
        return [self.created.shares[part.node].node for part in self.created.parts]

    def _layout(self) -> list[list[int]]:
        return [list(part.ranks) for part in self.created.parts]


def _check(start: StartStep, created: CreatedStep, files: int) -> None:
    """ValueError where something is missing for one of the tasks."""
    enough = len(start.streams) >= created.tasks and len(start.programs) >= len(created.requests)
    if not enough or (1 < len(start.argvs) < created.tasks):
        raise ValueError("too little for all tasks")
    if any(place >= files for places in start.streams for place in places):
        raise ValueError("no such file")
    if not start.pty and any(len(places) < _STANDARD for places in start.streams):
        raise ValueError("too few streams")


def _streams(given: Sequence[int], *, has_terminal: bool) -> process.Streams:
    if has_terminal:
        return process.Streams(stdin=None, stdout="", stderr=None, terminal=given[0])
    beside = given[3] if len(given) > _STANDARD else None
    own = (given[0], given[1], given[2])
    return process.Streams(stdin=None, stdout="", stderr=None, given=own, beside=beside)


def _pmi_variables(given: Sequence[int], step: StepLaunch, rank: int) -> dict[str, str]:
    """By these a task of an MPI program finds the others, over the file beside its streams."""
    if len(given) <= _STANDARD:
        return {}
    return {
        "PMI_FD": str(given[_STANDARD]),
        "PMI_RANK": str(rank),
        "PMI_SIZE": str(step.tasks),
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _begun_file(created: CreatedStep, at: int) -> dict[str, Any]:
    """The step as a whole, and where the job has several components, what it is in each."""
    whole: dict[str, Any] = {
        "at": at,
        "name": created.names[0],
        "command": created.commands[0],
        "tasks": created.tasks,
        **_held(created.parts, created.shares),
    }
    is_het = any(share.component for share in created.shares)
    if len(created.requests) == 1 and not is_het:
        return whole
    # In a job of one component, those that the step has are numbered for themselves.
    numbers = [request.component if is_het else at for at, request in enumerate(created.requests)]
    each = [
        {"component": number, **_component(created, place)} for place, number in enumerate(numbers)
    ]
    return whole | {"parts": each}


def _ended_file(ends: Sequence[PartEnd], at: int) -> dict[str, Any]:
    """The same of its end: the highest code, and the first signal."""
    each = [_ended(end) for end in ends]
    return {
        "at": at,
        "code": max(end.code for end in ends),
        "signal": next((end.signal for end in ends if end.signal), 0),
        "used": _together([part["used"] for part in each]),
        "parts": each,
    }


def _component(created: CreatedStep, place: int) -> dict[str, Any]:
    request = created.requests[place]
    own = [part for part in created.parts if part.request == place]
    return {
        "name": created.names[place],
        "command": created.commands[place],
        "tasks": request.tasks,
        **_held(own, created.shares),
    }


def _held(parts: Sequence[StepShare], shares: Sequence[NodeShare]) -> dict[str, Any]:
    gpu_milli = sum(
        shares[part.node].gpu_milli * len(part.gpus) // max(1, len(shares[part.node].gpus))
        for part in parts
    )
    return {
        "nodes": [shares[part.node].node for part in parts],
        "amount": {
            "cpu_milli": 1_000 * sum(part.cpus for part in parts),
            "memory_mib": sum(part.memory_mib for part in parts),
            "gpu_milli": gpu_milli,
        },
    }


def _ended(end: PartEnd) -> dict[str, Any]:
    used = end.tally.file(end.tally.max_memory_kib // 1_024)
    return {"code": end.code, "signal": end.signal, "used": used}


def _together(each: Sequence[spool.UsedFile]) -> spool.UsedFile:
    """Amounts are added; of memory only the most is known."""
    return {
        "cpu_ms": sum(used["cpu_ms"] for used in each),
        "max_memory_mib": max(used["max_memory_mib"] for used in each),
        "system_ms": sum(used["system_ms"] for used in each),
        "read_kib": sum(used["read_kib"] for used in each),
        "written_kib": sum(used["written_kib"] for used in each),
        "faults": sum(used["faults"] for used in each),
    }
