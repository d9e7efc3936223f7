"""Start and stop Muster on this machine: one daemon for each state folder."""

import contextlib
import fcntl
import gc
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event
from typing import TYPE_CHECKING

import click
import msgspec

from muster.app.log import LOG_NAME, log_to
from muster.backends.kubernetes.kubeconfig import OurPod, file_to_use
from muster.backends.local.hardware.racks import racks_from
from muster.client.address import SOCKET_NAME, own_home
from muster.client.calls import Client
from muster.client.errors import ClientError, UnreachableError
from muster.doors.cli.daemon.port import DownOptions, ListenOptions, ServeOptions, UpOptions
from muster.doors.cli.screen.text import counted
from muster.doors.config.parse import site_from
from muster.model.errors import MusterError
from muster.model.value import Value, replace
from muster.settings import (
    NO_MAIL_PROGRAM,
    PRIVATE_UMASK,
    BadSettingsError,
    KubernetesCluster,
    KubernetesListen,
    LeaseToLead,
    Listen,
    Settings,
    clusters_of,
    is_program,
    jobs_home,
    keep_settings,
    made_home,
    mend_modes,
    read_settings,
    state_folder,
)

if TYPE_CHECKING:
    from muster.app.kubernetes import KubernetesDoor
    from muster.app.parts import Muster
    from muster.doors.kubernetes.adopting.adopter import Adopter
    from muster.doors.rest.serve import Tcp

START_PATIENCE_S = 180.0
"""A large database, or a machine that does much else: who cannot start is noticed at once."""
LEAD_PATIENCE_S = 3.0
LOOK_AGAIN_S = 0.02
LOOK_AT_SIGNALS_S = 1.0
LOCK_TRIES = 50
LOCK_NAME = "daemon.lock"
SWITCH_S = 0.000_2
FROM_STDIN = "-"
NONE = "none"
NEW_BEFORE_COLLECTION, RARELY = 100_000, (50, 100)
"""When to look for garbage: values hold no cycles, and there are many of them."""


class AlreadyRunningError(MusterError):
    """Another daemon has this state folder."""


class Beginning(Value):
    """What a daemon is started with.

    The settings are kept when it answers, and not before: those that do not work are forgotten.
    rules: the text of a configuration file, for a store that has no rules yet.
    recovers: jobs that run and that the database does not know are taken over.
    """

    settings: Settings
    rules: str | None = None
    recovers: bool = False


def up(options: UpOptions) -> int:
    """Start the daemon, or become it, and say what to do next."""
    wanted = options.home or own_home()
    with state_folder(wanted):
        home = made_home(wanted).resolve()
        kept, pid = read_settings(home), running_pid(home)
    settings = _settled(kept, options)
    if options.standby_for is not None:
        settings = _beside(options.standby_for.resolve(), home, settings)
    rules = None if options.site is None else _rules(options.site)
    if pid is not None:
        return _runs_already(home, options, same=settings == kept)
    beginning = Beginning(settings=settings, rules=rules, recovers=options.recover)
    if options.foreground:
        return run(home, beginning)
    click.echo(f"State folder: {home} {_why_there(options)}")
    return _started(home, beginning) or _rules_in_force(home, options.site)


def down(options: DownOptions) -> int:
    """Stop the daemon; its jobs run on."""
    home = (options.home or own_home()).resolve()
    with state_folder(home):
        pid = running_pid(home)
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
    if pid is None:
        click.echo(f"Muster does not run (home {home}).", err=True)
        return 0
    deadline = time.monotonic() + options.patience_s
    while time.monotonic() < deadline:
        if running_pid(home) is None:
            click.echo("Muster has stopped. Jobs that run go on; muster up takes them over.")
            return 0
        time.sleep(LOOK_AGAIN_S)
    text = f"Muster (process {pid}) has not stopped yet; see {home / 'logs' / LOG_NAME}"
    click.echo(text, err=True)
    return 1


def serve(options: ServeOptions) -> int:
    """Answer at the doors only."""
    if options.store is None:
        text = "a process that only answers shares a store: say --store postgresql://..."
        raise BadSettingsError(text)
    wanted = options.home or own_home()
    with state_folder(wanted):
        home = made_home(wanted).resolve()
        running_pid(home)
    settings = Settings(
        store=options.store,
        listen=_listen(options.listen),
        doors_only=True,
        kubernetes=_kubernetes(options.kubernetes, None),
    )
    return run(home, Beginning(settings=settings))


