"""The pod of one attempt: its containers, from their start to their end.

Imported only for attempts that run one, since it brings more than a supervisor should carry.
`launch.pods.machine` decides; this starts processes, notes their ends and writes down how it is.
"""

import contextlib
import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from muster.backends.local.attempt import processes, spool
from muster.backends.local.attempt.process import begin
from muster.backends.local.attempt.tasks import RunningTasks
from muster.backends.local.isolation import container
from muster.backends.local.isolation.cgroup import Group
from muster.backends.local.isolation.users import LaunchError, NoToolError
from muster.backends.local.pods import places, probing
from muster.backends.local.pods.errands import Done, Errands
from muster.backends.local.pods.logs import last_lines
from muster.backends.local.pods.starting import Prepared, Starter, demand_tool, has_begun
from muster.backends.local.pods.stdio import Stdio
from muster.backends.local.pods.telling import Telling
from muster.backends.local.pods.visits import Command, Hosts, NotRunningError, Visits
from muster.backends.timeline import Why
from muster.launch.pods.machine import (
    CannotStart,
    Ended,
    Halt,
    Look,
    PodMachine,
    ProbeKind,
    Start,
)
from muster.launch.pods.variables import MissingError, NodeFacts, Sources
from muster.model.pod import (
    CheckpointSeen,
    Container,
    Exec,
    GrpcHealth,
    HttpGet,
    PodLaunch,
    PodNote,
    Pull,
    Sleep,
    TcpConnect,
)

OUT_OF_MEMORY = 125
"""By which a run says that it needed more memory than it had."""

_LOOKS_FOR_START_MS = 30
_NOT_STARTED = (125, 126, 127)
_START_ERROR = 128
_KILLED = 128 + signal.SIGKILL
_LOG_BYTES, _LOG_LINES = 2_048, 80
WriteFile = Callable[[str, dict[str, Any]], None]


@dataclass
class _Run:
    """A container that was started. halts_ms: when its grace is over."""

    spec: Container
    number: int
    pid: int
    stdio: Stdio
    prepared: Prepared
    begun_ms: int
    is_running: bool = False
    is_signalled: bool = False
    kills_ms: int | None = None
    grace_ms: int = 0


@dataclass
class _Known:
    """What was supplied."""

    sources: Sources = field(default_factory=dict[str, dict[str, bytes] | None])
    supplied: bytes = b""


