"""Those who visit the containers of a pod: with a command of their own, to watch, or for a port.

They are let in over a socket in the attempt's folder, which only Muster itself can reach, with the
messages of `steps.wire`. Whoever speaks for a visitor brings the files that a command reads and
writes, so that nothing of it passes through here. A visit ends when its connection does.

visitor to supervisor                       supervisor to visitor
exec      a command, with open files        refused, begun, exited
attach    to a container, with open files   refused, begun, exited
connect   to a port                         refused, begun with the connection beside it
resize    the terminal of a container
"""

import contextlib
import os
import secrets
import select
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from muster.backends.local.attempt import processes, spool
from muster.backends.local.isolation.users import LaunchError, LocalUser, acting_as
from muster.backends.local.pods.stdio import STDERR, STDOUT, Stdio, Viewer
from muster.backends.local.steps.wire import HungUpError, Line, demand_room

VISIT_VARIABLE = "MUSTER_VISIT"
"""By which the processes of a command are known, to tell them that their visitor left."""

_MOST_VISITS = 64
# Three come with each message; more that wait would use up those that we may open.
_MOST_FILES = 3 * _MOST_VISITS
_TELLS_FOR_MS = 10_000
_TELLS_EVERY_MS = 500
_HERE = "127.0.0.1"
_HIGHEST_PORT = 65_535
_LONGEST_LINE_OF_TERMINAL = 10_000


class NotRunningError(LaunchError):
    """There is nobody to visit."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command for a container that runs. files: for stdin, stdout and stderr, or a terminal."""

    container: str
    argv: tuple[str, ...]
    files: tuple[int, ...]
    has_input: bool
    id: str

    @property
    def has_terminal(self) -> bool:
        return len(self.files) == 1


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """What a pod lets visitors have. socket: its name in the folder of the attempt.

    run: starts a command, and says its process' number.
    stdio: of a container that runs; None where none of this name does.
    """

    socket: str
    user: LocalUser
    marker: str
    run: Callable[[Command], int]
    stdio: Callable[[str], Stdio | None]


@dataclass
class _Visit:
    """Whom a connection speaks for. pid: of a command. tells_ms: when it is told that they left.

    code: how the container that they watched ended; they learn of it when they have seen all.
    """

    line: Line | None
    id: str
    pid: int | None = None
    container: str = ""
    watched: Stdio | None = None
    viewer: Viewer | None = None
    code: int | None = None
    tells_ms: int | None = None
    tells_until_ms: int = 0

    @property
    def is_gone(self) -> bool:
        """Do they not take what they are shown?"""
        viewer, now_ms = self.viewer, _clock_ms()
        if viewer is None:
            return False
        return viewer.is_gone or (viewer.gives_up_ms or now_ms) < now_ms