def run(home: Path, beginning: Beginning | None = None, *, is_background: bool = False) -> int:
    """Be the daemon until SIGTERM or SIGINT; without a beginning, as the last time.

    is_background: it logs to a file of its own, which is rotated; else to stderr.
    """
    # A command that only starts and stops daemons does not need all that a daemon needs.
    from muster.app.parts import Muster, clock  # noqa: PLC0415
    from muster.doors.rest.app import rest_app  # noqa: PLC0415
    from muster.doors.rest.serve import serve as answer  # noqa: PLC0415

    ended = _told_to_end()
    os.umask(PRIVATE_UMASK)
    _replace_open_lock(home)
    log_to(home if is_background else None)
    lock = _locked(home)
    mend_modes(made_home(home))
    beginning = beginning or Beginning(settings=read_settings(home))
    settings, rules = beginning.settings, beginning.rules
    site = None if rules is None else site_from(rules)
    muster = Muster(home, settings, site, recovers=beginning.recovers)
    try:
        muster.start()
        # What was loaded lives long: looking through it for garbage would only take time.
        gc.collect()
        gc.freeze()
        gc.set_threshold(NEW_BEFORE_COLLECTION, *RARELY)
        # Who answers requests must not wait long for threads that make lists.
        sys.setswitchinterval(SWITCH_S)
        kubernetes = _kubernetes_door(home, settings, muster)
        if kubernetes is not None:
            muster.accompany(kubernetes.controllers)
            muster.accompany(kubernetes.keeper)
            muster.accompany(kubernetes.job_pods)
            muster.supplies.use(kubernetes.supplies, kubernetes.source_of)
        adopter = _adopter(home, settings, muster)
        if adopter is not None:
            muster.accompany(adopter)
        rest = rest_app(muster.service, clock, kubernetes.entry if kubernetes else None)
        serving = answer(
            rest,
            path=home / SOCKET_NAME,
            tcp=_tcp(settings.listen),
            beside=(kubernetes.beside,) if kubernetes else (),
        )
        keep_settings(home, settings)
        try:
            _wait_for(ended)
        finally:
            serving.close()
            if adopter is not None:
                adopter.close()
    finally:
        muster.close()
        os.close(lock)
    return 0


def _wait_for(ended: Event) -> None:
    # A signal that came to another thread is taken note of when the main thread does something.
    while not ended.wait(LOOK_AT_SIGNALS_S):
        pass


def _told_to_end() -> Event:
    """Is set by SIGTERM and SIGINT. They are not blocked: jobs would inherit that."""
    ended = Event()

    def end(_number: int, _frame: object) -> None:
        ended.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    return ended


def _kubernetes_door(home: Path, settings: Settings, muster: "Muster") -> "KubernetesDoor | None":
    if settings.kubernetes is None:
        return None
    # Only who serves it pays for what it needs.
    from muster.app.kubernetes import kubernetes_door  # noqa: PLC0415

    shared = jobs_home(home, settings)
    return kubernetes_door(home, settings.kubernetes, muster.service, shared)


def _adopter(home: Path, settings: Settings, muster: "Muster") -> "Adopter | None":
    """Only who has such a cluster pays for what it needs."""
    clusters = clusters_of(home, settings)
    if not any(isinstance(each, KubernetesCluster) and each.adopts for each in clusters):
        return None
    from muster.app.adopting import adopter  # noqa: PLC0415

    return adopter(clusters, muster)


def _tcp(listen: Listen | None) -> "Tcp | None":
    from muster.doors.rest.serve import Tcp  # noqa: PLC0415

    if listen is None:
        return None
    return Tcp(host=listen.host, port=listen.port, certificate=listen.tls_cert, key=listen.tls_key)


