"""The steps of one attempt: who asks for them, who waits for room, and who holds the attempt.

They are asked for over a socket in the attempt's folder, by the job's own user or by root, with
the messages of `wire.py`. A step lives as long as the client that asked for it stays connected.
"""

import contextlib
import os
import resource
import select
import signal
import socket
import time
from dataclasses import replace
from itertools import accumulate
from typing import Any

from muster.backends.local.attempt import spool
from muster.backends.local.attempt.tasks import RunningTasks
from muster.backends.local.isolation.users import LaunchError, local_user
from muster.backends.local.steps import messages
from muster.backends.local.steps.messages import Hold, Release, SignalStep, StartStep, Want
from muster.backends.local.steps.step import CreatedStep, StepRun, WriteFile
from muster.backends.local.steps.wire import HungUpError, Line, Message, demand_room
from muster.backends.timeline import Why
from muster.launch.steps.allocator import ImpossibleStepError, StepAllocator
from muster.launch.steps.shares import NodeShare

_HOLDER_PATIENCE_MS = 60_000
_KILL_WAIT_MS = 5_000
_KILL_AGAIN_MS = 50
_MOST_FILES = 65_536
_MOST_LINES = 512
_MOST_STEPS = 40_000
_TOO_MANY = "Step limit reached for this job"
_COMPLETING = "Job/step already completing or completed"


