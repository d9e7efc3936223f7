"""How one installation runs: where its state is, what it pretends, where it answers."""

import contextlib
import os
import pwd
import stat
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from muster.model.errors import MusterError
from muster.model.rack import Rack
from muster.model.value import Value

SETTINGS_NAME = "settings.json"

PRIVATE_UMASK = 0o077
"""What this installation makes is its own; what others need is opened to them by name."""

SHARED_FOLDERS = frozenset({"spool", "mps"})
"""Where users' processes find what is theirs; those who make that give each thing its rights."""

PODS_FOLDER = "pods"
"""Where each pod has a folder that only its user may enter; in it are modes of its containers."""

_MOST_LEVELS = 16
"""Nothing of ours lies deeper in the state folder."""

PASSAGE = 0o711 if os.getuid() == 0 else 0o700
"""Of folders that others pass to reach a socket: they cannot list them. Only root serves others."""

NO_MAIL_PROGRAM = "none"

USUAL_MAIL_PROGRAMS = ("/usr/bin/mail", "/bin/mail", "/usr/sbin/sendmail")
"""Where programs that send mail usually are; the first that is there is used."""


class BadSettingsError(MusterError):
    """The settings cannot be read, or do not go together."""


class StateFolderError(MusterError):
    """The administrator: the state folder cannot be written; nothing was changed."""


class Listen(Value):
    """Where to answer besides the unix socket; TLS files unless it is this machine alone."""

    host: str
    port: int
    tls_cert: str | None = None
    tls_key: str | None = None


class KubernetesListen(Value):
    """Where the Kubernetes API answers. Its certificate is of a CA of our own."""

    host: str
    port: int


class SlurmCluster(Value, tag="slurm"):
    """A Slurm cluster whose nodes are used as well: `muster cluster add`.

    rest: where its slurmrestd answers; its commands are used then only where conf or commands name
    them, for what slurmrestd cannot do. token_file, token_command: what holds or prints its JWT.
    conf: its slurm.conf; commands: the folder of its commands; both as the PATH has them if empty.
    delegate: Slurm chooses nodes, because others use the cluster too.
    partitions: those that may be used, all if none is named. containers: what runs images there.
    account, qos: in whose name jobs are there, each user's own if empty; accounts, qualities: the
    same for queues and all below them.
    models: which GPUs the types of its gres are, such as a100: A100-80GB.
    prefix: what our names of its nodes and pools begin with, before its own.
    """

    name: str
    rest: str = ""
    token_file: str = ""
    token_command: str = ""
    conf: str = ""
    commands: str = ""
    delegate: bool = False
    partitions: tuple[str, ...] = ()
    account: str = ""
    accounts: Mapping[str, str] = {}
    qos: str = ""
    qualities: Mapping[str, str] = {}
    containers: str = "none"
    models: Mapping[str, str] = {}
    prefix: str = ""
    order: int = 1


class KubernetesCluster(Value, tag="kubernetes"):
    """A Kubernetes cluster whose nodes are used as well: `muster cluster add --kubernetes`.

    kubeconfig: the file that says where it is and who we are there; context: of those in it.
    namespace: where pods of jobs are; namespaces: for queues and all below them.
    image: in which jobs run that name none; images: for queues and all below them.
    mounts: `PATH` of every node, or `CLAIM:PATH`, which all jobs find at that path.
    pull_secret, account: of the namespace. models: which GPUs the products of its labels are.
    levels: the labels that say where a node is, the widest first.
    adopts: by namespace, `QUEUE` or `QUEUE:USER` of the jobs that its users' pods are.
    """

    name: str
    kubeconfig: str
    context: str = ""
    namespace: str = "default"
    namespaces: Mapping[str, str] = {}
    image: str = ""
    images: Mapping[str, str] = {}
    mounts: tuple[str, ...] = ()
    pull_secret: str = ""
    account: str = ""
    models: Mapping[str, str] = {}
    levels: tuple[str, ...] = ()
    adopts: Mapping[str, str] = {}
    order: int = 1


OtherCluster = SlurmCluster | KubernetesCluster
"""A cluster that is used besides this machine."""


class LeaseToLead(Value, omit_defaults=True):
    """The Lease of a Kubernetes cluster by which a process leads: `muster up --lease`.

    namespace: else that of the kubeconfig, or of our pod. kubeconfig: that pod's account if empty.
    """

    name: str
    namespace: str = ""
    kubeconfig: str = ""
    context: str = ""


class Settings(Value):
    """The options of `muster up`; they are kept, so that the next `muster up` needs none.

    gpus, nodes: pretend hardware in place of this machine's (`4xA100-40GB`); racks: the same, of
    several kinds.
    doors_only: answer, but never lead: a controller elsewhere uses the same store.
    standby_for: the state folder of another Muster on this machine, with the same store: the leader
    runs the jobs from there.
    mail_program: what sends mail, or `none`; by default one that the machine has.
    kubernetes: where the Kubernetes API is served; None: it is not.
    clusters: where jobs run besides this machine.
    only_clusters: jobs run there alone, and none on this machine.
    lease: what a process must hold to lead, besides the store's own lock.
    """

    store: str | None = None
    nodes: int | None = None
    gpus: str | None = None
    racks: tuple[Rack, ...] = ()
    listen: Listen | None = None
    doors_only: bool = False
    standby_for: str | None = None
    mail_program: str | None = None
    kubernetes: KubernetesListen | None = None
    clusters: tuple[OtherCluster, ...] = ()
    only_clusters: bool = False
    lease: LeaseToLead | None = None