class Visits:
    """Listens in the folder we are in."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._listener = _listener(hosts.socket)
        self._visits: dict[int, _Visit] = {}
        self._left: list[_Visit] = []

    def register(self, waiting: select.poll) -> None:
        waiting.register(self._listener.fileno(), select.POLLIN)
        for number, visit in self._visits.items():
            waiting.register(number, select.POLLIN)
            for file in () if visit.viewer is None else visit.viewer.waiting():
                waiting.register(file, select.POLLOUT)

    def serve(self, ready: set[int]) -> None:
        if self._listener.fileno() in ready:
            self._admit()
        for number in sorted(ready & self._visits.keys()):
            self._listen_to(number)
        for visit in self._visits.values():
            self._show_rest(visit, ready)
        self._drop_the_gone()

    @property
    def are_over(self) -> bool:
        """Has everybody seen the end of what they watched?"""
        return all(visit.code is None or visit.viewer is None for visit in self._visits.values())

    def times(self) -> list[int | None]:
        """When commands are told that their visitor left, and who does not read is let go."""
        is_awaited = any(visit.viewer is not None for visit in self._visits.values())
        look_ms = time.time_ns() // 1_000_000 + _TELLS_EVERY_MS if is_awaited else None
        return [*(each.tells_ms for each in self._left), look_ms]

    def advance(self, now_ms: int) -> None:
        """Tell commands whose visitor left; one that just begins is not found at once."""
        self._drop_the_gone()
        for visit in self._left:
            if visit.tells_ms is None or visit.tells_ms > now_ms:
                continue
            is_over = self._tell(visit) or now_ms > visit.tells_until_ms
            visit.tells_ms = None if is_over else now_ms + _TELLS_EVERY_MS

    def note(self, pid: int, code: int) -> bool:
        """A process ended; False when it is no visitor's."""
        for visit in (*self._visits.values(), *self._left):
            if visit.pid == pid:
                visit.pid = None
                if visit in self._left:
                    self._left.remove(visit)
                if visit.line is not None:
                    visit.line.send("exited", code=code)
                return True
        return False

    def ended(self, watched: Stdio, code: int) -> None:
        """A container is over, and with it everybody's watching."""
        for visit in self._visits.values():
            if visit.watched is watched:
                visit.code = code
                self._show_rest(visit, set())

    def _show_rest(self, visit: _Visit, ready: set[int]) -> None:
        if visit.viewer is None:
            return
        for number in ready & set(visit.viewer.waiting()):
            visit.viewer.send(number)
        if visit.code is not None and not visit.viewer.waiting() and visit.line is not None:
            self._stop_watching(visit)
            visit.line.send("exited", code=visit.code)

    def _drop_the_gone(self) -> None:
        for number in [each for each, visit in self._visits.items() if visit.is_gone]:
            self._hang_up(number)

    def close(self) -> None:
        for visit in self._visits.values():
            self._stop_watching(visit)
            if visit.line is not None:
                if visit.pid is not None:
                    visit.line.send("exited", code=128 + signal.SIGKILL)
                visit.line.close()
        self._visits.clear()
        self._listener.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._hosts.socket)

    def _admit(self) -> None:
        with contextlib.suppress(OSError):
            connection, _ = self._listener.accept()
            line = Line(connection)
            if line.peer()[1] not in {0, os.geteuid()} or self._is_full:
                text = "too many visitors are in this pod; end some of them"
                line.send("refused", text=text, is_there=False)
                line.close()
                return
            self._visits[line.fileno()] = _Visit(line=line, id=secrets.token_hex(32))

    @property
    def _is_full(self) -> bool:
        return len(self._visits) + len(self._left) >= _MOST_VISITS

    def _listen_to(self, number: int) -> None:
        visit = self._visits[number]
        if visit.line is None:
            return
        try:
            for message in visit.line.hear():
                self._obey(visit, visit.line, message)
            lines = (each.line for each in self._visits.values() if each.line is not None)
            demand_room(lines, _MOST_FILES)
        except (HungUpError, LookupError, ArithmeticError, TypeError, ValueError, OSError):
            # Whoever sends what cannot be understood counts as gone.
            self._hang_up(number)

    def _obey(self, visit: _Visit, line: Line, message: dict[str, Any]) -> None:
        try:
            match message["kind"]:
                case "exec":
                    self._run(visit, line, message)
                case "attach":
                    self._attach(visit, line, message)
                case "connect":
                    line.send_file("begun", self._connected(int(message["port"])))
                case "resize" if visit.watched is not None:
                    rows, columns = int(message["rows"]), int(message["columns"])
                    if max(rows, columns) <= _LONGEST_LINE_OF_TERMINAL and min(rows, columns) > 0:
                        visit.watched.resize(rows, columns)
                case _:
                    raise HungUpError
        except LaunchError as error:
            line.drop_files()
            is_there = not isinstance(error, NotRunningError)
            line.send("refused", text=str(error), is_there=is_there)

    def _run(self, visit: _Visit, line: Line, message: dict[str, Any]) -> None:
        if visit.pid is not None or len(line.files) not in {1, 3} or not message["argv"]:
            raise HungUpError
        command = Command(
            container=str(message["container"]),
            argv=tuple(map(str, message["argv"])),
            files=tuple(line.files),
            has_input=bool(message["stdin"]),
            id=visit.id,
        )
        visit.pid = self._hosts.run(command)
        line.drop_files()
        line.send("begun", id=visit.id)

    def _attach(self, visit: _Visit, line: Line, message: dict[str, Any]) -> None:
        watched = self._hosts.stdio(str(message["container"]))
        if watched is None:
            raise NotRunningError(f"container {message['container']} does not run")
        if visit.viewer is not None or len(line.files) not in {2, 3}:
            raise HungUpError
        shown, complained, *typed = line.files
        line.files.clear()
        shows = {STDOUT: shown, STDERR: complained}
        visit.viewer = Viewer(shows, typed[0] if typed else None)
        visit.watched = watched
        watched.viewers.append(visit.viewer)
        line.send("begun", tty=watched.is_terminal)

    def _connected(self, port: int) -> int:
        """A connection that the pod's own user makes, as far as it comes at once."""
        if not 0 < port <= _HIGHEST_PORT:
            raise LaunchError(f"there is no port {port}")
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            made.settimeout(0)
            with acting_as(self._hosts.user), contextlib.suppress(BlockingIOError):
                made.connect((_HERE, port))
        except OSError as error:
            made.close()
            words = (error.strerror or str(error)).lower()
            raise LaunchError(f"dial tcp4: connect: {words}") from None
        return made.detach()

    def _hang_up(self, number: int) -> None:
        visit = self._visits.pop(number)
        self._stop_watching(visit)
        if visit.line is not None:
            visit.line.close()
            visit.line = None
        if visit.pid is not None:
            now_ms = time.time_ns() // 1_000_000
            visit.tells_ms, visit.tells_until_ms = now_ms, now_ms + _TELLS_FOR_MS
            self._left.append(visit)

    def _stop_watching(self, visit: _Visit) -> None:
        if visit.watched is not None and visit.viewer is not None:
            visit.watched.leave(visit.viewer)
            visit.viewer.close()
        visit.watched = visit.viewer = None

    def _tell(self, visit: _Visit) -> bool:
        """As a terminal that is closed tells those who use it; whether anybody was there."""
        mark = f"{VISIT_VARIABLE}={visit.id}\0".encode()
        own = f"{spool.MARKER_VARIABLE}={self._hosts.marker}\0".encode()
        found = [pid for pid in processes.marked(mark) if own in processes.environ(pid)]
        processes.send(found, signal.SIGHUP)
        processes.send(found, signal.SIGCONT)
        return bool(found)


def _listener(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listener.bind(path)
    os.chmod(path, 0o600)
    listener.listen(_MOST_VISITS)
    listener.settimeout(0)
    return listener


def _clock_ms() -> int:
    return time.monotonic_ns() // 1_000_000
