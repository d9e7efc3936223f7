"""A real Slurm on this machine, in a folder of its own on loopback, for as long as it is needed.

    with laboratory(nodes=4, gpus_per_node=8) as lab:
        lab.ask("sbatch", "--wrap", "true")

Started are munged, MariaDB and slurmdbd for the accounting, slurmctld, one slurmd a node, and
slurmrestd. All of them end with the `with`, and whatever they left running as well.
"""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import IO

from bench.slurm.configuring import (
    Layout,
    Look,
    Ports,
    gres_conf,
    mariadb_options,
    slurm_conf,
    slurmdbd_conf,
    topology_conf,
)
from bench.slurm.installing import PATH, NoSlurmError, ensure_installed

PATIENCE_S = 60.0
END_PATIENCE_S = 10.0
LOOK_AGAIN_S = 0.05

NOBODY = 65_534
"""slurmrestd refuses to be root, and what it submits runs as the user that it is."""

_FOLDERS = ("etc", "run", "log", "state", "spool", "dev", "mysql", "rest")


class Lab:
    """The daemons of one laboratory, and how its commands are called."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.environ: Mapping[str, str] = os.environ | {"PATH": PATH, "SLURM_CONF": layout.conf}
        self._daemons: list[subprocess.Popen[bytes]] = []

    def ask(self, *command: str) -> str:
        """Run one of Slurm's commands and return what it printed."""
        done = subprocess.run(  # noqa: S603 -- commands of the benchmark alone
            command, env=self.environ, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def write(self, out: IO[bytes], *command: str) -> None:
        """Run one of Slurm's commands and have it print into a file."""
        subprocess.run(  # noqa: S603 -- commands of the benchmark alone
            command, env=self.environ, stdout=out, check=True
        )

    @property
    def version(self) -> str:
        """Which Slurm this is."""
        return self.ask("sinfo", "--version").strip()

    def start(self) -> None:
        """From nothing to idle nodes."""
        _write_files(self.layout)
        self._start_munge()
        self._start_accounting()
        self.launch("slurmctld", "-D", "-i")
        self._until("slurmctld", lambda: "UP" in self.ask("scontrol", "ping"))
        for node in self.layout.nodes:
            self.launch("slurmd", "-D", "-N", node)
        self._until("the nodes", self._are_idle)

    def start_rest(self) -> None:
        """Have it answer over HTTP as well."""
        # Without it, it would show its own credential in the place of the token.
        env = {"SLURM_JWT": "daemon"} if self.layout.look.has_tokens else {}
        self.launch(*self.rest_words, user=NOBODY, env=env)
        self._until("slurmrestd", Path(self.layout.rest_socket).exists)

    @property
    def rest_words(self) -> tuple[str, ...]:
        """How slurmrestd is called."""
        who = "rest_auth/jwt" if self.layout.look.has_tokens else "rest_auth/local"
        spoken = "openapi/v0.0.38,openapi/dbv0.0.38"
        return ("slurmrestd", "-a", who, "-s", spoken, f"unix:{self.layout.rest_socket}")

    def token(self, user: str = "root") -> str:
        """One that this user can show for an hour."""
        said = self.ask("scontrol", "token", f"username={user}", "lifespan=3600")
        return said.strip().partition("=")[2]

    def stop(self) -> None:
        """End everything, the youngest first, and what jobs and daemons left behind."""
        with contextlib.suppress(RuntimeError, OSError):
            self._end_jobs()
        for daemon in reversed(self._daemons):
            _end(daemon)
        for pid in _carrying(f"SLURM_CONF={self.layout.conf}"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def launch(
        self, *command: str, user: int | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        """Start a daemon that stays in the foreground, so that its process is known."""
        with Path(self.layout.folder, "log", f"{Path(command[0]).name}.out").open("ab") as out:
            self._daemons.append(
                subprocess.Popen(  # noqa: S603 -- daemons of the benchmark alone
                    command,
                    env={**self.environ, **(env or {})},
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    user=user,
                    group=user,
                    extra_groups=None if user is None else [],
                    start_new_session=True,
                    cwd="/",
                )
            )

    def kill(self, *command: str) -> None:
        """End the daemon that was started with these words, as the kernel would."""
        for daemon in [each for each in self._daemons if each.args == command]:
            self._daemons.remove(daemon)
            daemon.kill()
            daemon.wait()

    def pids(self, program: str) -> list[int]:
        """The processes of this daemon."""
        return [each.pid for each in self._daemons if _program_of(each) == program]

    def crash(self, node: str) -> None:
        """The node's slurmd and everything that it started are gone at once."""
        self.kill("slurmd", "-D", "-N", node)
        ours = set(_carrying(f"SLURM_CONF={self.layout.conf}"))
        tasks = ours & set(_carrying(f"SLURMD_NODENAME={node}"))
        steps = {parent for pid in tasks if (parent := _parent(pid)) in ours}
        for pid in (*steps, *tasks):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _end_jobs(self) -> None:
        """End what runs. To cancel what waits would take Slurm minutes if that is much."""
        self.ask("scontrol", "update", f"PartitionName={self.layout.look.partition}", "State=DOWN")
        self.ask("scancel", "--state=RUNNING")
        deadline = time.monotonic() + END_PATIENCE_S
        while time.monotonic() < deadline:
            if not self.ask("squeue", "-h", "-o", "%i", "--states=RUNNING,COMPLETING"):
                return
            time.sleep(LOOK_AGAIN_S)

    def _start_munge(self) -> None:
        folder = self.layout.folder
        self.launch(
            "munged",
            "--foreground",
            f"--key-file={folder}/etc/munge.key",
            f"--socket={self.layout.munge_socket}",
            f"--pid-file={folder}/run/munged.pid",
            f"--log-file={folder}/log/munged.log",
            f"--seed-file={folder}/run/munged.seed",
            "--num-threads=4",
        )
        self._until("munged", Path(self.layout.munge_socket).exists)

    def _start_accounting(self) -> None:
        layout = self.layout
        self.ask(
            "mariadb-install-db",
            "--no-defaults",
            "--user=root",
            f"--datadir={layout.folder}/mysql",
            # Two that use /tmp at one time take each other's tables away.
            f"--tmpdir={layout.folder}/run",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        )
        self.launch("mariadbd", *mariadb_options(layout))
        sql = ("mariadb", "--no-defaults", "-S", layout.mysql_socket, "-u", "root", "-e")
        self._until("MariaDB", lambda: bool(self.ask(*sql, "select 1")))
        self.ask(*sql, _GRANTS)
        self.launch("slurmdbd", "-D")
        self._until("slurmdbd", lambda: bool(self.ask("sacctmgr", "-n", "-P", "show", "stats")))
        self.ask("sacctmgr", "-i", "add", "cluster", self.layout.look.cluster)

    def _are_idle(self) -> bool:
        states = self.ask("sinfo", "-h", "-N", "-o", "%T").split()
        return len(states) == len(self.layout.nodes) and set(states) == {"idle"}

    def _until(self, what: str, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        problem = ""
        while time.monotonic() < deadline:
            try:
                if is_so():
                    return
            except RuntimeError as error:
                problem = str(error)
            ended = [each.args for each in self._daemons if each.poll() is not None]
            if ended:
                raise NoSlurmError(f"{ended[0]} ended at once; see {self.layout.folder}/log")
            time.sleep(LOOK_AGAIN_S)
        raise NoSlurmError(f"{what} did not answer for {PATIENCE_S:.0f} s. {problem}")


@contextlib.contextmanager
def laboratory(
    *, nodes: int, gpus_per_node: int, look: Look | None = None, rest: bool = True
) -> Generator[Lab]:
    """A Slurm from nothing, ended and removed afterwards. rest: with slurmrestd."""
    ensure_installed()
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    # Whoever runs slurmrestd must come through.
    folder.chmod(0o755)
    ports = free_ports(3 + nodes)
    layout = Layout(
        folder=str(folder),
        machine=socket.gethostname().partition(".")[0],
        ports=Ports(
            slurmctld=ports[0], slurmdbd=ports[1], mariadb=ports[2], slurmd=tuple(ports[3:])
        ),
        gpus_per_node=gpus_per_node,
        look=look or Look(),
    )
    lab = Lab(layout)
    try:
        lab.start()
        if rest:
            lab.start_rest()
        yield lab
    finally:
        lab.stop()
        shutil.rmtree(folder, ignore_errors=True)


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens at just now."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


_GRANTS = """\
create database slurm_acct_db;
create user 'slurm'@'localhost' identified by 'slurm';
create user 'slurm'@'127.0.0.1' identified by 'slurm';
grant all on slurm_acct_db.* to 'slurm'@'localhost';
grant all on slurm_acct_db.* to 'slurm'@'127.0.0.1';
"""


def _write_files(layout: Layout) -> None:
    folder = Path(layout.folder)
    for name in _FOLDERS:
        (folder / name).mkdir(exist_ok=True)
    os.chown(folder / "rest", NOBODY, NOBODY)
    for node in layout.nodes:
        # slurmd does not make it early enough.
        (folder / "spool" / node).mkdir(exist_ok=True)
    for at in range(layout.gpus_per_node):
        (folder / "dev" / f"nvidia{at}").symlink_to("/dev/null")
    for at in range(sum(count for word, count in layout.look.gres.items() if ":" in word)):
        (folder / "dev" / f"mig{at}").symlink_to("/dev/null")
    if layout.look.has_switches:
        (folder / "etc" / "topology.conf").write_text(topology_conf(layout), encoding="utf-8")
    (folder / "etc" / "munge.key").write_bytes(secrets.token_bytes(1_024))
    (folder / "etc" / "munge.key").chmod(0o400)
    if layout.look.has_tokens:
        key = Path(layout.token_key)
        key.write_bytes(secrets.token_bytes(32))
        key.chmod(0o600)
    Path(layout.conf).write_text(slurm_conf(layout), encoding="utf-8")
    (folder / "etc" / "gres.conf").write_text(gres_conf(layout), encoding="utf-8")
    dbd = folder / "etc" / "slurmdbd.conf"
    dbd.write_text(slurmdbd_conf(layout), encoding="utf-8")
    dbd.chmod(0o600)


def _program_of(daemon: "subprocess.Popen[bytes]") -> str:
    return str(daemon.args[0]) if isinstance(daemon.args, tuple) else ""


def _end(daemon: "subprocess.Popen[bytes]") -> None:
    if daemon.poll() is not None:
        return
    daemon.terminate()
    try:
        daemon.wait(END_PATIENCE_S)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def _carrying(variable: str) -> Sequence[int]:
    """Processes with this variable in their environment: a laboratory's own, by its folder."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if variable.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def _parent(pid: int) -> int:
    """Whose child a process is; 0 when it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[1])