class Steps:
    """Listens in the folder we are in. `released` says why a held attempt may end."""

    def __init__(self, launch: spool.LaunchFile, write: WriteFile) -> None:
        self._launch = launch
        self._write = write
        self._allocator = StepAllocator(_shares(launch))
        self._listener = _listener(launch["user"])
        self._running: RunningTasks | None = None
        self._lines: dict[int, Line] = {}
        self._most_files = min(_MOST_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        self._waiting: dict[int, Want] = {}
        self._going: dict[int, StepRun] = {}
        self._count = 0
        self._holder: int | None = None
        self._awaits_holder_until_ms: int | None = None
        self._is_ending = False
        self.released: Why | None = None

    @property
    def are_over(self) -> bool:
        return not self._going

    def callers(self) -> set[int]:
        """The processes that wait for steps; they end when these do, and not before."""
        return {line.peer()[0] for line in self._lines.values()}

    def open(self, running: RunningTasks) -> None:
        """The attempt runs: steps may begin."""
        self._running = running
        if self._launch["steps_only"]:
            self._awaits_holder_until_ms = _clock_ms() + _HOLDER_PATIENCE_MS

    def close(self) -> None:
        for line in self._lines.values():
            line.close()
        self._lines.clear()
        self._listener.close()

    def register(self, waiting: select.poll) -> None:
        """Say what to wait for."""
        for number in self._lines:
            waiting.register(number, select.POLLIN)
        if len(self._lines) < min(_MOST_LINES, self._most_files // 2):
            # Others wait at the door: what we have open is left for other things too.
            waiting.register(self._listener.fileno(), select.POLLIN)

    def serve(self, ready: set[int]) -> None:
        """Read what clients have sent."""
        if self._listener.fileno() in ready:
            self._admit()
        for number in sorted(ready & self._lines.keys()):
            self._listen_to(number)

    def note(self, pid: int, status: int, usage: resource.struct_rusage) -> None:
        """A process of the attempt ended."""
        for step in self._going.values():
            if step.note(pid, status, usage):
                self._finish_if_over(step)
                return

    def next_ms(self) -> int | None:
        """When something is due next."""
        times = [self._awaits_holder_until_ms]
        for step in self._going.values():
            times += [step.ends_ms, step.kills_ms]
        return min((at for at in times if at is not None), default=None)

    def advance(self) -> None:
        """Do what is due."""
        now_ms = _clock_ms()
        if _is_due(self._awaits_holder_until_ms, now_ms):
            self._awaits_holder_until_ms = None
            self._let_go({"type": "cancelled", "by": self._launch["user"]})
        for step in self._going.values():
            if _is_due(step.kills_ms, now_ms):
                # What is just being forked may need another round.
                step.kills_ms = now_ms + _KILL_AGAIN_MS
                step.kill()
            if _is_due(step.ends_ms, now_ms):
                step.ends_ms, step.kills_ms = None, now_ms + _KILL_WAIT_MS
                step.line.send("aborted", at=_now_ms(), why="DUE TO TIME LIMIT")
                step.send(signal.SIGTERM)

    def send(self, step: int, number: int) -> None:
        """A signal for one step; its client learns of what kills it."""
        going = self._going.get(step)
        if going is None:
            return
        if number == signal.SIGKILL:
            going.line.send("aborted", at=_now_ms(), why="")
            going.kills_ms = _clock_ms()
        else:
            going.send(number)

    def stop(self, why: Why | None) -> None:
        """The attempt must end: no step begins any more, and every client learns of it."""
        if self._is_ending:
            return
        self._is_ending = True
        for step in self._going.values():
            step.line.send("aborted", at=_now_ms(), why=_stop_words(why))
        for number in self._waiting:
            self._lines[number].send("refused", before=[], text=_COMPLETING, whole=False)
        self._waiting.clear()
        if self._holder is not None:
            self._lines[self._holder].send("revoked")

    def finish(self) -> None:
        """Nothing runs any more: write down the ends, and tell everybody who still listens."""
        self.stop(None)
        for step in tuple(self._going.values()):
            self._finish(step)

    def _admit(self) -> None:
        with contextlib.suppress(OSError):
            connection, _ = self._listener.accept()
            line = Line(connection)
            try:
                is_allowed = line.peer()[1] in {0, local_user(self._launch["user"]).uid}
            except LaunchError:
                is_allowed = False
            if is_allowed:
                self._lines[line.fileno()] = line
            else:
                line.send("refused", before=[], text="Access/permission denied", whole=False)
                line.close()

    def _listen_to(self, number: int) -> None:
        line = self._lines[number]
        try:
            for message in line.hear():
                self._obey(number, message)
            demand_room(self._lines.values(), self._most_files)
        except Exception:  # noqa: BLE001 -- whatever a process of the user sends, the attempt goes on
            # A client that sends what cannot be understood or done counts as gone.
            self._hang_up(number)

    def _obey(self, number: int, message: Message) -> None:
        match messages.read(message):
            case Want() as want:
                self._want(number, want)
            case StartStep() as start:
                self._begin(number, start)
            case SignalStep(number=sent):
                self._signal(number, sent)
            case Hold():
                self._hold(number)
            case Release() as release:
                self._release(number, release)

    def _want(self, number: int, want: Want) -> None:
        line = self._lines[number]
        if number in self._waiting or self._step_of(number) is not None:
            raise HungUpError
        if self._is_ending:
            line.send("refused", before=[], text=_COMPLETING, whole=False)
        elif self._count >= _MOST_STEPS:
            line.send("refused", before=[], text=_TOO_MANY, whole=False)
        elif not self._created(number, want):
            self._waiting[number] = want
            line.send("busy")

    def _created(self, number: int, want: Want) -> bool:
        """Whether the matter is settled: the step has its room, or will never have it."""
        line = self._lines[number]
        try:
            parts = self._allocator.take(self._count, want.requests)
        except ImpossibleStepError as never:
            line.send("refused", before=never.before, text=never.text, whole=never.whole)
            return True
        if parts is None:
            return False
        created = CreatedStep(
            number=self._count,
            shares=self._allocator.nodes,
            names=want.names,
            commands=want.commands,
            requests=want.requests,
            parts=parts,
            limit_ms=want.limit_ms,
        )
        self._going[self._count] = StepRun(created, self._launch, line, self._write)
        self._count += 1
        return True

    def _begin(self, number: int, start: StartStep) -> None:
        step = self._step_of(number)
        if self._running is None or step is None or step.has_begun:
            raise HungUpError
        step.begin(start, self._running)
        self._finish_if_over(step)

    def _signal(self, number: int, sent: int) -> None:
        step = self._step_of(number)
        if step is None:
            return
        if sent == signal.SIGKILL:
            step.kills_ms = _clock_ms()
        else:
            step.send(signal.Signals(sent))

    def _step_of(self, number: int) -> StepRun | None:
        line = self._lines[number]
        return next((step for step in self._going.values() if step.line is line), None)

    def _hold(self, number: int) -> None:
        if not self._launch["steps_only"] or self._holder is not None:
            raise HungUpError
        self._holder = number
        self._awaits_holder_until_ms = None
        facts = {
            name: text for name, text in self._launch["env"].items() if name.startswith("SLURM")
        }
        self._lines[number].send("held", env=facts)
        if self._is_ending:
            self._lines[number].send("revoked")

    def _release(self, number: int, release: Release) -> None:
        """An exit code, a signal, or neither: then it is kept until it is ended from outside."""
        if number != self._holder:
            raise HungUpError
        self._holder = None
        if release.keep:
            return
        self._let_go(
            {"type": "signaled", "signal": release.signal}
            if release.signal
            else {"type": "exited", "code": release.code}
        )

    def _let_go(self, why: Why) -> None:
        if self.released is None:
            self.released = why

    def _hang_up(self, number: int) -> None:
        step = self._step_of(number)
        self._waiting.pop(number, None)
        if step is not None and step.runs:
            # Its end is noted when its tasks are gone.
            step.kills_ms = _clock_ms()
        elif step is not None:
            self._finish(step)
        if number == self._holder:
            self._holder = None
            self._let_go({"type": "cancelled", "by": self._launch["user"]})
        self._lines.pop(number).close()

    def _finish_if_over(self, step: StepRun) -> None:
        if step.is_over:
            self._finish(step)

    def _finish(self, step: StepRun) -> None:
        """The step is over, and its resources are for steps that wait."""
        del self._going[step.created.number]
        step.finish()
        self._allocator.give_back(step.created.number)
        for waiting, want in tuple(self._waiting.items()):
            if self._created(waiting, want):
                self._waiting.pop(waiting, None)


def _listener(user: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(spool.STEP_SOCKET)
    listener.bind(spool.STEP_SOCKET)
    # Nobody else may even knock. Who does is looked at as well when they do.
    os.chmod(spool.STEP_SOCKET, 0o600)
    with contextlib.suppress(LaunchError, PermissionError):
        os.chown(spool.STEP_SOCKET, local_user(user).uid, -1)
    listener.listen(64)
    listener.settimeout(0)
    return listener


def _shares(launch: spool.LaunchFile) -> list[NodeShare]:
    """The CPUs of the attempt are those of its shares, one after the other, if it has so many."""
    shares = [_share(each) for each in launch["shares"]]
    cpus = tuple(launch["cpus"])
    if sum(share.cpus for share in shares) != len(cpus):
        return shares
    ends = accumulate(share.cpus for share in shares)
    return [
        replace(share, cpu_ids=cpus[end - share.cpus : end])
        for share, end in zip(shares, ends, strict=True)
    ]


def _share(written: dict[str, Any]) -> NodeShare:
    lists: dict[str, Any] = {name: tuple(written[name]) for name in ("gpus", "indices", "cpu_ids")}
    return NodeShare(**written | lists)


def _stop_words(why: Why | None) -> str:
    kind = "" if why is None else why["type"]
    return {"timed_out": "DUE TO TIME LIMIT", "preempted": "DUE TO PREEMPTION"}.get(kind, "")


def _is_due(at_ms: int | None, now_ms: int) -> bool:
    return at_ms is not None and at_ms <= now_ms


def _clock_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
