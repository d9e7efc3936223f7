"""What is free where: the mutable part of a plan, with one owner.

The ledger follows the snapshot, takes room for the jobs that the plan starts, and can take it on
trial. What it says about a node depends only on who is there, never on the order they came in.
"""

from typing import NamedTuple

from muster.model.cluster import Node, NodeState
from muster.model.gpu import Enforcement, MpsShare, Slice, TimeShare, enforcement
from muster.model.placement import DeviceShare, Placement
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.model.value import DeviceId, JobId, NodeId, replace
from muster.schedule.room.catalogue import Catalogue
from muster.schedule.room.find import Finder, Fleet, Seat
from muster.schedule.room.gang import GangTable
from muster.schedule.room.index import (
    FOR_EVER,
    Index,
    NodeKind,
    Promise,
    Room,
    Shut,
    Stay,
    Tenant,
    kind_name,
    private_labels,
    reserved_nodes,
    reserved_pools,
)
from muster.schedule.room.needs import Need, PoolOption, Tier
from muster.schedule.room.profiles import Family, Profile, Profiles, Taking
from muster.schedule.room.remains import SEALED, Remains
from muster.schedule.room.score import Score, supply_of
from muster.schedule.room.slices import DeviceState, resting
from muster.schedule.room.topology import Topologies
from muster.schedule.room.worth import MOST_KEPT, Appraisals, Appraiser


class _Before(NamedTuple):
    room: Room
    cpu_milli: int
    memory_mib: int
    devices: tuple[DeviceState | None, ...]
    views: tuple[Profile, ...]
    promises: tuple[Promise, ...]


class Trial:
    """Room taken within a trial is put back unless it is kept."""

    __slots__ = ("_is_kept", "_ledger", "_mark")

    def __init__(self, ledger: "Ledger") -> None:
        self._ledger = ledger
        self._mark = 0
        self._is_kept = False

    def __enter__(self) -> "Trial":
        self._mark = self._ledger.begin_trial()
        return self

    def __exit__(self, *_: object) -> None:
        self._ledger.end_trial(self._mark, is_kept=self._is_kept)

    def keep(self) -> None:
        """Let what was taken stand."""
        self._is_kept = True


