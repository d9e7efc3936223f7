"""One attempt, from its folder in the spool to its end: the loop of a process of its own.

It starts the tasks, obeys orders, keeps the time limit, looks for checkpoints, and writes down what
happens. Whatever becomes of the controller, this goes on.
"""

import contextlib
import errno
import gc
import os
import select
import signal
import socket
import time
from typing import TYPE_CHECKING, Any

from muster.backends.checkpoints import CheckpointPlace, CheckpointWatch, Seen
from muster.backends.local.attempt import processes, spool, tasks
from muster.backends.local.attempt.looking import Look
from muster.backends.local.attempt.tasks import RunningTasks
from muster.backends.local.attempt.terminal import TerminalRelay
from muster.backends.local.attempt.usage import UsageSum
from muster.backends.local.isolation.cgroup import CgroupRoots
from muster.backends.local.isolation.users import LaunchError
from muster.backends.local.steps.server import Steps
from muster.backends.timeline import DueAction, StopOrder, Timeline, Why

if TYPE_CHECKING:
    from muster.backends.local.pods.gang import GangRun
    from muster.backends.local.pods.runner import PodRun

_LOOK_MS = 1_000
_HURRIED_LOOK_MS = 200
# A look that took too long or was killed may be so again.
_LOOK_AGAIN_MS = 30_000
_LAST_LOOK_MS = 2_000
_BREAK_OFF_MS = 5_000
_KILL_AGAIN_MS = 50
_KILLED = 128 + signal.SIGKILL
_WRITE_AGAIN_MS = 200
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def prepare() -> None:
    """Make this process one that can supervise attempts, one after the other."""
    os.setsid()
    processes.adopt_orphans()
    gc.enable()


def supervise(key: str, roots: CgroupRoots) -> None:
    """Run the attempt whose folder is `key` in the folder we are in, unless another did."""
    spool_folder = os.open(".", os.O_PATH | os.O_DIRECTORY)
    try:
        os.chdir(key)
        lock = spool.take()
        if lock is not None:
            with contextlib.closing(Supervisor(spool.read(spool.LAUNCH), roots)) as attempt:
                attempt.run()
            os.close(lock)
    except FileNotFoundError:
        # Forgotten before we came to it, or while we were at it.
        if os.path.exists(os.path.join("/proc/self/fd", str(spool_folder), key)):
            raise
    finally:
        os.fchdir(spool_folder)
        os.close(spool_folder)