class PodRun:
    """The pod of the attempt in the folder we are in."""

    def __init__(self, launch: spool.LaunchFile, write: WriteFile) -> None:
        self._launch = launch
        self._write = write
        self._pod = msgspec.convert(launch.get("pod"), PodLaunch)
        self._specs = {each.name: each for each in self._pod.containers}
        self._machine = PodMachine(self._pod)
        self._runs: dict[str, _Run] = {}
        self._errands = Errands()
        self._left: dict[str, int] = {}
        self._seats: set[str] = set()
        self._known = _Known()
        self._telling = Telling()
        self._starter: Starter | None = None
        self._visits: Visits | None = None
        self._is_out_of_memory = False
        self._home = places.home_of(Path.cwd())
        share = launch["shares"][0] if launch["shares"] else {}
        self._node = NodeFacts(
            name=launch["node"],
            ip=probing.HERE,
            cpu_milli=launch["cpu_milli"] or 1_000 * int(share.get("cpus", 1)),
            memory_mib=launch["memory_mib"]
            or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        )

    @property
    def is_over(self) -> bool:
        is_left = self._visits is None or self._visits.are_over
        return is_left and self._machine.is_over and not self._runs and self._errands.are_over

    def open(self, running: RunningTasks) -> None:
        """The attempt has its place: containers may begin. LaunchError where none can."""
        tool = container.tool_for(self._pod.containers[0].image)
        if tool is None and not self._launch["images_on_host"]:
            raise NoToolError(
                "no podman or docker on this machine; install one, "
                "or ask your administrator to allow images_on_host for the queue"
            )
        if tool is not None:
            demand_tool(tool, self._pod, is_root=os.geteuid() == 0)
        self._starter = Starter(self._launch, self._pod, running, tool)
        self._running = running
        self._visits = Visits(
            Hosts(
                socket=places.name_of(spool.VISIT_SOCKET, self._launch),
                user=running.user,
                marker=self._launch["marker"],
                run=self._run_for_visitor,
                stdio=self._stdio_of,
            )
        )
        if tool is None:
            text = "Containers run on the machine itself, without images, as the queue allows"
            self._tell("RunsOnHost", text)
        self._read_supplies()

    def why(self) -> Why:
        """How it ended by itself."""
        code, number = self._machine.result
        if self._is_out_of_memory and number == OUT_OF_MEMORY:
            return {"type": "out_of_memory", "node": self._launch["node"]}
        if number:
            return {"type": "signaled", "signal": number}
        return {"type": "exited", "code": code}

    def register(self, waiting: select.poll) -> None:
        for run in self._runs.values():
            run.stdio.register(waiting)
        self._errands.register(waiting)
        if self._visits is not None:
            self._visits.register(waiting)

    def serve(self, ready: set[int]) -> None:
        for run in self._runs.values():
            run.stdio.serve(ready)
        self._errands.serve(ready)
        if self._visits is not None:
            self._visits.serve(ready)

    def next_ms(self) -> int | None:
        """When something is due next, on the supervisor's clock."""
        now = _now_ms()
        times = [self._machine.next_ms(), *self._errands.times()]
        times += [] if self._visits is None else self._visits.times()
        for run in self._runs.values():
            times.append(run.kills_ms)
            if not run.is_running:
                times.append(now + _LOOKS_FOR_START_MS)
        known = [_clock_ms() + max(0, at - now) for at in times if at is not None]
        told = self._telling.next_ms()
        return min([*known, *([] if told is None else [told])], default=None)

    def advance(self) -> None:
        """Do what is due, and write down how it is."""
        if self._starter is None:
            return
        now = _now_ms()
        if self._visits is not None:
            self._visits.advance(now)
        self._see_started(now)
        for action in self._machine.due(now):
            match action:
                case Start(name=name, run=number):
                    self._start(name, number)
                case Halt(name=name, grace_ms=grace_ms):
                    self._halt(name, grace_ms)
                case Look(name=name, kind=kind):
                    self._look(name, kind)
        self._end_overdue(now)
        self._tell_status(now)

    def note(self, pid: int, status: int, _: resource.struct_rusage) -> bool:
        """A process ended; False when it is none of ours."""
        code = _code(status)
        if self._errands.note(pid, code):
            return True
        if self._visits is not None and self._visits.note(pid, code):
            return True
        run = next((each for each in self._runs.values() if each.pid == pid), None)
        if run is None:
            return False
        self._ended(run, status)
        return True

    def stop(self) -> None:
        """The attempt must end."""
        self._machine.stop(_now_ms())

    def send(self, number: int) -> None:
        """A signal for every container."""
        processes.send([run.pid for run in self._runs.values()], number)

    def supplied(self) -> None:
        """There are new supplies."""
        if self._read_supplies() and self._starter is not None:
            self._starter.volumes.refresh(self._known.sources, self._node)

    def close(self) -> None:
        """Nothing runs any more."""
        if self._visits is not None:
            self._visits.close()
            self._visits = None
        for run in self._runs.values():
            run.stdio.close()
        self._runs.clear()
        self._errands.close()
        self._telling.hurry()
        self._tell_status(_now_ms())
        if self._starter is not None:
            for argv in self._starter.remove_commands(self._left):
                subprocess.run(  # noqa: S603 -- made by us
                    argv, check=False, capture_output=True, stdin=subprocess.DEVNULL
                )
            self._starter.volumes.remove()
        for seat in sorted(self._seats):
            if self._running.group is not None:
                self._running.group.sweep(seat)
        places.remove(self._home, self._launch["key"])

    def _run_for_visitor(self, command: Command) -> int:
        run = self._runs.get(command.container)
        if run is None or not run.is_running:
            raise NotRunningError(f"container {command.container} does not run")
        return self._known_starter().visiting(command, run.number, run.prepared)

    def _stdio_of(self, name: str) -> Stdio | None:
        run = self._runs.get(name)
        return None if run is None else run.stdio

    def _read_supplies(self) -> bool:
        written: dict[str, Any] = spool.read(spool.SUPPLIES) or {}
        told = msgspec.json.encode(written)
        if told == self._known.supplied:
            return False
        self._known.supplied = told
        held = dict[str, dict[str, bytes] | None]
        self._known.sources = msgspec.convert(written, held, builtin_types=())
        return True

    def _start(self, name: str, number: int) -> None:
        spec, starter = self._specs[name], self._known_starter()
        if starter.tool is None:
            # Without its image: whether that is there does not matter, and nobody says that it is.
            self._begin(spec, number)
            return
        found = starter.image_id(spec.image)
        if found is not None and spec.pull is not Pull.ALWAYS:
            self._machine.found_image(name, found)
            text = "already present on machine and can be accessed by the pod"
            self._tell("Pulled", f'Container image "{spec.image}" {text}', name)
            self._begin(spec, number)
        elif spec.pull is Pull.NEVER:
            text = f'Container image "{spec.image}" is not present with pull policy of Never'
            self._tell("ErrImageNeverPull", text, name, warning=True)
            self._tell("Failed", "Error: ErrImageNeverPull", name, warning=True)
            self._cannot(name, "ErrImageNeverPull", text)
        else:
            self._pull(spec, number)

    def _pull(self, spec: Container, number: int) -> None:
        self._tell("Pulling", f'Pulling image "{spec.image}"', spec.name)

        def done(code: int, text: str) -> None:
            if not code:
                self._tell("Pulled", f'Successfully pulled image "{spec.image}"', spec.name)
                found = self._known_starter().image_id(spec.image)
                self._machine.found_image(spec.name, found or "")
                self._begin(spec, number)
                return
            last = text.splitlines()[-1] if text else "the tool failed"
            self._machine.could_not_pull(spec.name, _now_ms(), last.removeprefix("Error: "))

        try:
            self._send_out(done, lambda tells: self._known_starter().pulling(spec.image, tells))
        except LaunchError as error:
            self._cannot(spec.name, "InvalidImageName", str(error))

    def _begin(self, spec: Container, number: int) -> None:
        stdio: Stdio | None = None
        begun_ms = _now_ms()
        try:
            prepared = self._known_starter().prepared(spec, number, self._known.sources, self._node)
            log = places.log_path(self._home, self._launch["key"], spec.name, number)
            places.keep_last_logs(self._home, self._launch["key"], spec.name, number)
            stdio = Stdio(log, spec)
            pid = begin(prepared.way, prepared.env, stdio.given)
        except MissingError as missing:
            self._lacks(spec, str(missing))
            return
        except (LaunchError, OSError) as error:
            # A full disk, or what the user put in the way, is no reason to lose the others.
            if stdio is not None:
                stdio.close()
            self._failed_to_start(spec.name, str(error))
            return
        stdio.handed_over()
        run = _Run(
            spec=spec, number=number, pid=pid, stdio=stdio, prepared=prepared, begun_ms=begun_ms
        )
        self._runs[spec.name] = run
        self._left[spec.name] = number
        removes = self._known_starter().remove_commands(self._left)
        if removes:
            # For the process that has to clear up if this one dies.
            spool.write(places.name_of(spool.CONTAINERS, self._launch), {"remove": removes})
        if prepared.pid_file is None:
            self._is_running(run, _now_ms())

    def _lacks(self, spec: Container, text: str) -> None:
        """A source is missing: of a volume, or of variables."""
        volumes = {each.name: each for each in self._pod.volumes}
        broken = [
            mount.volume for mount in spec.mounts if _names(volumes[mount.volume].source, text)
        ]
        if broken:
            words = f'MountVolume.SetUp failed for volume "{broken[0]}" : {text}'
            self._tell("FailedMount", words, warning=True)
            self._cannot(spec.name, "ContainerCreating", "")
            return
        self._tell("Failed", f"Error: {text}", spec.name, warning=True)
        self._cannot(spec.name, "CreateContainerConfigError", text)

    def _failed_to_start(self, name: str, text: str) -> None:
        self._tell("Failed", f"Error: {text}", name, warning=True)
        end = Ended(at=_now_ms(), code=_START_ERROR, reason="StartError", text=text)
        self._machine.ended(name, end)

    def _cannot(self, name: str, reason: str, text: str) -> None:
        self._machine.could_not_start(name, CannotStart(at=_now_ms(), reason=reason, text=text))

    def _see_started(self, now: int) -> None:
        for run in self._runs.values():
            file = run.prepared.pid_file
            if not run.is_running and file is not None and has_begun(file):
                self._is_running(run, now)

    def _is_running(self, run: _Run, now: int) -> None:
        run.is_running = True
        starter = self._known_starter()
        tool = "process" if starter.tool is None else Path(starter.tool).name
        called = starter.container_name(run.spec.name, run.number)
        self._machine.started(run.spec.name, now, id=f"{tool}://{called}")
        if run.spec.after_start is not None:
            self._hook(run, run.spec.after_start, self._after_start(run))

    def _after_start(self, run: _Run) -> Done:
        def done(code: int, text: str) -> None:
            if code and self._runs.get(run.spec.name) is run:
                self._tell(
                    "FailedPostStartHook",
                    f"PostStartHook failed: {text}",
                    run.spec.name,
                    warning=True,
                )
                self._signal(run)

        return done

    def _halt(self, name: str, grace_ms: int) -> None:
        run = self._runs.get(name)
        if run is None:
            return
        run.grace_ms = grace_ms
        run.kills_ms = _now_ms() + grace_ms
        if run.spec.before_stop is None:
            self._signal(run)
        else:
            self._hook(run, run.spec.before_stop, lambda _code, _text: self._signal(run))

    def _signal(self, run: _Run) -> None:
        if self._runs.get(run.spec.name) is not run or run.is_signalled:
            return
        run.is_signalled = True
        if run.kills_ms is None:
            run.kills_ms = _now_ms() + self._pod.grace_s * 1_000
        named = run.spec.stop_signal or "SIGTERM"
        number = getattr(signal, named, signal.SIGTERM)
        everyone = [run.pid]
        if run.prepared.pid_file is None:
            everyone += processes.descendants(run.pid)
        processes.send(everyone, number)

    def _hook(
        self,
        run: _Run,
        action: Exec | HttpGet | TcpConnect | Sleep,
        done: Done,
    ) -> None:
        name, number = run.spec.name, run.number

        def go(tells: int) -> int:
            match action:
                case Exec(argv=argv):
                    return self._known_starter().asking(name, number, argv, tells)
                case Sleep(seconds=seconds):
                    return probing.slept(seconds)
                case HttpGet() | TcpConnect():
                    return probing.asked(action, max(1, run.grace_ms // 1_000), tells)

        try:
            self._send_out(done, go, within_ms=run.grace_ms or self._pod.grace_s * 1_000)
        except LaunchError as error:
            done(1, str(error))

    def _look(self, name: str, kind: ProbeKind) -> None:
        spec, run = self._specs[name], self._runs.get(name)
        found = {
            ProbeKind.STARTUP: spec.startup,
            ProbeKind.LIVENESS: spec.liveness,
            ProbeKind.READINESS: spec.readiness,
        }[kind]
        if found is None or run is None:
            return
        action, timeout_s = found.action, found.timeout_s

        def done(code: int, text: str) -> None:
            self._machine.probed(name, kind, at=_now_ms(), text=text if code else None)

        if isinstance(action, CheckpointSeen):
            is_there = self._has_checkpoint(run)
            done(0 if is_there else 1, "no checkpoint is newer than the start of the container")
            return

        def go(tells: int) -> int:
            match action:
                case Exec(argv=argv):
                    return self._known_starter().asking(name, run.number, argv, tells)
                case HttpGet() | TcpConnect() | GrpcHealth():
                    return probing.asked(action, timeout_s, tells)

        try:
            self._send_out(done, go, within_ms=timeout_s * 1_000 + 200)
        except LaunchError as error:
            done(1, str(error))

    def _has_checkpoint(self, run: _Run) -> bool:
        seen = spool.read(spool.CHECKPOINT)
        return seen is not None and seen["at"] >= run.begun_ms

    def _send_out(self, done: Done, go: Callable[[int], int], within_ms: int | None = None) -> None:
        ends_ms = None if within_ms is None else _now_ms() + within_ms
        self._errands.send_out(done, go, ends_ms)

    def _end_overdue(self, now: int) -> None:
        self._errands.end_overdue(now)
        for run in self._runs.values():
            if run.kills_ms is not None and run.kills_ms <= now:
                run.kills_ms = now + 1_000
                self._kill(run)

    def _kill(self, run: _Run) -> None:
        if run.prepared.pid_file is None:
            processes.send([*processes.descendants(run.pid), run.pid], signal.SIGKILL)
            return
        self._remove(run.spec.name, run.number)

    def _remove(self, name: str, number: int) -> None:
        """Away with the container, and with what runs in it."""
        with contextlib.suppress(LaunchError):
            starter = self._known_starter()
            if starter.tool is not None:
                self._send_out(
                    lambda _code, _text: self._forget(name, number),
                    lambda tells: starter.removing(name, number, tells) or 0,
                )

    def _forget(self, name: str, number: int) -> None:
        self._known_starter().forget_secrets(name, number)
        if self._left.get(name) == number:
            del self._left[name]

    def _ended(self, run: _Run, status: int) -> None:
        now, name = _now_ms(), run.spec.name
        del self._runs[name]
        run.stdio.close()
        if self._visits is not None:
            self._visits.ended(run.stdio, _code(status))
        self._see_started_late(run, now)
        code, number = _code_and_signal(status)
        if not run.is_running and code in _NOT_STARTED:
            log = places.log_path(self._home, self._launch["key"], name, run.number)
            text = last_lines(log, _LOG_BYTES, 1).removeprefix("Error: ")
            self._remove(name, run.number)
            self._failed_to_start(name, text)
            return
        is_short = self._was_killed_for_memory(run, code or number)
        if is_short:
            code, number, self._is_out_of_memory = 0, OUT_OF_MEMORY, True
        self._remove(name, run.number)
        end = Ended(at=now, code=code, signal=number, text=self._last_words(run, code or number))
        self._machine.ended(name, end)

    def _was_killed_for_memory(self, run: _Run, failed: int) -> bool:
        part = run.prepared.part
        is_counted = self._running.take_memory_kills() and failed != 0
        is_killed = failed in (_KILLED, signal.SIGKILL) and run.kills_ms is None
        is_short = is_counted or (is_killed and self._is_full(part))
        if part is not None:
            self._seats.add(part.seat() or "")
            part.give_up_part()
        return is_short

    def _is_full(self, part: Group | None) -> bool:
        """Was all memory used that the container may have, or the whole pod?

        What runs beside the container counts to the pod: its limit may be the first to be reached.
        """
        whole = self._running.group
        return any(each is not None and each.has_hit_limit() for each in (part, whole))

    def _see_started_late(self, run: _Run, now: int) -> None:
        """It may have begun and ended before we looked."""
        file = run.prepared.pid_file
        if not run.is_running and file is not None and file.exists():
            self._is_running(run, now)

    def _last_words(self, run: _Run, failed: int) -> str:
        words = self._known_starter().last_words(run.prepared)
        if words or not failed or not run.spec.message_of_log:
            return words
        log = places.log_path(self._home, self._launch["key"], run.spec.name, run.number)
        return last_lines(log, _LOG_BYTES, _LOG_LINES)

    def _tell(self, reason: str, text: str, name: str = "", *, warning: bool = False) -> None:
        note = PodNote(at=_now_ms(), reason=reason, text=text, container=name, warning=warning)
        self._machine.note(note)

    def _tell_status(self, now: int) -> None:
        status = self._machine.status(self._node.ip)
        if self._telling.is_due(status, _clock_ms()):
            content = {"at": now, "status": msgspec.to_builtins(status)}
            self._write(places.name_of(spool.POD, self._launch), content)

    def _known_starter(self) -> Starter:
        if self._starter is None:
            raise LaunchError("the attempt does not run yet")
        return self._starter


def _names(source: Any, text: str) -> bool:
    """Is this the volume that the text is about?"""
    named = [str(getattr(each, "name", "\0")) for each in getattr(source, "sources", ())]
    return any(f'"{name}"' in text for name in named) or str(getattr(source, "path", "\0")) in text


def _code(status: int) -> int:
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _code_and_signal(status: int) -> tuple[int, int]:
    """A tool passes on a signal as a code above 128, as shells do."""
    if os.WIFSIGNALED(status):
        return 0, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), 0


def _clock_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
