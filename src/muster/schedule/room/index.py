"""Nodes gathered by what they have left, so that a task looks at a few groups, not at all nodes."""

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from muster.model.cluster import AmountReserved, Cluster, Node, NodesReserved, Pool, Taint
from muster.model.placement import Placement
from muster.model.snapshot import Snapshot
from muster.model.value import DeviceId, GpuModel, Instant, JobId, NodeId, PoolName
from muster.schedule.room.profiles import Family, Profile
from muster.schedule.room.score import Score
from muster.schedule.room.slices import DeviceState


class Kind:
    """Nodes that no need can tell apart but by what they have left. Equal kinds are one object."""

    __slots__ = (
        "cluster",
        "families",
        "groups",
        "inside",
        "labels",
        "models",
        "name",
        "pool",
        "private_labels",
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
        self.private_labels: frozenset[str] = frozenset()
        self.taints: tuple[Taint, ...] = node.taints
        self.reserved: tuple[NodesReserved, ...] = ()
        # The names of all reservations that a job is in if it runs here.
        self.inside: frozenset[str] = frozenset()
        self.rooms: dict[NodeId, Room] = {}
        # All its groups, found by what they have left; and by family, in the order they came.
        self.groups: dict[tuple[int, Profile], Group] = {}
        self.families: tuple[list[Group], ...] = tuple([] for _ in Family)
        # How many nodes, up or not, have how much when nobody is there.
        self.sizes: Counter[Size] = Counter()


def models_of(node: Node) -> tuple[GpuModel, ...]:
    """The GPU models of a node, each once."""
    return tuple(sorted({device.model for device in node.devices}))


MOST_LABEL_VALUES = 64


def private_labels(nodes: Iterable[Node]) -> frozenset[str]:
    """Labels with a value for every node, its name say: they do not sort nodes into kinds."""
    values: dict[str, set[str]] = {}
    for node in nodes:
        for key, value in node.labels.items():
            values.setdefault(key, set()).add(value)
    return frozenset(key for key, found in values.items() if len(found) > MOST_LABEL_VALUES)


def kind_name(node: Node, labels: Mapping[str, str], reserved: tuple[NodesReserved, ...]) -> str:
    """What tells kinds apart, as a text."""
    models = ",".join(models_of(node))
    marks = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    taints = ",".join(f"{taint.key}={taint.value}" for taint in node.taints)
    kept = ",".join(each.name for each in reserved)
    return f"{node.cluster}/{node.pool}/{models}/{marks}/{taints}/{kept}"


def reserved_nodes(snapshot: Snapshot) -> dict[NodeId, tuple[NodesReserved, ...]]:
    """Which reservations name which nodes."""
    found: dict[NodeId, tuple[NodesReserved, ...]] = {}
    for each in snapshot.reservations:
        if isinstance(each, NodesReserved):
            for node in each.nodes:
                found[node] = (*found.get(node, ()), each)
    return found


def reserved_pools(snapshot: Snapshot) -> dict[PoolName, frozenset[str]]:
    """Which reservations promise an amount of which pool, by their names."""
    found: dict[PoolName, frozenset[str]] = {}
    for each in snapshot.reservations:
        if isinstance(each, AmountReserved):
            found[each.pool] = found.get(each.pool, frozenset()) | {each.name}
    return found


Size = tuple[int, int, tuple[DeviceState, ...]]
"""CPU milli, memory MiB and devices of an empty node."""


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
    """What one job has on a node, until when at the latest.

    While others still have to leave for a claim, its devices are of no use to anybody.
    """

    placements: tuple[Placement, ...]
    is_exclusive: bool
    is_suspended: bool
    is_unready: bool
    until: Instant


class Room:
    """What one node has left.

    cpu_milli, memory_mib and devices say what is free now; the `open_` values, and the views (one
    profile for each family), say what is free to a job of any length: less than that while part of
    the node is promised.
    """

    __slots__ = (
        "cpu_milli",
        "devices",
        "groups",
        "is_listed",
        "kind",
        "memory_mib",
        "node",
        "open_cpu_milli",
        "open_memory_mib",
        "promise",
        "resting",
        "size",
        "tenants",
        "views",
    )

    def __init__(self, node: Node, kind: Kind) -> None:
        self.node = node
        self.kind = kind
        self.cpu_milli = node.cpu_milli
        self.memory_mib = node.memory_mib
        self.devices: tuple[DeviceState | None, ...] = ()
        self.views: tuple[Profile, ...] = ()
        self.open_cpu_milli = 0
        self.open_memory_mib = 0
        self.is_listed = False
        self.groups: list[Group] = []
        self.promise: Promise | None = None
        self.tenants: dict[JobId, Tenant] = {}
        self.size: Size | None = None
        # What its devices are without tenants, once somebody asked.
        self.resting: dict[DeviceId, DeviceState] | None = None


class Group:
    """Rooms of one kind that look alike to a family, with about the same CPU left.

    They stand by free CPU, then by name. When rooms come to a group that had none, it tells its
    watchers: each is a list of groups that somebody will look through.
    """

    __slots__ = ("end_milli", "kind", "level", "profile", "rooms", "turn", "watchers")

    def __init__(self, kind: Kind, level: int, profile: Profile, end_milli: int) -> None:
        self.kind = kind
        self.level = level
        self.profile = profile
        # All its rooms have less CPU than this.
        self.end_milli = end_milli
        self.rooms: list[tuple[int, str, Room]] = []
        # A complete order that does not hang on which group was met first.
        self.turn = (kind.name, level, profile.name)
        self.watchers: list[list[Group]] = []

    def wake(self) -> None:
        """Rooms came to a group that had none."""
        for watcher in self.watchers:
            watcher.append(self)
        self.watchers.clear()


class Index:
    """Lists rooms in the groups of their kinds.

    `moved` logs by pool the rooms that changed: whoever remembers how far he read it need look at
    the rest only.
    """

    def __init__(self, score: Score) -> None:
        self._score = score
        self.moved: defaultdict[PoolName, list[Room]] = defaultdict(list)

    def put(self, room: Room) -> None:
        """List a room under what it has open now."""
        level = self._score.level(room.open_cpu_milli)
        item = (room.open_cpu_milli, room.node.id, room)
        room.groups = [self._group(room.kind, level, view) for view in room.views]
        for group in room.groups:
            if not group.rooms and group.watchers:
                group.wake()
            insort(group.rooms, item)
        room.is_listed = True
        self.moved[room.node.pool].append(room)

    def remove(self, room: Room) -> None:
        """Take a room off the lists, if it is on them."""
        if not room.is_listed:
            return
        item = (room.open_cpu_milli, room.node.id)
        for group in room.groups:
            rooms = group.rooms
            del rooms[bisect_left(rooms, item)]
        room.is_listed = False
        self.moved[room.node.pool].append(room)

    def _group(self, kind: Kind, level: int, profile: Profile) -> Group:
        group = kind.groups.get((level, profile))
        if group is None:
            _, end_milli = self._score.reach(level)
            group = kind.groups[level, profile] = Group(kind, level, profile, end_milli)
            kind.families[profile.family].append(group)
        return group
