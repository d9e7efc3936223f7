"""A pod: containers that run beside each other and after each other, as one attempt of a job.

Backends read this, as they read `launch`; the planner never does. Whatever is secret is only named
here: what ConfigMaps and Secrets hold is supplied when the attempt runs.
"""

from enum import StrEnum

from muster.model.resources import Resources
from muster.model.value import Value


class Stage(StrEnum):
    """When a container runs: alone and before others, from then on beside them, or after those."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


class Restart(StrEnum):
    """What becomes of a container that ended."""

    ALWAYS = "always"
    ON_FAILURE = "on_failure"
    NEVER = "never"


class Pull(StrEnum):
    """When an image is fetched."""

    ALWAYS = "always"
    IF_MISSING = "if_missing"
    NEVER = "never"


class SourceKind(StrEnum):
    """What holds keys and values."""

    CONFIG_MAP = "configmap"
    SECRET = "secret"  # noqa: S105 -- what holds one


class Text(Value, tag="text"):
    """A value that is known when the pod is made."""

    value: str


class KeyOf(Value, tag="key"):
    """The value of one key of a source; optional: nothing is missing where it is not there."""

    kind: SourceKind
    name: str
    key: str
    optional: bool = False


class OfNode(Value, tag="node"):
    """Something of the node that it runs on: `name`, `ip`, `cpu`, `memory`, or its own `pod_ip`.

    divisor: for amounts, in thousandths of a CPU or in bytes.
    """

    what: str
    divisor: int = 1


Said = Text | KeyOf | OfNode


class Variable(Value):
    """One variable; `$(NAME)` in a text stands for one before it."""

    name: str
    value: Said


class VariablesOf(Value):
    """All keys of a source as variables, with a prefix."""

    kind: SourceKind
    name: str
    prefix: str = ""
    optional: bool = False


class FileOf(Value):
    """One file of a volume. mode: None for the volume's own."""

    path: str
    value: Said
    mode: int | None = None


class KeysAsFiles(Value, tag="keys"):
    """Keys of a source as files; all of them where none is named."""

    kind: SourceKind
    name: str
    files: tuple[FileOf, ...] = ()
    optional: bool = False


class TextsAsFiles(Value, tag="texts"):
    """Texts as files."""

    files: tuple[FileOf, ...]


class TokenFile(Value, tag="token"):
    """A token of the pod's service account, renewed before it ends. audience: "" for this API."""

    path: str
    audience: str = ""
    seconds: int = 3_600


class EmptyFolder(Value, tag="empty", gc=False):
    """A folder that begins empty and ends with the pod. in_memory: it is no disk's."""

    in_memory: bool = False


class HostFolder(Value, tag="host", gc=False):
    """A path of the machine. must_be: what is there, in Kubernetes' words; "" for anything."""

    path: str
    must_be: str = ""


class Files(Value, tag="files"):
    """Files that are written before a container starts, and again when their sources change."""

    sources: tuple[KeysAsFiles | TextsAsFiles | TokenFile, ...]
    mode: int = 0o644


class Volume(Value):
    """What containers can mount, by its name."""

    name: str
    source: EmptyFolder | HostFolder | Files


class Mount(Value, gc=False):
    """Where a container finds a volume, or a part of it. expands: the part names variables."""

    volume: str
    path: str
    read_only: bool = False
    part: str = ""
    expands: bool = False


class Exec(Value, tag="exec"):
    """Run a command in the container."""

    argv: tuple[str, ...]


class HttpGet(Value, tag="http"):
    """Ask a server. host: "" for the pod's own address."""

    port: int
    path: str = "/"
    host: str = ""
    secure: bool = False
    headers: tuple[tuple[str, str], ...] = ()


class TcpConnect(Value, tag="tcp", gc=False):
    """Connect to a port."""

    port: int
    host: str = ""


class GrpcHealth(Value, tag="grpc", gc=False):
    """Ask a server of gRPC on a port how a service of it is; "" asks for the server itself."""

    port: int
    service: str = ""


class Sleep(Value, tag="sleep", gc=False):
    """Wait."""

    seconds: int


class CheckpointSeen(Value, tag="checkpoint", gc=False):
    """Is there a checkpoint that is newer than the start of the container?"""


