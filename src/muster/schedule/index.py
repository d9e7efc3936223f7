"""Nodes gathered by what they have left, so that a task looks at a few groups, not at all nodes."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from muster.model.cluster import Cluster, Node, NodesReserved, Pool, Taint
from muster.model.placement import Placement
from muster.model.value import GpuModel, Instant, JobId, NodeId
from muster.schedule.profiles import Profile
from muster.schedule.score import Score
from muster.schedule.slices import DeviceState


class Kind:
    """Nodes that no need can tell apart but by what they have left. Equal kinds are one object."""

    __slots__ = (
        "cluster",
        "label_keys",
        "labels",
        "models",
        "name",
        "pool",
        "reserved",
        "rooms",
        "sizes",
        "taints",
    )

    def __init__(self, node: Node, cluster: Cluster, pool: Pool, name: str) -> None:
        self.name = name
        self.cluster = cluster
        self.pool = pool
        self.models: tuple[GpuModel, ...] = models_of(node)
        self.labels: Mapping[str, str] = {}
        self.label_keys: frozenset[str] = frozenset()
        self.taints: tuple[Taint, ...] = node.taints
        self.reserved: tuple[NodesReserved, ...] = ()
        self.rooms: dict[NodeId, Room] = {}
        # How many nodes, up or not, have how much when nobody is there.
        self.sizes: Counter[tuple[int, int, Profile]] = Counter()


def models_of(node: Node) -> tuple[GpuModel, ...]:
    """The GPU models of a node, each once."""
    return tuple(sorted({device.model for device in node.devices}))


class Promise(NamedTuple):
    """Part of a node is due to a job at a later time; jobs that outlive it must leave that part.

    cpu_milli and memory_mib are what will be left beside the promise when it falls due.
    """

    job: JobId
    at: Instant
    devices: frozenset[int]
    cpu_milli: int
    memory_mib: int


class Tenant(NamedTuple):
    """What one job has on a node."""

    placements: tuple[Placement, ...]
    is_exclusive: bool
    is_suspended: bool


class Room:
    """What one node has left.

    cpu_milli, memory_mib and devices say what is free now; the `open_` values say what is free to a
    job of any length: less than that while part of the node is promised.
    """

    __slots__ = (
        "cpu_milli",
        "devices",
        "group",
        "kind",
        "memory_mib",
        "node",
        "open_cpu_milli",
        "open_memory_mib",
        "profile",
        "promise",
        "size",
        "tenants",
    )

    def __init__(self, node: Node, kind: Kind) -> None:
        self.node = node
        self.kind = kind
        self.cpu_milli = node.cpu_milli
        self.memory_mib = node.memory_mib
        self.devices: tuple[DeviceState | None, ...] = ()
        self.profile: Profile | None = None
        self.open_cpu_milli = 0
        self.open_memory_mib = 0
        self.group: Group | None = None
        self.promise: Promise | None = None
        self.tenants: dict[JobId, Tenant] = {}
        self.size: tuple[int, int, Profile] | None = None


class Group:
    """Rooms of one kind with equal devices and about the same CPU left, by free CPU, then by name."""

    __slots__ = ("kind", "level", "name", "profile", "rooms")

    def __init__(self, kind: Kind, level: int, profile: Profile) -> None:
        self.kind = kind
        self.level = level
        self.profile = profile
        self.name = f"{kind.name}/{level:03d}/{profile.name}"
        self.rooms: list[tuple[int, str, Room]] = []


class Index:
    """All groups. `born` logs groups that came to have rooms, `moved` the rooms that changed:

    whoever remembers how far he read needs to look at the rest only.
    """

    def __init__(self, score: Score) -> None:
        self._score = score
        self._groups: dict[tuple[Kind, int, Profile], Group] = {}
        self.born: list[Group] = []
        self.moved: list[Room] = []

    def put(self, room: Room, profile: Profile) -> None:
        """List a room under what it has open now."""
        group = self._group(room.kind, self._score.level(room.open_cpu_milli), profile)
        if not group.rooms:
            self.born.append(group)
        insort(group.rooms, (room.open_cpu_milli, room.node.id, room))
        room.group = group
        self.moved.append(room)

    def remove(self, room: Room) -> None:
        """Take a room off the lists, if it is on one."""
        if room.group is None:
            return
        rooms = room.group.rooms
        del rooms[bisect_left(rooms, (room.open_cpu_milli, room.node.id))]
        room.group = None
        self.moved.append(room)

    def _group(self, kind: Kind, level: int, profile: Profile) -> Group:
        key = (kind, level, profile)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(kind, level, profile)
        return group
