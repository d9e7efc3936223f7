"""The machines: clusters, pools of nodes, nodes, and capacity promised for a time."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from muster.model.gpu import Device, Mig, MpsShare, Slice, TimeShare
from muster.model.queue import is_within
from muster.model.resources import Resources
from muster.model.value import (
    ClassName,
    ClusterName,
    Duration,
    Instant,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    Value,
)


class BackendKind(StrEnum):
    """What runs the work of a cluster."""

    LOCAL = "local"
    SLURM = "slurm"
    KUBERNETES = "kubernetes"
    SIMULATED = "simulated"


class Ability(StrEnum):
    """What running a job takes of a cluster beside room; each is a field of `Abilities`."""

    COMMANDS = "commands"
    IMAGES = "images"
    IMAGE_FILES = "image_files"
    PODS = "pods"
    POD_GANGS = "pod_gangs"
    CONTAINERS = "containers"
    VOLUMES = "volumes"
    HOST_PATHS = "host_paths"
    TOKENS = "tokens"
    PROBES = "probes"
    STOP_SIGNALS = "stop_signals"
    CHECKPOINT_PROBES = "checkpoint_probes"
    ENTRYPOINTS = "entrypoints"
    POD_ADDRESSES = "pod_addresses"
    POD_USERS = "pod_users"
    POD_INPUT = "pod_input"
    TERMINALS = "terminals"
    STEPS = "steps"
    ADOPTION = "adoption"


_BRINGS_ITS_OWN = frozenset({Ability.IMAGES, Ability.IMAGE_FILES, Ability.PODS, Ability.ADOPTION})
"""Jobs that take one of these say in what their command runs; all others are plain commands."""


class Abilities(Value, gc=False):
    """What a backend can do, as data: known to the planner, not discovered by failure.

    repartition: it cuts devices into other MIG instances. suspend: it stops attempts in place.
    resize: it changes the number of tasks of a running attempt.
    device_wall: a job can use the devices that it was given and no others, whatever it tries.
    images, image_files: it runs commands in container images of a registry, and in files of them.
    commands: it runs those that name no image. terminals: it connects people to their jobs.
    steps: they start steps in their allocations.
    adoption: it gives nodes to pods that its users made there.
    pods: it runs what came as a pod to our Kubernetes API, of one container with a command and
    variables. All that a pod may have beside that is an ability of its own: pod_gangs (pods that
    are one job), containers (more than one, and those that run first), volumes (empty ones,
    ConfigMaps, Secrets), host_paths, tokens (of service accounts, that the pod asks for), probes
    (hooks too), stop_signals, checkpoint_probes, entrypoints (what an image runs by itself),
    pod_addresses (what a container learns of its node, and further names), pod_users (whose
    processes they are, for those who may choose), pod_input (people type into a container).
    """

    mig: bool = True
    mps: bool = True
    time_share: bool = True
    repartition: bool = True
    suspend: bool = True
    resize: bool = False
    device_wall: bool = True
    images: bool = True
    image_files: bool = True
    commands: bool = True
    pods: bool = True
    pod_gangs: bool = True
    containers: bool = True
    volumes: bool = True
    host_paths: bool = True
    tokens: bool = True
    probes: bool = True
    stop_signals: bool = True
    checkpoint_probes: bool = True
    entrypoints: bool = True
    pod_addresses: bool = True
    pod_users: bool = True
    pod_input: bool = True
    terminals: bool = True
    steps: bool = True
    adoption: bool = False

    def lacking(self, takes: Iterable[Ability]) -> Ability | None:
        """The first thing that running such a job takes and that is not here."""
        wanted = tuple(takes)
        if not _BRINGS_ITS_OWN.intersection(wanted) and not self.commands:
            return Ability.COMMANDS
        return next((each for each in wanted if not getattr(self, each.value)), None)

    def serves(self, part: Slice | None) -> bool:
        """Can tasks have such a part of a GPU here? Whole GPUs they always can."""
        match part:
            case None:
                return True
            case Mig():
                return self.mig
            case MpsShare():
                return self.mps
            case TimeShare():
                return self.time_share


class Cluster(Value):
    """Nodes under one backend. Lower `order` is tried first; unreachable, it starts nothing.

    place: where its attempts are kept, for backends that keep them.
    levels: of its topology, coarsest first, for pools of which the rules name none.
    orphans: what carries our mark there and is no attempt that we know, as the cluster names it.
    """

    name: ClusterName
    backend: BackendKind = BackendKind.SIMULATED
    abilities: Abilities = Abilities()
    order: int = 0
    reachable: bool = True
    place: str = ""
    levels: tuple[str, ...] = ()
    orphans: tuple[str, ...] = ()


class Pool(Value):
    """Nodes of one kind and price inside a cluster.

    `levels` names the entries of `Node.where`, coarsest first: `("zone", "block", "rack")`.
    accepts: may jobs be submitted that name it? starts: do jobs start in it?
    users or groups, queues, classes: who may use it, every list that is not empty; a queue stands
    for those below it too, and a group of the system for who is in it.
    members: those of the groups, as far as they matter; snapshots have them, and rules do not.
    """

    name: PoolName
    cluster: ClusterName
    levels: tuple[str, ...] = ()
    default_time: Duration | None = None
    max_time: Duration | None = None
    spot: bool = False
    gpu_hour_micros: int = 0
    accepts: bool = True
    starts: bool = True
    users: tuple[UserName, ...] = ()
    groups: tuple[str, ...] = ()
    queues: tuple[QueuePath, ...] = ()
    classes: tuple[ClassName, ...] = ()
    members: tuple[UserName, ...] = ()

    @property
    def is_open(self) -> bool:
        """May every user use it?"""
        return not (self.users or self.groups or self.queues or self.classes)

    def lets_in(self, user: UserName, queue: QueuePath, job_class: ClassName) -> bool:
        """May a job of this user, queue and class use it?"""
        return (
            (not (self.users or self.groups) or user in self.users or user in self.members)
            and (not self.queues or any(is_within(queue, each) for each in self.queues))
            and (not self.classes or job_class in self.classes)
        )


class NodeState(StrEnum):
    """UP takes work; DRAINING keeps what runs and takes nothing new; DOWN runs nothing."""

    UP = "up"
    DRAINING = "draining"
    DOWN = "down"


class Taint(Value, gc=False):
    """A mark that keeps off every task that does not tolerate it."""

    key: str
    value: str = ""


class Node(Value):
    """One machine. `where` gives its place, one name for each of its pool's levels.

    reason: why it is not UP, for people; drained_by and drained_at: who said so, and when.
    pretend: it was declared to try things out.
    given_labels, given_taints: those of its labels and taints that somebody gave it; the others
    are its own, and what it says of itself goes before what it was given.
    """

    id: NodeId
    cluster: ClusterName
    pool: PoolName
    cpu_milli: int
    memory_mib: int
    devices: tuple[Device, ...] = ()
    state: NodeState = NodeState.UP
    where: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    reason: str = ""
    pretend: bool = False
    drained_by: UserName | None = None
    drained_at: Instant | None = None
    given_labels: Mapping[str, str] = {}
    given_taints: tuple[Taint, ...] = ()

    @property
    def capacity(self) -> Resources:
        """Everything the node could give if all of it worked."""
        return Resources(
            cpu_milli=self.cpu_milli,
            memory_mib=self.memory_mib,
            gpu_milli=1_000 * len(self.devices),
        )


class Every(StrEnum):
    """How often a reservation comes back; each day of the week, or only some of them."""

    HOURLY = "hourly"
    DAILY = "daily"
    WEEKDAY = "weekday"
    WEEKEND = "weekend"
    WEEKLY = "weekly"


class NodesReserved(Value, tag="nodes"):
    """Whole nodes are kept for a time: for a queue, for users, or for no one (maintenance).

    by_name: only jobs that ask for it by its name may use it. flags: how Slurm users marked it.
    every: it comes back, at the same time of the day in that zone; snapshots have the window that
    is open, or else the next one.
    Jobs that ask for it by its name end with it; where it is flexible, they may also begin before
    it does, and stay.
    """

    name: str
    nodes: tuple[NodeId, ...]
    begins_at: Instant
    ends_at: Instant
    for_queue: QueuePath | None = None
    for_users: tuple[UserName, ...] = ()
    by_name: bool = False
    every: Every | None = None
    zone: str | None = None
    flexible: bool = False
    flags: tuple[str, ...] = ()


class AmountReserved(Value, tag="amount"):
    """An amount of GPU in a pool is promised to a queue or users from `begins_at` to `ends_at`.

    Outsiders whose time would overlap may together take no more than the pool's rest.
    All else is as for nodes.
    """

    name: str
    pool: PoolName
    gpu_milli: int
    begins_at: Instant
    ends_at: Instant
    for_queue: QueuePath | None = None
    for_users: tuple[UserName, ...] = ()
    by_name: bool = False
    every: Every | None = None
    zone: str | None = None
    flexible: bool = False
    flags: tuple[str, ...] = ()


Reservation = NodesReserved | AmountReserved


def is_guest(
    reservation: Reservation, user: UserName, queue: QueuePath, asks_for: str | None
) -> bool:
    """May a job of this user and queue, which asks for a reservation or none, use this one?"""
    if reservation.by_name and asks_for != reservation.name:
        return False
    whose, users = reservation.for_queue, reservation.for_users
    if whose is None and not users:
        return False
    return (whose is None or is_within(queue, whose)) and (not users or user in users)
