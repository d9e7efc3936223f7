"""The keeper: a small process that forks supervisors, quickly, and takes in what they leave.

It imports what a supervisor needs and little else, so that a fork is cheap. It outlives the
controller; supervisors outlive it. Started as `python -m muster.backends.local.keeper HOME`.
"""

import contextlib
import fcntl
import gc
import os
import pwd
import select
import signal
import socket
import sys
import time
from pathlib import Path

from muster.backends.local import cgroup, kernel, remains, spool, supervisor, tree

RUN = b"run "
REST = b"rest"
STOP = b"stop"
BUSY = b"busy"
BYE = b"bye"

_LONGEST_MESSAGE = 256
_IDLE_S = 60.0


def main() -> None:
    """Become a keeper, unless the home has one."""
    home = Path(sys.argv[1])
    # Whoever started us waits only for this process; the keeper itself is nobody's child.
    if os.fork() != 0:
        os._exit(0)
    os.setsid()
    os.chdir(home / "spool")
    lock = os.open(spool.KEEPER_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    kernel.adopt_orphans()
    token = Path(spool.TOKEN).read_text(encoding="ascii")
    Keeper(cgroup.grounds(f"muster-{token[:12]}"), lock).run()


class Keeper:
    """Listens in the spool, which is the folder we are in."""

    def __init__(self, grounds: cgroup.Grounds, lock: int) -> None:
        self._grounds = grounds
        self._lock = lock
        self._supervisors: dict[int, str] = {}
        self._buriers: set[int] = set()
        self._peers: dict[int, socket.socket] = {}
        self._hears, self._tells = socket.socketpair()
        for end in (self._hears, self._tells):
            end.setblocking(False)
        self._listener = _listener()
        self._is_stopped = False
        self._idle_since = time.monotonic()

    def run(self) -> None:
        for number in (signal.SIGCHLD, spool.ORDERS_SIGNAL):
            signal.signal(number, _ignore)
        signal.set_wakeup_fd(self._tells.fileno(), warn_on_full_buffer=False)
        # Loads what looks users up, once for all supervisors.
        with contextlib.suppress(KeyError):
            pwd.getpwuid(os.getuid())
        gc.collect()
        gc.freeze()
        gc.disable()
        while not self._is_stopped and not self._is_idle():
            self._turn()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(spool.KEEPER_SOCKET)

    def _turn(self) -> None:
        waiting = select.poll()
        for number in (self._hears.fileno(), self._listener.fileno(), *self._peers):
            waiting.register(number, select.POLLIN)
        for number, _ in waiting.poll(_IDLE_S * 1_000):
            if number == self._hears.fileno():
                self._reap()
            elif number == self._listener.fileno():
                peer, _ = self._listener.accept()
                self._peers[peer.fileno()] = peer
            else:
                self._listen_to(number)

    def _is_idle(self) -> bool:
        if self._supervisors or self._buriers or self._peers:
            self._idle_since = time.monotonic()
        return time.monotonic() - self._idle_since > _IDLE_S

    def _listen_to(self, number: int) -> None:
        peer = self._peers[number]
        try:
            message = peer.recv(_LONGEST_MESSAGE)
        except OSError:
            message = b""
        if message.startswith(RUN):
            self._supervise(message.removeprefix(RUN).decode())
        elif message == REST:
            self._is_stopped = not self._supervisors
            self._answer(peer, BUSY if self._supervisors else BYE)
        elif message == STOP:
            self._is_stopped = True
            self._answer(peer, BYE)
        else:
            del self._peers[number]
            peer.close()

    def _answer(self, peer: socket.socket, word: bytes) -> None:
        if self._is_stopped:
            # Gone before we say so: whoever hears it may start another keeper at once.
            os.unlink(spool.KEEPER_SOCKET)
            self._listener.close()
        with contextlib.suppress(OSError):
            peer.send(word)

    def _supervise(self, key: str) -> None:
        pid = os.fork()
        if pid == 0:
            self._become_child()
            _run_and_exit(key, self._grounds)
        self._supervisors[pid] = key

    def _become_child(self) -> None:
        signal.set_wakeup_fd(-1)
        # Supervisors outlive the keeper and must not keep the next one out.
        os.close(self._lock)
        for end in (self._hears, self._tells, self._listener, *self._peers.values()):
            end.close()

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._hears.recv(4_096):
                pass
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                self._buriers.discard(pid)
                key = self._supervisors.pop(pid, None)
                if key is not None and status != 0:
                    self._bury(key)

    def _bury(self, key: str) -> None:
        """A supervisor died before its attempt was over; its children are ours now."""
        known = self._supervisors.keys() | self._buriers
        orphans = [pid for pid in tree.children(os.getpid()) if pid not in known]
        pid = os.fork()
        if pid == 0:
            self._become_child()
            _bury_and_exit(key, self._grounds, orphans)
        self._buriers.add(pid)


def _listener() -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(spool.KEEPER_SOCKET)
    listener.bind(spool.KEEPER_SOCKET)
    os.chmod(spool.KEEPER_SOCKET, 0o600)
    listener.listen()
    return listener


def _run_and_exit(key: str, grounds: cgroup.Grounds) -> None:
    code = 1
    try:
        supervisor.supervise(key, grounds)
        code = 0
    except FileNotFoundError:
        # The attempt was forgotten before we came to it.
        code = 0 if not os.path.isdir(f"../{key}") else 1
    finally:
        _leave(code)


def _bury_and_exit(key: str, grounds: cgroup.Grounds, orphans: list[int]) -> None:
    code = 1
    try:
        # A backend may have been quicker, and have taken the folder away.
        with contextlib.suppress(FileNotFoundError):
            if remains.bury(Path(key), grounds, orphans):
                spool.poke(spool.POKE_SOCKET, key)
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
