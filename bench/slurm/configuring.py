"""The configuration of a laboratory Slurm as text: pure, and with the reason for every choice."""

from collections.abc import Mapping

from muster.model.value import Value

CPUS_PER_NODE = 64
MEMORY_MIB_PER_NODE = 512_000

BEST_PARAMETERS = "batch_sched_delay=0"
"""By default Slurm gathers submissions for 3 s before it schedules, which halves what it completes.

Beyond that nothing helped: shorter scheduling and backfill intervals, deeper queues and no
accounting stayed within the noise; `defer` and proctrack/pgid made it half as fast.
"""


class Ports(Value):
    """Where the daemons listen on loopback; one of `slurmd` for each node."""

    slurmctld: int
    slurmdbd: int
    mariadb: int
    slurmd: tuple[int, ...]


class Look(Value):
    """How the cluster is called, and what its nodes say of themselves.

    settings: lines of slurm.conf that are to be otherwise. gres: what each node has besides its
    GPUs, by type: `gpu:a100_1g.5gb` or `shard`. has_switches: each node is below one of its own.
    has_tokens: who shows a token is believed, besides whom munge knows.
    """

    cluster: str = "lab"
    partition: str = "gpu"
    node: str = "node"
    shape: str = (
        f"CPUs={CPUS_PER_NODE} Boards=1 SocketsPerBoard=2 CoresPerSocket={CPUS_PER_NODE // 2}"
        f" ThreadsPerCore=1 RealMemory={MEMORY_MIB_PER_NODE}"
    )
    settings: Mapping[str, str | int] = {}
    gres: Mapping[str, int] = {}
    has_switches: bool = False
    has_tokens: bool = False


