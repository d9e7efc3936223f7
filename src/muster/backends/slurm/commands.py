"""Slurm's commands, called with time-outs; what they print is text for the pure halves.

An answer that does not come in time says nothing about what happened: the caller looks again.
"""

import contextlib
import errno
import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from muster.backends.attempts import Deed, End, Kill, Resume, Send
from muster.backends.local.isolation.users import LaunchError, LocalUser, local_user, surroundings
from muster.backends.slurm.clients import without_clients
from muster.backends.slurm.listing import FORMAT, Listing, QueuedJob, accounted
from muster.backends.slurm.nodes import Fleet, Partition, SlurmNode, nodes, partitions
from muster.backends.slurm.refusals import failure
from muster.backends.slurm.submission import Submission
from muster.backends.slurm.topology import Topology, topology
from muster.backends.slurm.usage import FORMAT as FORMAT_USED
from muster.backends.slurm.usage import Usage, usage
from muster.backends.slurm.version import version_in
from muster.backends.slurm.wire import SlurmDownError, SlurmRefusedError, Submitted
from muster.model.value import UserName, Value

log = logging.getLogger(__name__)

_KILLED = frozenset({-signal.SIGKILL, -signal.SIGTERM})
"""By who ends what the machine has no room for: it says nothing of what was asked."""

_AT_A_TIME = 4
"""Most of the time that `sbatch` takes it reads its configuration, or waits."""

_ASKED_TOGETHER = 500
"""So many jobs in one line of a command."""

_MACHINE_IS_FULL = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
"""What passes. Any other error lies in what was to be run, such as a variable that is too long."""


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
        self._listing = Listing()
        path = os.environ.get("PATH", "/usr/bin:/bin")
        self._path = path if access.folder is None else f"{access.folder}:{path}"
        self._conf = {} if access.conf is None else {"SLURM_CONF": access.conf}
        self._environ: Mapping[str, str] = {
            "PATH": self._path,
            "SLURM_TIME_FORMAT": "%s",
            "LANG": "C.UTF-8",
            **self._conf,
        }

    def jobs(self) -> tuple[QueuedJob, ...]:
        return self._listing.read(self._ask("squeue", "-a", "-h", "-t", "all", "-O", FORMAT))

    def partitions(self) -> tuple[Partition, ...]:
        return partitions(self._ask("scontrol", "-a", "-o", "show", "partition"))

    def nodes(self, fleet: Fleet) -> tuple[SlurmNode, ...]:
        return nodes(self._ask("scontrol", "-a", "-o", "-d", "show", "node"), fleet)

    def topology(self) -> Topology:
        # Without a plugin for it, Slurm refuses; older ones print nothing.
        with contextlib.suppress(SlurmRefusedError):
            return topology(self._ask("scontrol", "show", "topology"))
        return Topology()

    def finished(self, handle: str) -> QueuedJob | None:
        fields = "State,ExitCode,Start,End,NodeList"
        rows = self._ask("sacct", "-X", "-n", "-P", "-j", handle, "-o", fields).splitlines()
        return accounted(handle, rows[-1]) if rows else None

    def usage(self, handles: Sequence[str]) -> Mapping[str, Usage]:
        found: dict[str, Usage] = {}
        for first in range(0, len(handles), _ASKED_TOGETHER):
            several = ",".join(handles[first : first + _ASKED_TOGETHER])
            found |= usage(self._ask("sstat", "-a", "-n", "-P", "-j", several, "-o", FORMAT_USED))
        return found

    def submit(self, asked: Sequence[tuple[Submission, UserName]]) -> Sequence[Submitted]:
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            return list(pool.map(self._submitted, asked))

    def version(self) -> str:
        """Which Slurm its slurmctld says that it is."""
        return version_in(self._ask("scontrol", "show", "config"))

    def accounts(self) -> tuple[str, ...]:
        """Those in whose name jobs can be; none where Slurm keeps no accounts."""
        return self._accounting("account", "account")

    def qualities(self) -> tuple[str, ...]:
        """Every QOS; none where Slurm keeps no accounts."""
        return self._accounting("qos", "name")

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

    def _submitted(self, asked: tuple[Submission, UserName]) -> Submitted:
        try:
            return self._sbatch(*asked)
        except (SlurmDownError, SlurmRefusedError) as error:
            return error
        except OSError as error:
            return SlurmDownError(f"sbatch cannot be run now: {error}")
        except Exception as error:
            # What can never be submitted must end its own attempt, and hold up no other.
            log.exception("sbatch cannot be asked for a job")
            return SlurmRefusedError(f"sbatch cannot be asked for it: {error}")

    def _sbatch(self, asked: Submission, user: UserName) -> str:
        try:
            whose = local_user(user)
        except LaunchError as error:
            raise SlurmRefusedError(str(error)) from None
        folder = asked.workdir or whose.home
        hosts = "".join(f"{node}\n" for node in asked.hosts)
        with _readable(asked.script) as script, _readable(hosts) as listed:
            env = {**surroundings(whose), **asked.env, **self._conf}
            env["PATH"] = without_clients(env["PATH"])
            if hosts:
                env["SLURM_HOSTFILE"] = f"/proc/self/fd/{listed}"
            words = [
                # Found on our PATH, and run with the job's: that is what the job will have.
                shutil.which("sbatch", path=self._path) or "sbatch",
                f"--chdir={folder}",
                *asked.options,
                f"/proc/self/fd/{script}",
                *asked.args,
            ]
            surrounds = Surrounds(
                env=env,
                whose=whose if whose.changes else None,
                # Where it is also here, the job finds it as SLURM_SUBMIT_DIR.
                cwd=folder if os.path.isdir(folder) else "/",
                umask=-1 if asked.umask is None else asked.umask,
                files=(script, listed),
            )
            said = self._run(words, surrounds)
        return said.strip().partition(";")[0]

    def _accounting(self, kind: str, field: str) -> tuple[str, ...]:
        with contextlib.suppress(SlurmRefusedError, SlurmDownError):
            said = self._ask("sacctmgr", "-n", "-P", "show", kind, f"format={field}")
            return tuple(sorted(line for line in said.splitlines() if line))
        return ()

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
        if done.returncode in _KILLED:
            raise SlurmDownError(said or f"{words[0]} was killed")
        raise failure(said or f"{words[0]} ended with {done.returncode}")


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