def _settled(kept: Settings, options: UpOptions) -> Settings:
    """The options given now, and those given before where none is given now."""
    gpus = "+".join(f"{each.count}x{each.model}" for each in options.gpus)
    racks = () if options.pretend is None else racks_from(options.pretend.read_text("utf-8"))
    # Nodes from a file take the place of equal ones, and the other way round.
    is_alike = bool(gpus) or options.nodes is not None
    only = options.only_clusters
    return Settings(
        store=options.store or kept.store,
        nodes=options.nodes or (None if racks else kept.nodes),
        gpus=gpus or (None if racks else kept.gpus),
        racks=racks or (() if is_alike else kept.racks),
        listen=_listen(options.listen) or kept.listen,
        standby_for=kept.standby_for,
        mail_program=_mail_program(options.mail_program) or kept.mail_program,
        kubernetes=_kubernetes(options.kubernetes, kept.kubernetes),
        clusters=kept.clusters,
        only_clusters=kept.only_clusters if only is None else only,
        lease=_lease(options.lease, kept.lease),
    )


def _mail_program(given: str | None) -> str | None:
    if given is None or given == NO_MAIL_PROGRAM or is_program(given):
        return given
    raise BadSettingsError(
        f"--mail-program {given}: no such executable; "
        "write its whole path, or `none` to send no mail"
    )


def _lease(given: str | None, kept: LeaseToLead | None) -> LeaseToLead | None:
    if given is None:
        return kept
    if given == NONE:
        return None
    namespace, _, name = given.rpartition("/")
    path = file_to_use(None, OurPod(environ=os.environ))
    return LeaseToLead(name=name, namespace=namespace, kubeconfig=path)


def _beside(other: Path, home: Path, settings: Settings) -> Settings:
    """The settings of a second Muster for the jobs of another one on this machine."""
    theirs = read_settings(other)
    if theirs.store is None or other == home:
        raise BadSettingsError(
            f"--standby-for {other}: a standby shares a store with another Muster; "
            "start that one with --store postgresql://..."
        )
    return replace(
        settings,
        store=theirs.store,
        nodes=theirs.nodes,
        gpus=theirs.gpus,
        racks=theirs.racks,
        only_clusters=theirs.only_clusters,
        lease=theirs.lease,
        standby_for=theirs.standby_for or str(other),
        mail_program=settings.mail_program or theirs.mail_program,
    )


def _kubernetes(given: str | None, kept: KubernetesListen | None) -> KubernetesListen | None:
    if given is None:
        return kept
    if given == NONE:
        return None
    host, port = _host_and_port(given, "--kubernetes", "127.0.0.1:6443")
    return KubernetesListen(host=host, port=port)


def _host_and_port(given: str, option: str, example: str) -> tuple[str, int]:
    host, _, port = given.rpartition(":")
    if not host or not port.isdigit():
        text = f"{option} {given!r}: write HOST:PORT, such as {example}"
        raise BadSettingsError(text)
    return host.strip("[]"), int(port)


def _listen(options: ListenOptions) -> Listen | None:
    if options.address is None:
        return None
    host, port = _host_and_port(options.address, "--listen", "0.0.0.0:7411")
    return Listen(
        host=host,
        port=port,
        tls_cert=None if options.tls_cert is None else str(options.tls_cert.resolve()),
        tls_key=None if options.tls_key is None else str(options.tls_key.resolve()),
    )


def _started(home: Path, beginning: Beginning) -> int:
    log = home / "logs" / LOG_NAME
    private = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(private, "ab") as out, TemporaryFile() as told:
        written = out.tell()
        told.write(msgspec.json.encode(beginning))
        told.seek(0)
        process = subprocess.Popen(  # noqa: S603 our own program
            [sys.executable, "-m", "muster.app.daemon", str(home), FROM_STDIN],
            stdin=told,
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd="/",
        )
    deadline = time.monotonic() + START_PATIENCE_S
    answers_since: float | None = None
    while time.monotonic() < deadline:
        if process.poll() is not None:
            click.echo(f"Muster could not start; the end of {log} says why:", err=True)
            click.echo(_tail(log, written), err=True)
            return 1
        leads = _leads(home)
        if leads:
            return _welcome(home)
        if leads is not None and _is_standby(answers_since := answers_since or time.monotonic()):
            click.echo(f"Muster stands by: another one leads. State in {home}")
            return 0
        time.sleep(LOOK_AGAIN_S)
    click.echo(f"Muster does not answer yet; see {log}", err=True)
    return 1


def _leads(home: Path) -> bool | None:
    """Does it lead? None as long as it does not answer."""
    try:
        with Client(f"unix:{home / SOCKET_NAME}", door="cli") as client:
            return client.status().leading
    except (UnreachableError, ClientError):
        return None


def _is_standby(answers_since: float) -> bool:
    return time.monotonic() - answers_since > LEAD_PATIENCE_S