class Probe(Value):
    """A question to a container, asked again and again.

    grace_s: how long it may take to stop when the answer was no too often; None: as ever.
    """

    action: Exec | HttpGet | TcpConnect | GrpcHealth | CheckpointSeen
    delay_s: int = 0
    period_s: int = 10
    timeout_s: int = 1
    successes: int = 1
    failures: int = 3
    grace_s: int | None = None


class Container(Value):
    """One container. entrypoint: None for the image's own.

    cpu_milli, memory_mib: the most that it may use; 0 where only the pod's own limits count.
    message_path: a file whose text is its last word. message_of_log: the end of its log is, where
    there is none and it failed.
    stdin: those who attach can type; stdin_once: only the first of them. tty: on a terminal.
    not_root: it is refused where it would run as root.
    user, group: who its processes are, where their person may choose; others than root may not.
    asks: its part of what the pod asks for, for engines that give room to containers.
    """

    name: str
    image: str
    stage: Stage = Stage.MAIN
    entrypoint: tuple[str, ...] | None = None
    args: tuple[str, ...] = ()
    env: tuple[Variable, ...] = ()
    env_of: tuple[VariablesOf, ...] = ()
    workdir: str | None = None
    mounts: tuple[Mount, ...] = ()
    pull: Pull = Pull.IF_MISSING
    cpu_milli: int = 0
    memory_mib: int = 0
    after_start: Exec | HttpGet | TcpConnect | Sleep | None = None
    before_stop: Exec | HttpGet | TcpConnect | Sleep | None = None
    stop_signal: str | None = None
    startup: Probe | None = None
    liveness: Probe | None = None
    readiness: Probe | None = None
    message_path: str = "/dev/termination-log"
    message_of_log: bool = False
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    read_only: bool = False
    not_root: bool = False
    user: int | None = None
    group: int | None = None
    asks: Resources = Resources()


class PodLaunch(Value):
    """All that runs in a pod, in the order of the manifest.

    grace_s: how long it may take to stop. account: its service account.
    aliases: further names of addresses. annotations and labels are in the files that show them.
    groups: further groups of its processes; volume_group: whose the files of its volumes are too.
    Both only count for root, who may choose.
    """

    namespace: str
    name: str
    uid: str
    containers: tuple[Container, ...]
    volumes: tuple[Volume, ...] = ()
    restart: Restart = Restart.ALWAYS
    grace_s: int = 30
    account: str = "default"
    hostname: str = ""
    aliases: tuple[tuple[str, str], ...] = ()
    groups: tuple[int, ...] = ()
    volume_group: int | None = None


class PodGang(Value):
    """Pods that are the tasks of one job: one for each task, in the order of ranks.

    leader: the rank whose end is the job's; None: one pod that fails, and the job has failed.
    """

    pods: tuple[PodLaunch, ...]
    leader: int | None = None


class Phase(StrEnum):
    """Where a container is."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"


class ContainerRun(Value, gc=False):
    """One run of a container that is over. signal: 0 where it ended by itself. id: the tool's."""

    began_at: int
    ended_at: int
    code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    id: str = ""


class ContainerStatus(Value):
    """Where one container of a running attempt is, as the backend sees it.

    reason, message: why it waits. last: its run before this one.
    id, image_id: by which the container tool knows it and its image.
    started: its startup probe, if it has one, has said yes. at: when it came to be so.
    """

    name: str
    phase: Phase = Phase.WAITING
    at: int = 0
    restarts: int = 0
    ready: bool = False
    started: bool = False
    reason: str = ""
    message: str = ""
    ended: ContainerRun | None = None
    last: ContainerRun | None = None
    id: str = ""
    image: str = ""
    image_id: str = ""


class PodNote(Value):
    """Something that happened in a pod, for its user: what Kubernetes would make an event of.

    count, first_at: how often, and since when, if it happened before.
    """

    at: int
    reason: str
    text: str
    container: str = ""
    warning: bool = False
    count: int = 1
    first_at: int = 0


class PodStatus(Value):
    """How a pod is: its containers, and what happened in it lately.

    over: nothing of it runs any more, and nothing will be started.
    ip, host_ip: its own address and that of its node, where they are not this machine's.
    """

    containers: tuple[ContainerStatus, ...] = ()
    notes: tuple[PodNote, ...] = ()
    ip: str = ""
    host_ip: str = ""
    over: bool = False

    def of(self, name: str) -> ContainerStatus | None:
        """The container of this name."""
        return next((each for each in self.containers if each.name == name), None)
