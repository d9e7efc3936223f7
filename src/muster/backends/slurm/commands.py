"""Slurm's commands, called with time-outs; what they print is text for the pure halves.

An answer that does not come in time says nothing about what happened: the caller looks again.
"""

import contextlib
import errno
import os
import signal
import subprocess
from collections.abc import Generator, Mapping
from dataclasses import dataclass

from muster.backends.attempts import Deed, End, Kill, Resume, Send
from muster.backends.local.isolation.users import LaunchError, LocalUser, local_user, surroundings
from muster.backends.slurm.listing import FORMAT
from muster.backends.slurm.submission import Submission
from muster.model.value import UserName, Value

_DOWN = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Connection refused",
    "Zero Bytes were transmitted",
    "Communication connection failure",
    "Transport endpoint",
    "Slurm controller not responding",
    "Invalid authentication credential",
    "Munge",
    "Could not establish a configuration source",
)
"""What the commands say when nobody answers them, or nobody can be trusted yet."""

_MACHINE_IS_FULL = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
"""What passes. Any other error lies in what was to be run, such as a variable that is too long."""


class SlurmDownError(Exception):
    """The cluster did not answer; whether it did what was asked is not known."""


class SlurmRefusedError(Exception):
    """Slurm understood, and said no."""


class Access(Value):
    """How a cluster's commands are called. folder: where they are, if not on the PATH.

    answer_s: how long an answer may take.
    """

    conf: str | None = None
    folder: str | None = None
    answer_s: int = 30


class Commands:
    """The commands of one cluster."""

    def __init__(self, access: Access) -> None:
        self._access = access
        path = os.environ.get("PATH", "/usr/bin:/bin")
        self._environ: Mapping[str, str] = {
            "PATH": path if access.folder is None else f"{access.folder}:{path}",
            "SLURM_TIME_FORMAT": "%s",
            "LANG": "C.UTF-8",
            **({} if access.conf is None else {"SLURM_CONF": access.conf}),
        }

    def jobs(self) -> str:
        return self._ask("squeue", "-a", "-h", "-t", "all", "-O", FORMAT)

    def nodes(self) -> str:
        return self._ask("scontrol", "-a", "-o", "-d", "show", "node")

    def partitions(self) -> str:
        return self._ask("scontrol", "-a", "-o", "show", "partition")

    def configuration(self) -> str:
        return self._ask("scontrol", "show", "config")

    def finished(self, handle: str) -> str:
        """How a job ended that the queue no longer lists: `State|ExitCode|Start|End|Nodes`."""
        fields = "State,ExitCode,Start,End,NodeList"
        return self._ask("sacct", "-X", "-n", "-P", "-j", handle, "-o", fields)

    def submit(self, asked: Submission, user: UserName) -> str:
        """Submit as the user, and return the number that Slurm gave it."""
        try:
            whose = local_user(user)
        except LaunchError as error:
            raise SlurmRefusedError(str(error)) from None
        folder = asked.workdir or whose.home
        hosts = "".join(f"{node}\n" for node in asked.hosts)
        with _readable(asked.script) as script, _readable(hosts) as listed:
            env = {"SLURM_HOSTFILE": f"/proc/self/fd/{listed}"} if hosts else {}
            words = [
                "sbatch",
                f"--chdir={folder}",
                *asked.options,
                f"/proc/self/fd/{script}",
                *asked.args,
            ]
            surrounds = Surrounds(
                env={**surroundings(whose), **asked.env, **self._environ, **env},
                whose=whose if whose.changes else None,
                # Where it is also here, the job finds it as SLURM_SUBMIT_DIR.
                cwd=folder if os.path.isdir(folder) else "/",
                umask=-1 if asked.umask is None else asked.umask,
                files=(script, listed),
            )
            said = self._run(words, surrounds)
        return said.strip().partition(";")[0]

    def do(self, handle: str, deed: Deed) -> None:
        match deed:
            case Send(signal=number, first_only=True):
                self._ask("scancel", "--batch", f"--signal={number}", handle)
            case Send(signal=number):
                self._ask("scancel", "--full", f"--signal={number}", handle)
            case End():
                self._ask("scancel", "--full", f"--signal={int(signal.SIGTERM)}", handle)
            case Kill():
                self._ask("scancel", "--signal=KILL", handle)
                # A job that waits has no process for a signal; cancelling twice does no harm.
                self._ask("scancel", handle)
            case Resume():
                self._ask("scontrol", "resume", handle)

    def signal_step(self, handle: str, step: int, number: int) -> None:
        self._ask("scancel", f"--signal={number}", f"{handle}.{step}")

    def suspend(self, handle: str) -> None:
        self._ask("scontrol", "suspend", handle)

    def limit(self, handle: str, minutes: int | None) -> None:
        text = "UNLIMITED" if minutes is None else str(minutes)
        self._ask("scontrol", "update", f"JobId={handle}", f"TimeLimit={text}")

    def _ask(self, *words: str) -> str:
        return self._run(list(words), Surrounds(env=self._environ))

    def _run(self, words: list[str], around: "Surrounds") -> str:
        whose = around.whose
        try:
            done = subprocess.run(  # noqa: S603 -- Slurm's own commands
                words,
                env=around.env,
                cwd=around.cwd,
                user=None if whose is None else whose.uid,
                group=None if whose is None else whose.gid,
                extra_groups=None if whose is None else os.getgrouplist(whose.name, whose.gid),
                umask=around.umask,
                pass_fds=around.files,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self._access.answer_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise SlurmDownError(f"{words[0]} had no answer in {self._access.answer_s} s") from None
        except FileNotFoundError:
            raise SlurmDownError(f"{words[0]} is not installed here") from None
        except OSError as error:
            if error.errno in _MACHINE_IS_FULL:
                raise SlurmDownError(f"{words[0]} cannot be run now: {error.strerror}") from None
            raise SlurmRefusedError(f"{words[0]} cannot be run so: {error.strerror}") from None
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode == 0:
            return done.stdout.decode(errors="replace")
        if any(each in said for each in _DOWN):
            raise SlurmDownError(said)
        raise SlurmRefusedError(said or f"{words[0]} ended with {done.returncode}")


@dataclass(frozen=True, kw_only=True)
class Surrounds:
    """What a command finds around it. whose: it becomes this user first. files: it may read."""

    env: Mapping[str, str]
    whose: LocalUser | None = None
    cwd: str = "/"
    umask: int = -1
    files: tuple[int, ...] = ()


@contextlib.contextmanager
def _readable(text: str) -> Generator[int]:
    """A file that only the process can read to which its number is passed."""
    number = os.memfd_create("muster")
    try:
        os.write(number, text.encode())
        yield number
    finally:
        os.close(number)
