"""The spawner: a small process that forks a supervisor for every attempt, and reaps orphans.

It imports what a supervisor needs and little else, so that a fork is cheap; and since a fork is
still what costs most, a supervisor whose attempt is over is given the next one. The spawner
outlives the controller, and supervisors outlive the spawner.
`python -m muster.backends.local.attempt.spawner HOME` starts it.
"""

import contextlib
import fcntl
import gc
import hashlib
import os
import pwd
import select
import signal
import socket
import sys
import time
from pathlib import Path

from muster.backends.local.attempt import cleanup, processes, spool, supervisor
from muster.backends.local.isolation import cgroup

RUN = b"run "
REST = b"rest"
STOP = b"stop"
BUSY = b"busy"
BYE = b"bye"

_LONGEST_MESSAGE = 256
_IDLE_S = 60.0
_PATIENCE_S = 3.0
_MOST_IDLE = 16
_MOST_PEERS = 64


def main() -> None:
    """Become a spawner, unless the home has one."""
    home = Path(sys.argv[1])
    # The caller waits only for this process; the spawner itself is left to init.
    if os.fork() != 0:
        os._exit(0)
    os.setsid()
    # Signals that the caller blocked would stay blocked in jobs.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.chdir(home / "spool")
    lock = os.open(spool.SPAWNER_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    if not _is_taken(lock):
        return
    os.ftruncate(lock, 0)
    os.write(lock, stamp().encode())
    processes.adopt_orphans()
    token = Path(spool.TOKEN).read_text(encoding="ascii")
    roots = cgroup.roots(f"muster-{token[:12]}")
    Spawner(roots, lock).run()
    cgroup.give_up(roots)


def stamp() -> str:
    """Of the code that runs here: a spawner with another one was left by another Muster."""
    local, package = Path(__file__).parents[1], Path(__file__).parents[3]
    files = sorted(path for folder in (local, package / "launch") for path in folder.rglob("*.py"))
    found = ((each, each.stat()) for each in files)
    texts = [f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in found]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _is_taken(lock: int) -> bool:
    """Whether we are the spawner now; one that is just leaving is waited for."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        else:
            return True


class Spawner:
    """Listens in the spool, which is the folder we are in."""

    def __init__(self, roots: cgroup.CgroupRoots, lock: int) -> None:
        self._roots = roots
        self._lock = lock
        self._busy: dict[int, tuple[int, str]] = {}
        self._idle: list[int] = []
        self._lines: dict[int, tuple[int, socket.socket]] = {}
        self._cleaners: set[int] = set()
        self._peers: dict[int, socket.socket] = {}
        self._wakeup_read, self._wakeup_write = socket.socketpair()
        for end in (self._wakeup_read, self._wakeup_write):
            end.settimeout(0)
        self._listener = _listener()
        self._is_stopped = False
        # Its user left while attempts ran: with the last of them there is nothing left to do.
        self._is_left = False
        self._idle_since = time.monotonic()

    def run(self) -> None:
        for number in (signal.SIGCHLD, spool.ORDERS_SIGNAL):
            signal.signal(number, _ignore)
        signal.set_wakeup_fd(self._wakeup_write.fileno(), warn_on_full_buffer=False)
        # Loads what looks users up, once for all supervisors.
        with contextlib.suppress(KeyError):
            pwd.getpwuid(os.getuid())
        gc.collect()
        gc.freeze()
        gc.disable()
        while not self._is_stopped and not self._is_idle():
            self._turn()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(spool.SPAWNER_SOCKET)

    def _turn(self) -> None:
        waiting = select.poll()
        ours = (self._wakeup_read.fileno(), self._listener.fileno())
        for number in (*ours, *self._lines, *self._peers):
            waiting.register(number, select.POLLIN)
        for number, _ in waiting.poll(_IDLE_S * 1_000):
            if number == self._wakeup_read.fileno():
                self._reap()
            elif number == self._listener.fileno():
                self._admit()
            elif number in self._lines:
                self._hear_from_supervisor(number)
            elif number in self._peers:
                self._listen_to(number)

    def _admit(self) -> None:
        with contextlib.suppress(OSError):
            peer, _ = self._listener.accept()
            if len(self._peers) >= _MOST_PEERS:
                peer.close()
                return
            self._peers[peer.fileno()] = peer

    def _is_idle(self) -> bool:
        if self._busy or self._cleaners or self._peers:
            self._idle_since = time.monotonic()
            return False
        return self._is_left or time.monotonic() - self._idle_since > _IDLE_S

    def _listen_to(self, number: int) -> None:
        peer = self._peers[number]
        try:
            message = peer.recv(_LONGEST_MESSAGE)
        except OSError:
            message = b""
        if message.startswith(RUN):
            self._is_left = False
            self._run_attempt(message.removeprefix(RUN).decode(errors="replace"))
        elif message == REST:
            self._is_left = True
            self._is_stopped = not self._busy and len(self._peers) == 1
            self._answer(peer, BYE if self._is_stopped else BUSY)
        elif message == STOP:
            self._is_stopped = True
            self._answer(peer, BYE)
        else:
            del self._peers[number]
            peer.close()

    def _answer(self, peer: socket.socket, word: bytes) -> None:
        if self._is_stopped:
            # Gone before we say so: the client may start another spawner at once.
            os.unlink(spool.SPAWNER_SOCKET)
            self._listener.close()
        with contextlib.suppress(OSError):
            peer.send(word)

    def _run_attempt(self, key: str) -> None:
        """Only what has a launch file in our folder is an attempt."""
        if spool.parts_of(key) is not None and os.path.exists(f"{key}/{spool.LAUNCH}"):
            self._supervise(key)

    def _supervise(self, key: str) -> None:
        """Give the attempt to a supervisor that is free, or else to a new one."""
        while self._idle:
            number = self._idle.pop()
            pid, line = self._lines[number]
            with contextlib.suppress(OSError):
                line.send(key.encode())
                self._busy[pid] = (number, key)
                return
        self._fork(key)

    def _fork(self, key: str) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            ours.close()
            self._become_child()
            _supervise_and_exit(key, self._roots, theirs)
        theirs.close()
        self._lines[ours.fileno()] = (pid, ours)
        self._busy[pid] = (ours.fileno(), key)

    def _hear_from_supervisor(self, number: int) -> None:
        """It is free for another attempt; or it is gone, which is noticed when it is reaped."""
        pid, line = self._lines[number]
        try:
            is_free = bool(line.recv(_LONGEST_MESSAGE))
        except OSError:
            is_free = False
        if is_free:
            self._busy.pop(pid, None)
        if is_free and len(self._idle) < _MOST_IDLE:
            self._idle.append(number)
            return
        self._hang_up(number)

    def _hang_up(self, number: int) -> None:
        """Without a line to us a supervisor ends with its attempt."""
        _, line = self._lines.pop(number)
        line.close()
        if number in self._idle:
            self._idle.remove(number)

    def _become_child(self) -> None:
        signal.set_wakeup_fd(-1)
        # Supervisors outlive the spawner and must not keep the next one out.
        os.close(self._lock)
        lines = [line for _, line in self._lines.values()]
        for end in (
            self._wakeup_read,
            self._wakeup_write,
            self._listener,
            *lines,
            *self._peers.values(),
        ):
            end.close()

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._wakeup_read.recv(4_096):
                pass
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, _ = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                self._cleaners.discard(pid)
                self._miss(pid)

    def _miss(self, pid: int) -> None:
        """A child is gone; if it was a supervisor with an attempt, that has to be cleared up."""
        number, key = self._busy.pop(pid, (None, None))
        if number in self._lines:
            self._hang_up(number)
        if key is None:
            return
        if os.path.exists(f"{key}/{spool.BEGUN}"):
            self._end_abandoned(key)
        elif os.path.exists(key):
            # It died before it came to the attempt, which may as well begin now.
            self._supervise(key)

    def _end_abandoned(self, key: str) -> None:
        """A supervisor died before its attempt was over; its children are ours now."""
        known = {pid for pid, _ in self._lines.values()} | self._cleaners
        orphans = [pid for pid in processes.children(os.getpid()) if pid not in known]
        pid = os.fork()
        if pid == 0:
            self._become_child()
            _clean_up_and_exit(key, self._roots, orphans)
        self._cleaners.add(pid)


def _listener() -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(spool.SPAWNER_SOCKET)
    listener.bind(spool.SPAWNER_SOCKET)
    os.chmod(spool.SPAWNER_SOCKET, 0o600)
    listener.listen()
    return listener


def _supervise_and_exit(key: str, roots: cgroup.CgroupRoots, line: socket.socket) -> None:
    """Supervise this attempt, and then whatever else we are given, until no more come."""
    code = 1
    try:
        supervisor.prepare()
        while key:
            supervisor.supervise(key, roots)
            line.send(b"free")
            key = line.recv(_LONGEST_MESSAGE).decode()
        code = 0
    except (BrokenPipeError, ConnectionResetError):
        # The spawner is gone, and our attempt is over.
        code = 0
    finally:
        _leave(code)


def _clean_up_and_exit(key: str, roots: cgroup.CgroupRoots, orphans: list[int]) -> None:
    code = 1
    try:
        # A backend may have been quicker, and have taken the folder away.
        with contextlib.suppress(FileNotFoundError):
            if cleanup.end_abandoned(Path(key), roots, orphans):
                spool.notify(spool.NOTIFY_SOCKET, key)
        code = 0
    finally:
        _leave(code)


def _leave(code: int) -> None:
    if sys.exc_info()[0] is not None:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        sys.stderr.flush()
    os._exit(code)


def _ignore(_number: int, _frame: object) -> None:
    """The wakeup socket is what we listen to."""


if __name__ == "__main__":
    main()
