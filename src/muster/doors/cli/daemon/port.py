"""What the command line asks of the program that starts and stops Muster on this machine.

The composition root implements it: doors do not know how the parts are put together.
"""

from enum import StrEnum
from pathlib import Path
from typing import Protocol

from muster.model.value import Value


class PretendGpus(Value):
    """So many GPUs of this model for each pretend node: `4xA100-40GB`."""

    count: int
    model: str


class ListenOptions(Value):
    """Where to answer besides the unix socket: `0.0.0.0:7411`, say, with the files of TLS."""

    address: str | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None


class UpOptions(Value):
    """How to start. What is None is as it was, or as it is by default.

    nodes, gpus: pretend nodes in place of this machine; pretend: a file of them.
    site: a configuration file to apply when there is none yet.
    store: where the state is kept, `postgresql://...`; SQLite in the home folder without it.
    standby_for: the state folder of a Muster on this machine whose jobs this one would take over.
    mail_program: what sends mail, by its whole path; `none` to send none.
    kubernetes: where to serve the Kubernetes API, `127.0.0.1:6443`; `none` to serve it no more.
    recover: take over jobs that run and that the database does not know.
    only_clusters: no jobs on this machine, only on clusters that were added.
    lease: `[NAMESPACE/]NAME` of the Lease that who leads must hold; `none`: no more.
    foreground: stay in the foreground until it is ended.
    """

    home: Path | None = None
    nodes: int | None = None
    gpus: tuple[PretendGpus, ...] = ()
    pretend: Path | None = None
    listen: ListenOptions = ListenOptions()
    site: Path | None = None
    store: str | None = None
    standby_for: Path | None = None
    mail_program: str | None = None
    kubernetes: str | None = None
    recover: bool = False
    only_clusters: bool | None = None
    lease: str | None = None
    foreground: bool = False


class DownOptions(Value):
    """How to stop. patience_s: how long to wait for the end before saying that it failed."""

    home: Path | None = None
    patience_s: int = 30


class ServeOptions(Value):
    """Answer at the doors only, with the store of a controller that runs elsewhere."""

    home: Path | None = None
    listen: ListenOptions = ListenOptions()
    store: str | None = None
    kubernetes: str | None = None


class BackupOptions(Value):
    """Into which new file."""

    file: Path
    home: Path | None = None


class RestoreOptions(Value):
    """From which backup."""

    file: Path
    home: Path | None = None


class AddClusterOptions(Value):
    """A Slurm cluster to use besides this machine.

    rest: the address of its slurmrestd; token_file, token_command: where the JWT for it is.
    conf: its slurm.conf; commands: the folder of its commands. delegate: Slurm chooses the nodes.
    models: which GPUs the types of its gres are, by type. accounts, qualities: for queues and those
    below them, by queue.
    prefix: what our names of its nodes and pools begin with.
    """

    name: str
    rest: str | None = None
    token_file: Path | None = None
    token_command: str | None = None
    conf: str | None = None
    commands: str | None = None
    delegate: bool = False
    partitions: tuple[str, ...] = ()
    account: str | None = None
    accounts: tuple[tuple[str, str], ...] = ()
    qos: str | None = None
    qualities: tuple[tuple[str, str], ...] = ()
    containers: str = "none"
    models: tuple[tuple[str, str], ...] = ()
    prefix: str | None = None
    home: Path | None = None


class AddKubernetesOptions(Value):
    """A Kubernetes cluster to use besides this machine.

    namespaces, images: for queues and those below them, by queue. mounts: `PATH` or `CLAIM:PATH`.
    models: which GPUs the products of its labels are. levels: labels of places, the widest first.
    adopts: namespaces, and the `QUEUE` or `QUEUE:USER` of the pods that users make there.
    """

    name: str
    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    namespaces: tuple[tuple[str, str], ...] = ()
    image: str | None = None
    images: tuple[tuple[str, str], ...] = ()
    mounts: tuple[str, ...] = ()
    pull_secret: str | None = None
    account: str | None = None
    models: tuple[tuple[str, str], ...] = ()
    levels: tuple[str, ...] = ()
    adopts: tuple[tuple[str, str], ...] = ()
    home: Path | None = None


class RemoveClusterOptions(Value):
    """Which cluster."""

    name: str
    home: Path | None = None


class ClustersOptions(Value):
    """Of which installation."""

    home: Path | None = None


class DoctorOptions(Value):
    """Which installation to look at."""

    home: Path | None = None


class Level(StrEnum):
    """How well it stands: FAIL keeps jobs from running, WARN only some of them."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class ExtenderOptions(Value):
    """How `muster extender` finds its cluster, and where it answers."""

    kubeconfig: Path | None
    context: str
    listen: str


class Check(Value):
    """One thing that was looked at. advice: what to do, where it is not ok."""

    name: str
    level: Level
    text: str
    advice: str = ""


class DoctorReport(Value):
    """What the installation knows of itself, without asking the server.

    home: the state folder that is meant, so that the command can look into it.
    store: where the state is kept, for people.
    """

    home: Path
    store: str
    checks: tuple[Check, ...] = ()


class Daemon(Protocol):
    """Starts, stops and knows the installation on this machine. Numbers are exit codes."""

    def up(self, options: UpOptions) -> int: ...

    def down(self, options: DownOptions) -> int: ...

    def serve(self, options: ServeOptions) -> int: ...

    def backup(self, options: BackupOptions) -> int: ...

    def restore(self, options: RestoreOptions) -> int: ...

    def add_cluster(self, options: AddClusterOptions) -> int: ...

    def add_kubernetes(self, options: AddKubernetesOptions) -> int: ...

    def remove_cluster(self, options: RemoveClusterOptions) -> int: ...

    def clusters(self, options: ClustersOptions) -> int: ...

    def extender(self, options: ExtenderOptions) -> int: ...

    def doctor_report(self, options: DoctorOptions) -> DoctorReport: ...
