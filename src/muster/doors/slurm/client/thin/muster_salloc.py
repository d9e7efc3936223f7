"""salloc while its command runs: it holds the job, and lets go of it afterwards."""

import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys

from muster_line import Line, Lost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
LEFT_TO_THE_COMMAND = (signal.SIGINT, signal.SIGQUIT)


def run(then: "dict[str, Any]") -> int:
    """Hold the job, run the command here, end as it does."""
    job = then["job"]
    try:
        line = Line(then["address"])
        line.tell("hold")
        env = line.first()["env"]
        _say(then, f"Granted job allocation {job}")
        if then["bell"]:
            sys.stdout.write("\a")
            sys.stdout.flush()
        if then["keeps"]:
            line.tell("release", keep=True, code=0, signal=0)
            return 0
        code = Salloc(then, line, env).run()
    except (OSError, Lost):
        _say(then, f"Job allocation {job} has been revoked.")
        return 1
    return code


class Salloc:
    """The command, and the line to the supervisor beside it."""

    def __init__(self, then: "dict[str, Any]", line: Line, env: dict[str, str]) -> None:
        self._then = then
        self._line = line
        self._env = {**os.environ, **then["env"], **env}
        self._hears, self._tells = socket.socketpair()
        self._is_revoked = False

    def run(self) -> int:
        for end in (self._hears, self._tells):
            end.settimeout(0)
        signal.set_wakeup_fd(self._tells.fileno(), warn_on_full_buffer=False)
        for number in (*FORWARDED, *LEFT_TO_THE_COMMAND, signal.SIGCHLD):
            signal.signal(number, _ignore)
        argv = self._then["argv"] or [_shell()]
        command = _started(argv, self._env)
        if command is None:
            self._relinquish(1)
            return 1
        # Handlers are there, so that nothing that was blocked till now is lost.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        while command.poll() is None:
            self._turn(command)
        code = command.returncode
        self._relinquish(128 - code if code < 0 else code)
        return 128 - code if code < 0 else code

    def _turn(self, command: "subprocess.Popen[bytes]") -> None:
        waiting = select.poll()
        waiting.register(self._hears, select.POLLIN)
        if not self._is_revoked:
            waiting.register(self._line, select.POLLIN)
        ready = {number for number, _ in waiting.poll()}
        if self._hears.fileno() in ready:
            for number in self._hears.recv(64):
                if number in FORWARDED:
                    command.send_signal(number)
        if not self._is_revoked and self._line.fileno() in ready:
            self._hear(command)

    def _hear(self, command: "subprocess.Popen[bytes]") -> None:
        try:
            is_revoked = any(message["kind"] == "revoked" for message in self._line.hear())
        except (Lost, OSError):
            is_revoked = True
        if is_revoked:
            self._is_revoked = True
            _say(self._then, "Job allocation {} has been revoked.".format(self._then["job"]))
            command.send_signal(self._then["kill_signal"] or signal.SIGHUP)

    def _relinquish(self, code: int) -> None:
        if self._is_revoked:
            return
        _say(self._then, "Relinquishing job allocation {}".format(self._then["job"]))
        try:
            self._line.tell("release", keep=False, code=code, signal=0)
        except Lost:
            # It ended by itself a moment ago.
            return


def _started(argv: list[str], env: dict[str, str]) -> "subprocess.Popen[bytes] | None":
    found = argv[0] if "/" in argv[0] else shutil.which(argv[0])
    if found is None:
        text = f'error: _fork_command: Unable to find command "{argv[0]}"\n'
        sys.stderr.write("salloc: " + text)
        return None
    try:
        return subprocess.Popen(  # noqa: S603 -- the user's own command
            argv,
            executable=found,
            env=env,
            preexec_fn=_as_before,  # noqa: PLW1509 -- one thread
        )
    except OSError as error:
        sys.stderr.write(f"salloc: error: {argv[0]}: {error.strerror}\n")
        return None


def _as_before() -> None:
    """The command hears what anybody would hear."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _shell() -> str:
    return os.environ.get("SHELL") or pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"


def _say(then: "dict[str, Any]", text: str) -> None:
    if not then["quiet"]:
        sys.stderr.write("salloc: " + text + "\n")
        sys.stderr.flush()


def _ignore(_number: int, _frame: object) -> None:
    """The wakeup socket is what we listen to."""
