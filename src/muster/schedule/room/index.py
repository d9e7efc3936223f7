"""What every node has left, as columns of numbers, so that a task is compared with all at once."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from muster.model.cluster import AmountReserved, Cluster, Node, NodesReserved, Pool, Taint
from muster.model.placement import Placement
from muster.model.snapshot import Snapshot
from muster.model.value import DeviceId, GpuModel, Instant, JobId, NodeId, PoolName
from muster.schedule.room.profiles import Family, Profile
from muster.schedule.room.score import Score
from muster.schedule.room.slices import DeviceState


class NodeKind:
    """Nodes that no need can tell apart but by what they have left. Equal kinds are one object."""

    __slots__ = (
        "cluster",
        "code",
        "inside",
        "labels",
        "models",
        "models_code",
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
        # Its number, and that of its models, in the index.
        self.code = -1
        self.models_code = -1
        # How many nodes, up or not, have how much without tenants.
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

    until: when that job will have left again, as far as is known.
    takes: the CPU milli and memory MiB that it will have here.
    cpu_milli and memory_mib are what will be left beside the promise when it falls due.
    is_firm: only jobs whose limit ends in time may use it before; expectations do not count.
    """

    job: JobId
    at: Instant
    until: Instant
    devices: frozenset[int]
    takes: tuple[int, int]
    cpu_milli: int
    memory_mib: int
    is_firm: bool = False


class Stay(NamedTuple):
    """How long a job stays that begins now: until when it is expected to, and at most."""

    likely: Instant
    at_most: Instant

    def outlives(self, promise: Promise) -> bool:
        """Must it leave to that job what was promised?"""
        return (self.at_most if promise.is_firm else self.likely) > promise.at


FOR_EVER = Stay(likely=Instant(1 << 62), at_most=Instant(1 << 62))
"""Who stays for ever must leave everything that was promised."""

A_MOMENT = Stay(likely=Instant(0), at_most=Instant(0))
"""Who is gone at once need not leave anything that was promised."""