def made_home(home: Path) -> Path:
    """The folder, made if it is missing; others may pass through to the socket, not look around."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    home.chmod(PASSAGE)
    logs = home / "logs"
    logs.mkdir(exist_ok=True, mode=0o700)
    logs.chmod(0o700)
    return home


def mend_modes(home: Path) -> None:
    """Take from others what an earlier version, or a person, left open to them in the folder.

    Folders inside the shared ones are left to those who make them; those of pods are closed, and
    what is in them is left to their containers. No link is followed, whoever changes the folder
    meanwhile, and what lies deeper than anything of ours is behind folders that are closed now.
    """
    opened = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in os.listdir(opened):
            is_shared = name in SHARED_FOLDERS
            most = PASSAGE if is_shared or name == PODS_FOLDER else 0o700
            levels = 1 if is_shared or name == PODS_FOLDER else _MOST_LEVELS
            _narrow(opened, name, most, levels=levels, closes=not is_shared)
    finally:
        os.close(opened)


def _narrow(above: int, name: str, most: int, *, levels: int, closes: bool = True) -> None:
    """Leave no more than these rights, and so on below; sockets have what their servers gave them.

    closes: the folders in it as well, and not only its files.
    """
    # It may go while we look, or be what root alone may open: there is nothing to mend then.
    with contextlib.suppress(FileNotFoundError, PermissionError):
        opened = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=above)
        try:
            mode = os.fstat(opened).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                return
            # The very file that was looked at, whatever has its name by now.
            os.chmod(f"/proc/self/fd/{opened}", stat.S_IMODE(mode) & most)
            if stat.S_ISDIR(mode) and levels > 0:
                _narrow_below(opened, levels=levels, closes=closes)
        finally:
            os.close(opened)


def _narrow_below(folder: int, *, levels: int, closes: bool) -> None:
    inside = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
    try:
        for name in os.listdir(inside):
            is_folder = stat.S_ISDIR(os.stat(name, dir_fd=inside, follow_symlinks=False).st_mode)
            if closes or not is_folder:
                _narrow(inside, name, 0o700, levels=levels - 1, closes=closes)
    finally:
        os.close(inside)


def read_settings(home: Path) -> Settings:
    """What was kept; the defaults when nothing was."""
    try:
        return msgspec.json.decode((home / SETTINGS_NAME).read_bytes(), type=Settings)
    except FileNotFoundError:
        return Settings()
    except msgspec.DecodeError as error:
        text = f"{home / SETTINGS_NAME} cannot be read ({error}); mend or remove it"
        raise BadSettingsError(text) from error


def keep_settings(home: Path, settings: Settings) -> None:
    """Write them whole, or leave the old ones."""
    keep_file(home / SETTINGS_NAME, msgspec.json.format(msgspec.json.encode(settings)))


def keep_file(path: Path, content: bytes) -> None:
    """Write a file of the state folder whole, or leave the old one."""
    new = path.with_name(f".{path.name}")
    try:
        new.unlink(missing_ok=True)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        new.replace(path)
    except OSError as error:
        text = f"cannot write {path} ({error.strerror}); make room there, or see who may write"
        raise StateFolderError(text) from error


@contextmanager
def state_folder(home: Path) -> Generator[None]:
    """What cannot be used in the folder meanwhile is told with whose it is and what to do."""
    try:
        yield
    except PermissionError as error:
        text = (
            f"you may not use the state folder {home}{_owner(home)}; run this as that user, "
            "or name a folder of your own with --home or MUSTER_HOME"
        )
        raise StateFolderError(text) from error
    except OSError as error:
        text = f"{home} cannot be a state folder ({error.strerror}); name another with --home"
        raise StateFolderError(text) from error


def _owner(home: Path) -> str:
    """Whose the folder is, or the nearest one above it that can be seen."""
    for each in (home, *home.parents):
        try:
            return f" ({each} belongs to {pwd.getpwuid(each.stat().st_uid).pw_name})"
        except KeyError:
            return f" ({each} belongs to uid {each.stat().st_uid})"
        except OSError:
            continue
    return ""


def jobs_home(home: Path, settings: Settings) -> Path:
    """The folder with the spool and what else is kept about this machine's jobs."""
    return home if settings.standby_for is None else Path(settings.standby_for)


def clusters_of(home: Path, settings: Settings) -> tuple[OtherCluster, ...]:
    """Where jobs run besides this machine. A standby takes over those of the other one."""
    jobs = jobs_home(home, settings)
    return settings.clusters if jobs == home else read_settings(jobs).clusters


def store_url(home: Path, settings: Settings) -> str:
    """The store's address: SQLite in the state folder by default."""
    return settings.store or f"sqlite:///{home / 'muster.db'}"


def sqlite_file(home: Path, settings: Settings) -> Path | None:
    """The database file; None where the store is elsewhere."""
    scheme, _, rest = store_url(home, settings).partition("sqlite:///")
    return None if scheme else Path(rest)


def mail_program(settings: Settings) -> str | None:
    """What sends mail, if anything does."""
    named = settings.mail_program
    if named is not None:
        return None if named == NO_MAIL_PROGRAM else named
    return next((each for each in USUAL_MAIL_PROGRAMS if is_program(each)), None)


def is_program(path: str) -> bool:
    """Is there a program of this whole name that we may run?"""
    return path.startswith("/") and Path(path).is_file() and os.access(path, os.X_OK)