class Ledger:
    """Every node's room, indexed by what is left."""

    def __init__(self, snapshot: Snapshot, policy: Policy) -> None:
        self.policy = policy
        self.score = Score(snapshot.usual, supply_of(snapshot.nodes.values()))
        self.profiles = Profiles(self.score.change)
        self.remains = Remains(self.profiles)
        self.index = Index(self.score)
        self.catalogue = Catalogue(policy, self.profiles)
        self.needs = self.catalogue.needs
        appraiser = Appraiser(self.profiles, self.score, self.needs, policy.packing)
        appraisals = Appraisals(self.index, appraiser, self.profiles)
        topologies = Topologies(self.index)
        self._fleet = Fleet(self.index, self.catalogue, self.profiles, appraisals, topologies)
        self._finders: dict[tuple[Need, Tier, Shut], Finder] = {}
        self._tables: dict[tuple[Need, PoolOption, Shut], GangTable] = {}
        self.rooms: dict[NodeId, Room] = {}
        self.private_labels = private_labels(snapshot.nodes.values())
        self.promised: dict[NodeId, Room] = {}
        self._snapshot = snapshot
        self._reserved = reserved_nodes(snapshot)
        self._promised_pools = reserved_pools(snapshot)
        self._shares: dict[tuple[DeviceId, Slice | None, int | None, Enforcement], DeviceShare] = {}
        self._nothing = tuple(self.profiles.of((), family) for family in Family)
        # Who is on nodes that are not there, so that it counts when they come back.
        self._on_absent: dict[NodeId, dict[JobId, Tenant]] = {}
        self._undo: list[_Before] = []
        self._trials = 0

    # Following the world

    def follow(self, snapshot: Snapshot) -> None:
        """Clusters, pools, reservations, usual tasks or nodes are others than before.

        What is left to do then is `set_node` and `drop_node` for the nodes that are others.
        """
        old, self._snapshot = self._snapshot, snapshot
        if self.score.follow(snapshot.usual, supply_of(snapshot.nodes.values())):
            self._judge_again()
        self._sort_again(old)

    def set_node(self, node: Node) -> None:
        """A node came or changed; those who are there stay."""
        room = self.rooms.get(node.id)
        before = None if room is None else (room.kind, room.size)
        if room is not None and self._stays(room, node):
            self._change(room, node)
        else:
            self._drop(node.id)
            room = self._enter(node)
        if before != (room.kind, room.size):
            self.catalogue.sizes_version += 1

    def drop_node(self, node_id: NodeId) -> None:
        """A node is gone."""
        self._drop(node_id)
        self.catalogue.sizes_version += 1
        self.catalogue.nodes_version += 1

    def settle(self, room: Room) -> None:
        """Work out from scratch what is left beside those who are there, and list it."""
        room.cpu_milli, room.memory_mib, room.devices = self.remains.left(room, room.tenants)
        self._list(room, self._views(room))

    # Asking

    def finder(self, need: Need, tier: Tier, shut: Shut) -> Finder:
        """Finds single seats in one tier; kept from search to search."""
        known = self._finders.get((need, tier, shut))
        if known is None:
            self._forget_if_many()
            known = self._finders[need, tier, shut] = Finder(need, tier, shut, self._fleet)
        return known

    def table(self, need: Need, tier: Tier, option: PoolOption, shut: Shut) -> GangTable:
        """Tells how many tasks fit where; kept from search to search."""
        known = self._tables.get((need, option, shut))
        if known is None:
            known = GangTable(need, tier, option, shut, self._fleet)
            self._tables[need, option, shut] = known
        known.catch_up()
        return known

    # Taking

    def trial(self) -> Trial:
        """Take on trial: unless kept, everything taken inside is put back."""
        return Trial(self)

    def begin_trial(self) -> int:
        """From now on remember how things were; the mark to go back to."""
        self._trials += 1
        return len(self._undo)

    def end_trial(self, mark: int, *, is_kept: bool) -> None:
        """Go back to the mark, unless what was taken is kept."""
        self._trials -= 1
        if not is_kept:
            self._restore(mark)
        if not self._trials:
            self._undo.clear()

    def take(self, seat: Seat, need: Need, stay: Stay) -> tuple[DeviceShare, ...]:
        """Give one task its room; the devices it got."""
        room, taking = seat.room, seat.taking
        self._undo.append(_before(room))
        room.cpu_milli -= need.cpu_milli
        room.memory_mib -= need.memory_mib
        if room.promises:
            room.promises = tuple(
                _beside(each, need, 1) if stay.outlives(each) else each for each in room.promises
            )
        if taking is None:
            self._list(room, room.views)
            return ()
        shares = self._move(seat, taking, need, stay)
        self._list(room, self._moved(room, taking))
        return shares

    def seal(self, room: Room) -> None:
        """No other job may come to this room: it has an exclusive tenant."""
        self._undo.append(_before(room))
        room.cpu_milli, room.memory_mib = SEALED, SEALED
        self._list(room, self._views(room))

    def promise(self, room: Room, promises: tuple[Promise, ...]) -> None:
        """This is promised of the room."""
        room.promises = promises
        if promises:
            self.promised[room.node.id] = room
        else:
            self.promised.pop(room.node.id, None)
        self._list(room, self._views(room))

    def promise_more(self, room: Room, promise: Promise, need: Need, count: int) -> None:
        """From `promise.at` on, part of the room is due to a job, beside what is due to others."""
        others = tuple(
            _beside(each, need, count) if promise.at < each.at < promise.until else each
            for each in room.promises
        )
        self.promise(room, (*others, promise))

    def forget_promises(self) -> None:
        """Promises are made again in each plan."""
        for room in list(self.promised.values()):
            self.promise(room, ())

    def occupy(self, job: JobId, placements: tuple[Placement, ...], tenant: Tenant) -> list[Room]:
        """Note who is in which rooms; they must be settled unless the room was taken before."""
        entered: list[Room] = []
        for node_id, here in by_node(placements).items():
            room = self.rooms.get(node_id)
            is_all = len(here) == len(placements)
            tenant_here = tenant if is_all else tenant._replace(placements=here)
            if room is None:
                self._on_absent.setdefault(node_id, {})[job] = tenant_here
            else:
                room.tenants[job] = tenant_here
                entered.append(room)
        return entered

    def vacate(self, job: JobId, placements: tuple[Placement, ...]) -> list[Room]:
        """The job has left; the rooms it was in must be settled."""
        left: list[Room] = []
        for node_id in by_node(placements):
            room = self.rooms.get(node_id)
            if room is None:
                self._on_absent.get(node_id, {}).pop(job, None)
            elif room.tenants.pop(job, None) is not None:
                left.append(room)
        return left

    # Inside

    def _judge_again(self) -> None:
        """Nothing that was worked out with the old score holds; who is where does."""
        self.profiles.forget()
        self.index.forget_views()
        self._forget()
        self.catalogue.sizes_version += 1
        for room in self.rooms.values():
            if room.is_listed:
                self.index.put(room)

    def _sort_again(self, old: Snapshot) -> None:
        """Give nodes other kinds where pools, clusters, reservations or private labels changed."""
        new, reserved = self._snapshot, reserved_nodes(self._snapshot)
        promised, private = reserved_pools(new), private_labels(new.nodes.values())
        pools = {
            name
            for name in old.pools.keys() | new.pools.keys()
            if old.pools.get(name) != new.pools.get(name)
            or self._promised_pools.get(name) != promised.get(name)
        }
        clusters = {
            name
            for name in old.clusters.keys() | new.clusters.keys()
            if old.clusters.get(name) != new.clusters.get(name)
        }
        keys = private ^ self.private_labels
        moving = [
            room
            for name, room in self.rooms.items()
            if room.node.pool in pools
            or room.node.cluster in clusters
            or keys
            or self._reserved.get(name) != reserved.get(name)
        ]
        self._reserved, self._promised_pools, self.private_labels = reserved, promised, private
        # First all of them leave their kinds, so that none joins one that is of the past.
        for room in moving:
            self._drop(room.node.id)
            self.catalogue.sizes_version += 1
        for room in moving:
            node = new.nodes.get(room.node.id)
            if node is not None:
                self._enter(node)

    def _forget(self) -> None:
        self._finders.clear()
        self._tables.clear()
        self._fleet.appraisals.clear()

    def _forget_if_many(self) -> None:
        """Keep no more numbers than there may be; what is forgotten is worked out again."""
        finders = len(self._finders)
        if finders & (finders - 1):
            # There are up to twice as many as when they were last counted.
            return
        kept = self._fleet.appraisals.size + sum(each.size for each in self._finders.values())
        if 2 * kept > MOST_KEPT:
            self._forget()

    def _stays(self, room: Room, node: Node) -> bool:
        """Is the node, though changed, of the same kind and in the same place?"""
        is_there = room.node.where == node.where
        return is_there and self._named_kind(node)[0] == room.kind.name

    def _change(self, room: Room, node: Node) -> None:
        """A node has other devices, another size or state; searches keep its slot."""
        self.catalogue.nodes_version += 1
        room.kind.rooms.pop(node.id, None)
        if room.size is not None:
            room.kind.sizes[room.size] -= 1
        room.node, room.resting = node, None
        room.size = (node.cpu_milli, node.memory_mib, self._whole(node, room.kind))
        room.kind.sizes[room.size] += 1
        self.settle(room)

    def _enter(self, node: Node) -> Room:
        self.catalogue.nodes_version += 1
        room = Room(node, self._kind(node))
        room.tenants = self._on_absent.pop(node.id, {})
        room.size = (node.cpu_milli, node.memory_mib, self._whole(node, room.kind))
        room.kind.sizes[room.size] += 1
        self.rooms[node.id] = room
        self.index.enter(room)
        self.settle(room)
        return room

    def _drop(self, node_id: NodeId) -> None:
        """Take a node out; who is there is remembered in case it comes back."""
        room = self.rooms.pop(node_id, None)
        if room is None:
            return
        self.index.leave(room)
        room.kind.rooms.pop(node_id, None)
        if room.size is not None:
            room.kind.sizes[room.size] -= 1
            if not room.kind.sizes.total():
                self.catalogue.remove(room.kind)
        self.promised.pop(node_id, None)
        if room.tenants:
            self._on_absent[node_id] = room.tenants

    def _kind(self, node: Node) -> NodeKind:
        name, labels = self._named_kind(node)
        reserved = self._reserved.get(node.id, ())
        kind = self.catalogue.kinds.get(name)
        if kind is None:
            cluster, pool = self._snapshot.clusters[node.cluster], self._snapshot.pools[node.pool]
            kind = NodeKind(node, cluster, pool, name)
            kind.labels, kind.reserved = labels, reserved
            kind.inside = self._promised_pools.get(node.pool, frozenset())
            kind.inside |= {each.name for each in reserved}
            kind.private_labels = self.private_labels
            self.catalogue.add(kind)
        return kind

    def _named_kind(self, node: Node) -> tuple[str, dict[str, str]]:
        """The name of the node's kind, and the labels that all nodes of it share."""
        labels = {key: value for key, value in node.labels.items() if self._is_shared(key)}
        return kind_name(node, labels, self._reserved.get(node.id, ())), labels

    def _whole(self, node: Node, kind: NodeKind) -> tuple[DeviceState, ...]:
        """The devices without tenants; how they are cut matters only if that is for good."""
        may_cut = self.policy.repartition and kind.cluster.abilities.repartition
        states = (resting(device) for device in node.devices)
        return tuple(
            self.profiles.state(replace(state, layout=None) if may_cut else state)
            for state in states
        )

    def _is_shared(self, key: str) -> bool:
        return key not in self.private_labels

    def _list(self, room: Room, views: tuple[Profile, ...]) -> None:
        """Put the room where searches will find what is open to jobs of any length."""
        room.open_cpu_milli, room.open_memory_mib, room.views = (
            room.cpu_milli,
            room.memory_mib,
            views,
        )
        if room.promises:
            room.open_cpu_milli, room.open_memory_mib = room.host_for(FOR_EVER)
        if room.node.state is NodeState.UP:
            room.kind.rooms[room.node.id] = room
            self.index.put(room)
        else:
            self.index.remove(room)

    def _views(self, room: Room) -> tuple[Profile, ...]:
        """What each family sees of the devices that are not promised."""
        if room.cpu_milli < 0:
            return self._nothing
        return self.views_for(room, FOR_EVER)

    def views_for(self, room: Room, stay: Stay) -> tuple[Profile, ...]:
        """What each family sees of the devices that are free to a job that stays so long."""
        states, barred = room.devices, room.barred(stay)
        if barred:
            states = tuple([each for place, each in enumerate(states) if place not in barred])
        return self.remains.views_of(states)

    def _moved(self, room: Room, taking: Taking) -> tuple[Profile, ...]:
        """The views after a task took its devices."""
        if room.promises:
            return self._views(room)
        views = room.views
        for before, after, _, _ in taking.moves:
            views = tuple(self.profiles.swapped(view, before, after) for view in views)
        return views

    def _move(self, seat: Seat, taking: Taking, need: Need, stay: Stay) -> tuple[DeviceShare, ...]:
        room = seat.room
        part = None if need.gpus is None else need.gpus.slice
        states = list(room.devices)
        barred = room.barred(stay if seat.is_promised else FOR_EVER)
        # Who leaves in time takes first what is of no use to those who do not.
        due = room.barred(FOR_EVER) if seat.is_promised else frozenset[int]()
        shares: list[DeviceShare] = []
        is_apart = isinstance(part, (MpsShare, TimeShare))
        for move in taking.moves:
            place = _first(states, move.before, barred, due)
            states[place] = move.after
            if is_apart:
                barred |= {place}
            shares.append(self._share(room, room.node.devices[place].id, part, move.start))
        room.devices = tuple(states)
        return tuple(shares)

    def _share(
        self, room: Room, device: DeviceId, part: Slice | None, start: int | None
    ) -> DeviceShare:
        kept = enforcement(part, walled=room.kind.cluster.abilities.device_wall)
        key = (device, part, start, kept)
        known = self._shares.get(key)
        if known is None:
            known = self._shares[key] = DeviceShare(
                device=device, slice=part, start=start, enforced=kept
            )
        return known

    def _restore(self, mark: int) -> None:
        while len(self._undo) > mark:
            before = self._undo.pop()
            room = before.room
            room.cpu_milli, room.memory_mib = before.cpu_milli, before.memory_mib
            room.devices, room.promises = before.devices, before.promises
            self._list(room, before.views)


def _before(room: Room) -> _Before:
    return _Before(room, room.cpu_milli, room.memory_mib, room.devices, room.views, room.promises)


def by_node(placements: tuple[Placement, ...]) -> dict[NodeId, tuple[Placement, ...]]:
    """Placements gathered by node."""
    if len(placements) == 1:
        return {placements[0].node: placements}
    found: dict[NodeId, tuple[Placement, ...]] = {}
    for placement in placements:
        found[placement.node] = (*found.get(placement.node, ()), placement)
    return found


def _beside(promise: Promise, need: Need, count: int) -> Promise:
    return promise._replace(
        cpu_milli=promise.cpu_milli - need.cpu_milli * count,
        memory_mib=promise.memory_mib - need.memory_mib * count,
    )


def _first(
    states: list[DeviceState | None],
    wanted: DeviceState,
    barred: frozenset[int],
    preferred: frozenset[int],
) -> int:
    for place in sorted(preferred):
        if states[place] == wanted and place not in barred:
            return place
    place = states.index(wanted)
    while place in barred:
        place = states.index(wanted, place + 1)
    return place