class Tenant(NamedTuple):
    """What one job has on a node, until when at the latest.

    While others still have to leave for a claim, its devices are of no use to any job.
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
        "is_listed",
        "kind",
        "memory_mib",
        "node",
        "open_cpu_milli",
        "open_memory_mib",
        "promises",
        "resting",
        "size",
        "slot",
        "tenants",
        "views",
    )

    def __init__(self, node: Node, kind: NodeKind) -> None:
        self.node = node
        self.kind = kind
        self.cpu_milli = node.cpu_milli
        self.memory_mib = node.memory_mib
        self.devices: tuple[DeviceState | None, ...] = ()
        self.views: tuple[Profile, ...] = ()
        self.open_cpu_milli = 0
        self.open_memory_mib = 0
        self.is_listed = False
        # Its place in the columns of the index.
        self.slot = -1
        # Several jobs may be promised the same one after the other; the first that was given
        # its promise comes first.
        self.promises: tuple[Promise, ...] = ()
        self.tenants: dict[JobId, Tenant] = {}
        self.size: Size | None = None
        # What its devices are without tenants, once that was asked.
        self.resting: dict[DeviceId, DeviceState] | None = None

    def barred(self, stay: Stay) -> frozenset[int]:
        """The places of the devices that a job must leave to others if it stays so long."""
        found = frozenset[int]()
        for promise in self.promises:
            if stay.outlives(promise):
                found |= promise.devices
        return found

    def host_for(self, stay: Stay) -> tuple[int, int]:
        """CPU milli and memory MiB that are free to a job that stays so long."""
        cpu_milli, memory_mib = self.cpu_milli, self.memory_mib
        for promise in self.promises:
            if stay.outlives(promise):
                cpu_milli = min(cpu_milli, promise.cpu_milli)
                memory_mib = min(memory_mib, promise.memory_mib)
        return cpu_milli, memory_mib


Shut = frozenset[NodeKind]
"""Kinds of node that are closed to a job for the time it takes; usually none."""


class NodeView(NamedTuple):
    """All that decides what a node is worth to a family: its devices, and the level of its CPU.

    `models` are those of all its devices, also of those that are taken.
    """

    profile: Profile
    level: int
    models: tuple[GpuModel, ...]


Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
"""A column: one whole number for each slot, or for each view."""

Truths = np.ndarray[tuple[int], np.dtype[np.bool]]

NO_VIEW = 0
"""The number of the view of a slot that may not be used now: no task finds anything there."""

LOG_LENGTH = 1 << 17


class Index:
    """One slot for each node, one column for each thing that searches compare.

    Views have numbers, by family: nodes that look alike to a family have the same number there.
    `log` names the slots that changed, in a ring: a reader that knows how far it read looks at the
    rest only, and at everything if it fell behind by a whole `lap`.
    """

    def __init__(self, score: Score) -> None:
        self._score = score
        self.size = 0
        # A slot without a node still has the one that left it, which is not listed.
        self.rooms: list[Room] = []
        self.cpu_milli = np.zeros(0, np.int64)
        self.memory_mib = np.zeros(0, np.int64)
        self.kinds = np.zeros(0, np.int64)
        self.numbers: tuple[Numbers, ...] = tuple(np.zeros(0, np.int64) for _ in Family)
        self.views: tuple[list[NodeView], ...] = _no_views()
        self.kind_of: list[NodeKind] = []
        # Changes when a slot is given to another node, or a node to another kind.
        self.slots_version = 0
        self.log = np.zeros(LOG_LENGTH, np.int64)
        self.lap = 0
        self.end = 0
        self._free: list[int] = []
        self._models: dict[tuple[GpuModel, ...], int] = {}
        self._order: tuple[int, Numbers] = (-1, np.zeros(0, np.int64))

    def forget_views(self) -> None:
        """Views get other numbers; all rooms must be listed again."""
        self.views = _no_views()

    def enter(self, room: Room) -> None:
        """Give a node a slot."""
        kind = room.kind
        if kind.code < 0:
            kind.code = len(self.kind_of)
            self.kind_of.append(kind)
            kind.models_code = self._models.setdefault(kind.models, len(self._models))
        if self._free:
            room.slot = self._free.pop()
            self.rooms[room.slot] = room
        else:
            room.slot = self.size
            self.rooms.append(room)
            self.size += 1
            self._grow()
        self.kinds[room.slot] = kind.code
        self.slots_version += 1

    def leave(self, room: Room) -> None:
        """Take its slot from a node."""
        self.remove(room)
        self._free.append(room.slot)
        room.slot = -1
        self.slots_version += 1

    def put(self, room: Room) -> None:
        """List a room under what it has open now."""
        slot, cpu_milli, kind = room.slot, room.open_cpu_milli, room.kind
        level = self._score.level(cpu_milli)
        self.cpu_milli[slot] = cpu_milli
        self.memory_mib[slot] = room.open_memory_mib
        key = (level, kind.models_code)
        for profile, numbers in zip(room.views, self.numbers, strict=True):
            number = profile.numbers.get(key)
            numbers[slot] = self._number(profile, kind, level) if number is None else number
        room.is_listed = True
        self._note(slot)

    def remove(self, room: Room) -> None:
        """Take a room off the lists, if it is on them."""
        if not room.is_listed:
            return
        for numbers in self.numbers:
            numbers[room.slot] = NO_VIEW
        room.is_listed = False
        self._note(room.slot)

    def since(self, lap: int, read: int) -> Numbers | None:
        """The slots that changed since a reader was there; None if it has to look at all."""
        if lap == self.lap and self.end - read < self.size:
            return self.log[read : self.end]
        return None

    @property
    def order(self) -> Numbers:
        """The place of each slot's node among all nodes, by name."""
        version, order = self._order
        if version != self.slots_version:
            names = [room.node.id for room in self.rooms]
            order = np.empty(self.size, np.int64)
            order[sorted(range(self.size), key=names.__getitem__)] = np.arange(self.size)
            self._order = (self.slots_version, order)
        return order

    def _note(self, slot: int) -> None:
        if self.end == LOG_LENGTH:
            self.lap += 1
            self.end = 0
        self.log[self.end] = slot
        self.end += 1

    def _number(self, profile: Profile, kind: NodeKind, level: int) -> int:
        views = self.views[profile.family]
        number = profile.numbers[level, kind.models_code] = len(views)
        views.append(NodeView(profile, level, kind.models))
        return number

    def _grow(self) -> None:
        """Make place for twice as many slots when all are taken."""
        if self.size <= len(self.cpu_milli):
            return
        self.cpu_milli = _longer(self.cpu_milli)
        self.memory_mib = _longer(self.memory_mib)
        self.kinds = _longer(self.kinds)
        self.numbers = tuple(_longer(each) for each in self.numbers)


def _no_views() -> tuple[list[NodeView], ...]:
    return tuple([NodeView(Profile(family, (), ""), 0, ())] for family in Family)


def _longer(column: Numbers) -> Numbers:
    return np.concatenate((column, np.zeros(max(64, len(column)), np.int64)))