def _runs_already(home: Path, options: UpOptions, *, same: bool) -> int:
    """Options of a running Muster change when it starts again, and never without a word."""
    if same:
        click.echo(f"Muster runs already (home {home}). Stop it with: muster down", err=True)
        return _rules_in_force(home, options.site)
    text = (
        f"Muster runs already (home {home}), with other options; those given now were not taken. "
        "Stop it with `muster down`, then give them again; jobs run on meanwhile."
    )
    click.echo(text, err=True)
    return 1


def _rules_in_force(home: Path, file: Path | None) -> int:
    """Are the rules in this file in force? Those of a Muster that has some are not replaced."""
    if file is None:
        return 0
    with Client(f"unix:{home / SOCKET_NAME}", door="cli") as client:
        if site_from(client.site()) == site_from(file.read_text(encoding="utf-8")):
            return 0
    text = (
        f"--site {file} was not applied: this Muster has rules of its own, and runs with them. "
        f"See what would change with `muster apply --dry-run -f {file}`."
    )
    click.echo(text, err=True)
    return 1


def _why_there(options: UpOptions) -> str:
    """Why this folder and no other, and how to choose one."""
    if options.home is not None:
        return "(--home says so)"
    if os.environ.get("MUSTER_HOME"):
        return "(MUSTER_HOME says so)"
    if os.getuid() == 0:
        return "(root's, for all users of this machine; another one: --home or MUSTER_HOME)"
    return "(your own; another one: --home or MUSTER_HOME)"


def _welcome(home: Path) -> int:
    with Client(f"unix:{home / SOCKET_NAME}", door="cli") as client:
        status = client.status()
    nodes = counted(sum(status.nodes.values()), "node")
    pretend = " (pretend)" if status.pretend else ""
    click.echo(f"Muster is up: {nodes}, {counted(status.gpus, 'GPU')}{pretend}; state in {home}")
    if home != own_home().resolve():
        click.echo(f"For other commands to find it: export MUSTER_HOME={home}")
    click.echo("Try: muster submit --gpus 1 -- nvidia-smi    muster ps    muster nodes")
    return 0


def _replace_open_lock(home: Path) -> None:
    """Others may hold a lock that they could once open: begin with a new one.

    A daemon of an earlier version that holds it answers at the socket, and keeps this one away.
    """
    lock = home / LOCK_NAME
    with contextlib.suppress(FileNotFoundError):
        if lock.lstat().st_mode & 0o077:
            lock.unlink()


def _locked(home: Path) -> int:
    """Hold the folder for this process; the file says who holds it."""
    file = os.open(home / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
    # A command that only looks holds the lock for a moment; a daemon holds it for good.
    for _ in range(LOCK_TRIES):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode(), 0)
            return file
        time.sleep(LOOK_AGAIN_S)
    os.close(file)
    raise AlreadyRunningError(f"another Muster runs with the state in {home}")


def running_pid(home: Path) -> int | None:
    """The daemon that has this folder, if one is alive."""
    try:
        file = os.open(home / LOCK_NAME, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _daemon(os.pread(file, 32, 0))
    finally:
        os.close(file)
    return None


def _daemon(text: bytes) -> int | None:
    """The process of this number, if it is a daemon of ours: a new one may not have signed yet."""
    number = int(text) if text.isdigit() else 0
    try:
        command = Path(f"/proc/{number}/cmdline").read_bytes()
    except OSError:
        return None
    return number if b"muster" in command else None


def _tail(log: Path, written: int) -> str:
    """The last of what was added since so much was written."""
    added = log.read_bytes()[written:].decode(errors="replace")
    return "\n".join(added.splitlines()[-15:])


def _rules(file: Path) -> str:
    """The text of a configuration file that can be read; raises what is wrong with it."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettingsError(f"--site {file} cannot be read ({error})") from error
    site_from(text)
    return text


def _main(home: Path, *words: str) -> int:
    try:
        if words != (FROM_STDIN,):
            return run(home)
        beginning = msgspec.json.decode(sys.stdin.buffer.read(), type=Beginning)
        return run(home, beginning, is_background=True)
    except MusterError as error:
        # What a person can do something about needs no traceback.
        logging.getLogger("muster").error("%s", error)
        return 1


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1]), *sys.argv[2:]))
