"""What the commands look at: the machines, and everything that rows of a list have in common."""

import grp
import pwd
from collections.abc import Mapping
from datetime import tzinfo
from functools import lru_cache

from muster.doors.slurm.call import Call, Door
from muster.doors.slurm.gres import type_of
from muster.model.cluster import Node, Pool
from muster.model.placement import Allocation
from muster.model.site import Site
from muster.model.value import GpuModel, Instant, JobId, NodeId, PoolName, Value


class Machines(Value):
    """The nodes as a request needs to know them."""

    nodes: Mapping[NodeId, Node]
    models: tuple[GpuModel, ...]
    labels: tuple[Mapping[str, str], ...]
    most_cpus: int
    most_gpus: int


class Memory:
    """Keeps what is worked out from the nodes until they change."""

    def __init__(self) -> None:
        self._machines: Machines | None = None

    def machines(self, nodes: Mapping[NodeId, Node]) -> Machines:
        known = self._machines
        if known is None or known.nodes is not nodes:
            known = self._machines = machines_of(nodes)
        return known


def machines_of(nodes: Mapping[NodeId, Node]) -> Machines:
    labels = {tuple(sorted(node.labels.items())) for node in nodes.values()}
    return Machines(
        nodes=nodes,
        models=tuple(sorted({each.model for node in nodes.values() for each in node.devices})),
        labels=tuple(dict(each) for each in sorted(labels)),
        most_cpus=max((node.cpu_milli // 1_000 for node in nodes.values()), default=1),
        most_gpus=max((len(node.devices) for node in nodes.values()), default=0),
    )


class Scene:
    """One moment, as one user sees it: shared by all rows of an answer."""

    def __init__(self, call: Call, door: Door) -> None:
        snapshot = door.looking.snapshot()
        self.now: Instant = door.now
        self.zone: tzinfo | None = call.zone
        self.time_form = call.env.get("SLURM_TIME_FORMAT", "")
        self.site: Site = door.looking.site()
        self.nodes: Mapping[NodeId, Node] = snapshot.nodes
        self.allocations: Mapping[JobId, Allocation] = snapshot.allocations
        self.pools: Mapping[PoolName, Pool] = snapshot.pools
        self.clusters = tuple(sorted(snapshot.clusters))
        self.convert = True
        self._models: tuple[GpuModel, ...] | None = None

    @property
    def default_pool(self) -> PoolName:
        """Slurm's default partition: ours have none, so that the first one stands for it."""
        return min(self.pools, default=PoolName("local"))

    @property
    def cluster(self) -> str:
        return self.clusters[0] if self.clusters else "muster"

    def gpu_type(self, model: GpuModel) -> str:
        """How Slurm users name this model."""
        if self._models is None:
            self._models = machines_of(self.nodes).models
        return type_of(model, self._models)


@lru_cache(maxsize=4_096)
def uid_of(user: str) -> int:
    """By the machine's list of users; a user without a name has their number as name."""
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return int(user) if user.isdigit() else 65_534


@lru_cache(maxsize=4_096)
def user_of(name_or_uid: str) -> str:
    """The name that is meant by a name or a number."""
    if not name_or_uid.isdigit():
        return name_or_uid
    try:
        return pwd.getpwuid(int(name_or_uid)).pw_name
    except KeyError:
        return name_or_uid


@lru_cache(maxsize=4_096)
def group_of(user: str) -> tuple[str, int]:
    """The user's own group: its name and number."""
    try:
        gid = pwd.getpwnam(user).pw_gid
        return grp.getgrgid(gid).gr_name, gid
    except KeyError:
        return user, uid_of(user)