class Supervisor:
    """The attempt in the folder we are in."""

    def __init__(self, launch: spool.LaunchFile, roots: CgroupRoots) -> None:
        self._launch = launch
        self._roots = roots
        self._wakeup_read, self._wakeup_write = socket.socketpair()
        self._wakeup_read.settimeout(0)
        self._wakeup_write.settimeout(0)
        self._began_ms = _now_ms()
        self._timeline = Timeline(rules=tasks.stop_rules_of(launch), began_ms=_clock_ms())
        self._tasks: RunningTasks | None = None
        self._statuses: dict[int, int] = {}
        self._lookers: set[int] = set()
        self._failed_first: int | None = None
        self._checkpoint_watch = CheckpointWatch()
        self._checkpoint_place: CheckpointPlace | None = None
        self._look: Look | None = None
        self._looks_next_ms = 0
        self._killed_at_ms: int | None = None
        self._tally = UsageSum()
        self._unwritten: dict[str, dict[str, Any]] = {}
        self._steps = Steps(launch, self._write)
        self._gang: GangRun | None = None
        self._pod = self._made_pod()

    def close(self) -> None:
        signal.set_wakeup_fd(-1)
        if self._look is not None:
            self._look.close()
        self._steps.close()
        self._wakeup_read.close()
        self._wakeup_write.close()

    def run(self) -> None:
        # The spawner has handlers for what we listen to, and they are ours by the fork.
        signal.set_wakeup_fd(self._wakeup_write.fileno(), warn_on_full_buffer=False)
        self._obey()
        if self._timeline.is_ending:
            self._finish(self._timeline.why or _exited(0))
            return
        try:
            self._tasks = tasks.begin(self._launch, self._roots)
        except LaunchError as error:
            self._finish({"type": "launch_failed", "text": str(error)})
            return
        try:
            self._say_started(self._tasks)
        except LaunchError as error:
            self._finish({"type": "launch_failed", "text": str(error)})
            return
        self._turn(self._tasks)
        why = self._reason(self._tasks)
        if why["type"] == "out_of_memory" and self._launch["script"] is not None:
            self._complain_of_memory(self._tasks)
        self._finish(why)

    def _made_pod(self) -> "PodRun | GangRun | None":
        if self._launch.get("pod") is None:
            return None
        # Few jobs need them.
        if self._launch.get("gang") is not None:
            from muster.backends.local.pods.gang import GangRun  # noqa: PLC0415

            self._gang = GangRun(self._launch, self._write)
            return self._gang
        from muster.backends.local.pods.runner import PodRun  # noqa: PLC0415

        return PodRun(self._launch, self._write)

    def _say_started(self, running: RunningTasks) -> None:
        if self._pod is not None:
            self._pod.open(running)
        self._steps.open(running)
        limit, now = self._launch["limit_ms"], _clock_ms()
        self._timeline.began_ms = now
        self._timeline.limit(None if limit is None else now + limit)
        if self._launch["checkpoint"] is not None:
            self._checkpoint_place = CheckpointPlace(
                path=os.path.join(running.folder, self._launch["checkpoint"]["path"]),
                uid=running.user.uid,
                since_ms=self._began_ms,
            )
        self._write(
            spool.STARTED,
            {"at": _now_ms(), "pids": running.pids, "problems": running.problems},
        )

    def _turn(self, running: RunningTasks) -> None:
        """Go on until every task is over."""
        while True:
            self._reap()
            self._obey()
            self._look_for_checkpoints(running)
            self._write_all()
            self._steps.advance()
            if self._pod is not None and not self._timeline.is_suspended:
                self._pod.advance()
            self._reap()
            if self._is_over(running):
                return
            self._advance(running)
            self._wait(running.relay)

    def _is_over(self, running: RunningTasks) -> bool:
        if self._is_held() or not all(pid in self._statuses for pid in running.pids):
            return False
        if self._pod is not None and not self._pod.is_over:
            return False
        if not self._steps.are_over:
            # Steps do not outlive what they belong to; they are given time to end.
            self._timeline.break_off(_clock_ms(), _BREAK_OFF_MS)
        return self._steps.are_over

    def _is_held(self) -> bool:
        is_free = self._timeline.is_ending or self._steps.released is not None
        return self._launch["steps_only"] and not is_free

    def _wait(self, relay: TerminalRelay | None) -> None:
        waiting = select.poll()
        waiting.register(self._wakeup_read, select.POLLIN)
        if relay is not None:
            relay.register(waiting)
        if self._look is not None:
            waiting.register(self._look, select.POLLIN)
        if not self._timeline.is_suspended:
            # Nothing begins while everything stands still.
            self._steps.register(waiting)
        if self._pod is not None:
            self._pod.register(waiting)
        ready = {number for number, _ in waiting.poll(self._timeout_ms())}
        if self._wakeup_read.fileno() in ready:
            _drain(self._wakeup_read)
        if relay is not None:
            relay.relay(ready)
        self._steps.serve(ready)
        if self._pod is not None:
            self._pod.serve(ready)

    def _timeout_ms(self) -> int | None:
        times = [self._timeline.next_ms(), self._next_look_ms(), self._steps.next_ms()]
        if self._pod is not None and not self._timeline.is_suspended:
            times.append(self._pod.next_ms())
        if self._killed_at_ms is not None:
            times.append(_clock_ms() + _KILL_AGAIN_MS)
        if self._unwritten:
            times.append(_clock_ms() + _WRITE_AGAIN_MS)
        known = [at for at in times if at is not None]
        return max(0, min(known) - _clock_ms()) if known else None

    def _next_look_ms(self) -> int | None:
        if self._checkpoint_place is None or self._timeline.is_suspended:
            return None
        return self._looks_next_ms if self._look is None else self._look.ends_ms

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return
                self._note(pid, status)
                self._steps.note(pid, status, usage)
                if self._pod is not None:
                    self._pod.note(pid, status, usage)
                if pid not in self._lookers:
                    self._tally.add(usage)
                self._lookers.discard(pid)

    def _note(self, pid: int, status: int) -> None:
        if self._tasks is None or pid not in self._tasks.pids:
            return
        self._statuses[pid] = status
        if status != 0 and self._failed_first is None:
            self._failed_first = status
            self._timeline.break_off(_clock_ms(), _BREAK_OFF_MS)

    def _obey(self) -> None:
        """Every order that is in the folder, in the order in which they were written."""
        names = sorted(name for name in os.listdir() if name.startswith(spool.ORDER))
        for name in names:
            if name.endswith("~"):
                continue
            order = spool.read(name)
            os.unlink(name)
            self._follow(order)

    def _follow(self, order: dict[str, Any]) -> None:
        match order["kind"]:
            case "stop":
                self._stop(order)
            case "suspend":
                self._suspend()
            case "continue":
                self._go_on()
            case "signal":
                self._signal(order)
            case "limit":
                self._limit(order["ends_at"])
            case "supply" if self._pod is not None:
                self._pod.supplied()
            case _:
                pass

    def _stop(self, order: dict[str, Any]) -> None:
        # Who ended by themselves before anything was sent to them did so for their own reasons.
        self._reap()
        if self._tasks is not None and self._is_over(self._tasks):
            return
        self._go_on()
        asked = StopOrder(
            why=order["why"], grace_ms=order["grace_ms"], checkpoint=order["checkpoint"]
        )
        self._timeline.stop(asked, _clock_ms())

    def _suspend(self) -> None:
        if self._tasks is None or self._timeline.is_suspended or self._timeline.is_ending:
            return
        self._timeline.suspend(_clock_ms())
        self._tasks.suspend()
        self._write(spool.SUSPENDED, {"at": _now_ms()})

    def _go_on(self) -> None:
        if self._tasks is None or not self._timeline.is_suspended:
            return
        with contextlib.suppress(FileNotFoundError):
            os.unlink(spool.SUSPENDED)
        self._unwritten.pop(spool.SUSPENDED, None)
        self._tasks.resume()
        self._timeline.resume(_clock_ms())

    def _limit(self, ends_at: int | None) -> None:
        self._launch["limit_ms"] = None if ends_at is None else max(0, ends_at - self._began_ms)
        if self._tasks is not None:
            self._timeline.limit(None if ends_at is None else _clock_ms() + ends_at - _now_ms())

    def _signal(self, order: dict[str, Any]) -> None:
        number: int = order["signal"]
        if order["step"] is not None:
            self._steps.send(order["step"], number)
            return
        if self._tasks is None:
            return
        if self._pod is not None:
            if self._gang is None or order.get("task") is None:
                self._pod.send(number)
            else:
                self._gang.send_to(order["task"], number)
            return
        everyone = self._tasks.pids[:1] if order["shell_only"] else self._everyone(self._tasks)
        processes.send(processes.listeners(everyone, number), number)

    def _look_for_checkpoints(self, running: RunningTasks) -> None:
        if self._look is None:
            self._begin_look(running)
            return
        found = self._look.found()
        if found is None:
            return
        is_hurried = self._timeline.awaits_checkpoint
        pause_ms = _HURRIED_LOOK_MS if is_hurried else _LOOK_MS
        self._looks_next_ms = _clock_ms() + (_LOOK_AGAIN_MS if self._look.has_failed else pause_ms)
        self._look = None
        if self._told_of(self._checkpoint_watch.news(found)):
            self._timeline.checkpointed(_clock_ms())

    def _begin_look(self, running: RunningTasks) -> None:
        due_ms = self._next_look_ms()
        if self._checkpoint_place is not None and due_ms is not None and due_ms <= _clock_ms():
            self._look = self._started_look(self._checkpoint_place, running)

    def _started_look(self, place: CheckpointPlace, running: RunningTasks) -> Look:
        look = Look(place, running)
        # What it uses is not what the job used.
        self._lookers.add(look.pid)
        return look

    def _looked_at_once(self, running: RunningTasks) -> list[Seen]:
        """What is there now, if that can be known soon."""
        if self._look is not None:
            self._look.close()
            self._look = None
        if self._checkpoint_place is None:
            return []
        return self._started_look(self._checkpoint_place, running).wait(_LAST_LOOK_MS)

    def _told_of(self, seen: Seen | None) -> bool:
        if seen is not None:
            self._write(spool.CHECKPOINT, {"at": seen.mtime_ms, "path": seen.path})
        return seen is not None

    def _advance(self, running: RunningTasks) -> None:
        for action in self._timeline.due(_clock_ms()):
            match action:
                case DueAction.ASK_CHECKPOINT:
                    self._ask_for_checkpoint(running)
                case DueAction.WARN:
                    self._warn(running)
                case DueAction.END:
                    self._end(running)
                case DueAction.KILL:
                    self._killed_at_ms = _now_ms()
        if self._killed_at_ms is not None:
            running.kill()

    def _end(self, running: RunningTasks) -> None:
        self._steps.stop(self._timeline.why)
        if self._pod is not None:
            self._pod.stop()
            # At once: nothing else may happen for a while that would wake us.
            self._pod.advance()
            return
        processes.send(self._everyone(running), signal.SIGTERM)

    def _everyone(self, running: RunningTasks) -> list[int]:
        """All but srun processes: those would pass the signal on, or end the step too soon."""
        callers = self._steps.callers()
        return [pid for pid in running.everyone() if pid not in callers]

    def _ask_for_checkpoint(self, running: RunningTasks) -> None:
        asked = self._launch["checkpoint"]
        if asked is None or asked["signal"] is None:
            return
        # What is finished now was not written because we asked.
        self._checkpoint_watch.news(self._looked_at_once(running))
        self._looks_next_ms = 0
        number = asked["signal"]
        processes.send(
            [pid for pid in self._everyone(running) if processes.catches(pid, number)], number
        )

    def _warn(self, running: RunningTasks) -> None:
        warning = self._launch["warn"]
        if warning is None:
            return
        number = warning["signal"]
        warned = running.pids[:1] if warning["shell_only"] else self._everyone(running)
        # A warning must not end a process that has not learnt to listen for it.
        processes.send([pid for pid in warned if processes.catches(pid, number)], number)

    def _reason(self, running: RunningTasks) -> Why:
        if self._timeline.why is not None:
            return self._timeline.why
        if self._steps.released is not None:
            return self._steps.released
        if self._pod is not None:
            return self._pod.why()
        status = self._failed_first if self._failed_first is not None else 0
        is_killed = os.WIFEXITED(status) and os.WEXITSTATUS(status) == _KILLED
        if running.memory_kills() or (is_killed and running.is_full()):
            return {"type": "out_of_memory", "node": self._launch["node"]}
        if os.WIFSIGNALED(status):
            return {"type": "signaled", "signal": os.WTERMSIG(status)}
        return _exited(os.waitstatus_to_exitcode(status))

    def _complain_of_memory(self, running: RunningTasks) -> None:
        """In the words that users and clients of Slurm look for in what a batch script wrote."""
        # Those of a container that is gone are not counted.
        kills = max(1, running.memory_kills())
        events = f"{kills} oom_kill event{'s' if kills > 1 else ''}"
        tasks.add_to_errors(
            running,
            self._launch,
            f"slurmstepd: error: Detected {events} in StepId={self._launch['job']}.batch. "
            "Some of the step tasks have been OOM Killed.",
        )

    def _finish(self, why: Why) -> None:
        """End whatever is left, and write down how it ended; nothing may be written after that."""
        used: spool.UsedFile | None = None
        if self._tasks is not None:
            self._clear(self._tasks)
            largest = self._tasks.max_memory_mib(self._tally.max_memory_kib)
            used = self._tally.file(largest)
            found = self._looked_at_once(self._tasks)
            self._told_of(self._checkpoint_watch.last_news(found, killed_at_ms=self._killed_at_ms))
            self._clear(self._tasks)
            if self._pod is not None:
                self._pod.close()
            self._tasks.close(self._statuses)
            self._steps.finish()
        self._write(spool.END, {"at": _now_ms(), "why": why, "used": used})
        while self._unwritten:
            time.sleep(_WRITE_AGAIN_MS / 1_000)
            self._write_all()
        if self._tasks is not None:
            self._tasks.remove_tmp()

    def _clear(self, running: RunningTasks) -> None:
        """Kill until no process is left: the last of the tree may just be forking."""
        while not self._is_alone():
            running.kill()
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)

    def _is_alone(self) -> bool:
        self._reap()
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        return False

    def _write(self, name: str, content: dict[str, Any]) -> None:
        self._unwritten[name] = content
        self._write_all()

    def _write_all(self) -> None:
        """Write down what happened; what there is no room for now is written when there is."""
        for name, content in tuple(self._unwritten.items()):
            try:
                spool.write(name, content)
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                return
            del self._unwritten[name]
            spool.notify(f"../{spool.NOTIFY_SOCKET}", self._launch["key"])


def _drain(receiver: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError):
        while receiver.recv(4_096):
            pass


def _exited(code: int) -> Why:
    return {"type": "exited", "code": code}


def _clock_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