class Layout(Value):
    """One laboratory: its folder, its machine, its ports."""

    folder: str
    machine: str
    ports: Ports
    gpus_per_node: int
    parameters: str = BEST_PARAMETERS
    look: Look = Look()

    @property
    def munge_socket(self) -> str:
        """Where munged answers."""
        return f"{self.folder}/run/munge.socket"

    @property
    def mysql_socket(self) -> str:
        """Where the database answers."""
        return f"{self.folder}/run/mysql.sock"

    @property
    def rest_socket(self) -> str:
        """Where slurmrestd answers."""
        return f"{self.folder}/rest/socket"

    @property
    def token_key(self) -> str:
        """What tokens are signed with."""
        return f"{self.folder}/etc/jwt.key"

    @property
    def conf(self) -> str:
        """The file that every daemon and client is pointed to."""
        return f"{self.folder}/etc/slurm.conf"

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes."""
        return tuple(f"{self.look.node}{at + 1}" for at in range(len(self.ports.slurmd)))


def slurm_conf(layout: Layout) -> str:
    """slurm.conf. Counters, cgroups and affinity are off: they only cost time here."""
    folder, ports, look = layout.folder, layout.ports, layout.look
    settings = {
        "ClusterName": layout.look.cluster,
        "SlurmctldHost": f"{layout.machine}(127.0.0.1)",
        "SlurmctldPort": ports.slurmctld,
        "SlurmUser": "root",
        "SlurmdUser": "root",
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={layout.munge_socket}",
        **_tokens(layout),
        "CredType": "cred/munge",
        "StateSaveLocation": f"{folder}/state",
        "SlurmdSpoolDir": f"{folder}/spool/%n",
        "SlurmctldPidFile": f"{folder}/run/slurmctld.pid",
        "SlurmdPidFile": f"{folder}/run/slurmd.%n.pid",
        "SlurmctldLogFile": f"{folder}/log/slurmctld.log",
        "SlurmdLogFile": f"{folder}/log/slurmd.%n.log",
        "SlurmctldDebug": "error",
        "SlurmdDebug": "error",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "PropagateResourceLimits": "NONE",
        "MpiDefault": "none",
        "SwitchType": "switch/none",
        "ReturnToService": 2,
        # So that a small machine may claim to be several large ones.
        "SlurmdParameters": "config_overrides",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core",
        "SchedulerType": "sched/backfill",
        "SchedulerParameters": layout.parameters,
        "GresTypes": ",".join(sorted({"gpu", *(each.partition(":")[0] for each in look.gres)})),
        **({"TopologyPlugin": "topology/tree"} if look.has_switches else {}),
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": "127.0.0.1",
        "AccountingStoragePort": ports.slurmdbd,
        # The connection to slurmdbd does not heed AuthInfo.
        "AccountingStoragePass": layout.munge_socket,
        "AccountingStorageTRES": ",".join(
            sorted({"gres/gpu", "gres/gpu:a100", *(f"gres/{each}" for each in look.gres)})
        ),
        "SlurmctldTimeout": 60,
        "SlurmdTimeout": 60,
        "InactiveLimit": 0,
        "MinJobAge": 10,
        "KillWait": 5,
        "Waittime": 0,
        # The defaults (10,000 and 1,001) are too small for what is measured.
        "MaxJobCount": 200_000,
        "MaxArraySize": 100_001,
    }
    lines = [f"{key}={value}" for key, value in {**settings, **layout.look.settings}.items()]
    return "\n".join([*lines, *_node_lines(layout), _partition_line(layout)]) + "\n"


def gres_conf(layout: Layout) -> str:
    """gres.conf: each GPU is a link to /dev/null. A mere count would make the nodes invalid."""
    last = layout.gpus_per_node - 1
    files = f"{folder_of(layout)}/nvidia[0-{last}]"
    names = ",".join(layout.nodes)
    lines = ["AutoDetect=off", f"NodeName={names} Name=gpu Type=a100 File={files}"]
    first = 0
    for word, count in layout.look.gres.items():
        name, _, kind = word.partition(":")
        told = f"Count={count}"
        if kind:
            told = f"Type={kind} File={folder_of(layout)}/mig[{first}-{first + count - 1}]"
            first += count
        lines.append(f"NodeName={names} Name={name} {told}")
    return "\n".join(lines) + "\n"


def folder_of(layout: Layout) -> str:
    """Where its devices are."""
    return f"{layout.folder}/dev"


def topology_conf(layout: Layout) -> str:
    """topology.conf: a switch for each node, and one above them all."""
    leaves = [f"SwitchName=leaf{at} Nodes={node}" for at, node in enumerate(layout.nodes, start=1)]
    return "\n".join([*leaves, f"SwitchName=spine Switches=leaf[1-{len(leaves)}]"]) + "\n"


def slurmdbd_conf(layout: Layout) -> str:
    """slurmdbd.conf; the password guards a database that only this folder's socket leads to."""
    settings = {
        "AuthType": "auth/munge",
        "AuthInfo": layout.munge_socket,
        **_tokens(layout),
        "DbdHost": "localhost",
        "DbdAddr": "127.0.0.1",
        "DbdPort": layout.ports.slurmdbd,
        "SlurmUser": "root",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "127.0.0.1",
        "StoragePort": layout.ports.mariadb,
        "StorageUser": "slurm",
        "StoragePass": "slurm",
        "StorageLoc": "slurm_acct_db",
        "LogFile": f"{layout.folder}/log/slurmdbd.log",
        "PidFile": f"{layout.folder}/run/slurmdbd.pid",
        "DebugLevel": "error",
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def mariadb_options(layout: Layout) -> tuple[str, ...]:
    """As Slurm's own documents advise; a commit is flushed once a second, which is faster."""
    return (
        "--no-defaults",
        "--user=root",
        f"--datadir={layout.folder}/mysql",
        f"--tmpdir={layout.folder}/run",
        f"--socket={layout.mysql_socket}",
        f"--pid-file={layout.folder}/run/mysql.pid",
        f"--port={layout.ports.mariadb}",
        "--bind-address=127.0.0.1",
        "--innodb-buffer-pool-size=512M",
        "--innodb-log-file-size=128M",
        "--innodb-lock-wait-timeout=900",
        "--innodb-flush-log-at-trx-commit=2",
    )


def _tokens(layout: Layout) -> Mapping[str, str]:
    if not layout.look.has_tokens:
        return {}
    return {"AuthAltTypes": "auth/jwt", "AuthAltParameters": f"jwt_key={layout.token_key}"}


def _node_lines(layout: Layout) -> list[str]:
    more = "".join(f",{word}:{count}" for word, count in layout.look.gres.items())
    shape = f"{layout.look.shape} Gres=gpu:a100:{layout.gpus_per_node}{more}"
    return [
        f"NodeName={name} NodeHostname={layout.machine} NodeAddr=127.0.0.1 Port={port} {shape}"
        for name, port in zip(layout.nodes, layout.ports.slurmd, strict=True)
    ]


def _partition_line(layout: Layout) -> str:
    return (
        f"PartitionName={layout.look.partition} Nodes=ALL Default=YES MaxTime=INFINITE"
        " DefaultTime=60 State=UP OverSubscribe=NO"
    )
