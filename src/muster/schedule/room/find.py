"""The best room for one task: every node has a number for each need, and the least one wins.

A need remembers the numbers and looks again at the nodes that changed only. Nodes that are equal by
the number are compared exactly: in the order of their kinds, levels and profiles, and at last by
name, so that an answer never depends on which node was met first.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from muster.model.value import replace
from muster.schedule.room.catalogue import Catalogue
from muster.schedule.room.index import Index, NodeKind, Numbers, Room, Shut
from muster.schedule.room.needs import Need, Offer, Tier
from muster.schedule.room.profiles import GpuNeed, Profiles, Taking
from muster.schedule.room.topology import Topologies
from muster.schedule.room.worth import NEVER, Appraisals, Demand, Worths, penalty_part

MOST_REFUSALS = 8
"""After so many nodes that a search may not have, it asks about all nodes at once."""


class Seat(NamedTuple):
    """A room, and what a task would take of its devices there (None without GPUs)."""

    room: Room
    taking: Taking | None


class Fleet(NamedTuple):
    """All that finders look at: the columns, the kinds of node, and what their views are worth."""

    columns: Index
    catalogue: Catalogue
    profiles: Profiles
    appraisals: Appraisals
    topologies: Topologies


class Bounds(NamedTuple):
    """What a search must leave out: what its queue may not have more of, rooms it may not have."""

    closed: frozenset[tuple[NodeKind, GpuNeed | None]] = frozenset()
    allows: Callable[[Room], bool] | None = None


class _Lane:
    """The numbers of all nodes for one of the GPU models that nodes have."""

    __slots__ = ("gpus", "keys", "penalties", "worths")

    def __init__(self, worths: Worths) -> None:
        self.worths = worths
        # What each kind of node offers in this lane; by slot, what unmet preferences add.
        self.gpus: dict[NodeKind, GpuNeed | None] = {}
        self.penalties: Numbers = np.zeros(0, np.int64)
        self.keys: Numbers = np.zeros(0, np.int64)


class _Found(NamedTuple):
    lane: _Lane
    slot: int


class Finder:
    """Looks for one need among the kinds of one tier."""

    __slots__ = (
        "_family",
        "_fleet",
        "_index",
        "_kinds_seen",
        "_lanes",
        "_lap",
        "_need",
        "_offers",
        "_read",
        "_shut",
        "_slots_seen",
        "_tier",
    )

    def __init__(self, need: Need, tier: Tier, shut: Shut, fleet: Fleet) -> None:
        self._need = need
        self._tier = tier
        self._shut = shut
        self._fleet = fleet
        self._index = fleet.columns
        self._family = need.family
        self._lanes: list[_Lane] = []
        self._offers: dict[NodeKind, Offer] = {}
        self._kinds_seen = -1
        self._slots_seen = -1
        self._lap = -1
        self._read = 0

    @property
    def size(self) -> int:
        """How many numbers are kept."""
        return sum(len(lane.keys) + len(lane.penalties) for lane in self._lanes)

    def has_seat(self) -> bool:
        """Is there any seat at all? That is told sooner than which is best."""
        self._catch_up()
        return any(lane.keys[lane.keys.argmin()] < NEVER for lane in self._lanes)

    def best(self, bounds: Bounds) -> tuple[Seat, GpuNeed | None] | None:
        """The best seat that is open to jobs of any length."""
        self._catch_up()
        keys = [lane.keys for lane in self._lanes]
        if bounds.closed:
            keys = [self._less(lane, bounds.closed) for lane in self._lanes]
        found = self._least(keys)
        if bounds.allows is not None:
            found = self._allowed(found, keys, bounds.allows)
        return None if found is None else self._seat(found)

    def _seat(self, found: _Found) -> tuple[Seat, GpuNeed | None]:
        room = self._index.rooms[found.slot]
        gpus = found.lane.gpus[room.kind]
        profiles = self._fleet.profiles
        taking = None if gpus is None else profiles.taking(room.views[self._family], gpus)
        return Seat(room, taking), gpus

    def _least(self, keys: list[Numbers]) -> _Found | None:
        """The node with the least number; of several, the first by their exact worth."""
        least, found = NEVER, None
        equal: list[tuple[_Lane, Numbers]] = []
        for lane, each in zip(self._lanes, keys, strict=True):
            place = int(each.argmin())
            key = int(each[place])
            if key >= NEVER or key > least:
                continue
            if key < least:
                least, found = key, _Found(lane, place)
                equal.clear()
            # Is it the only one? Look for another in its absence.
            each[place] = NEVER
            is_only = each[each.argmin()] != key
            each[place] = key
            equal.append((lane, np.array((place,)) if is_only else np.flatnonzero(each == key)))
        if found is None or (len(equal) == 1 and len(equal[0][1]) == 1):
            return found
        return self._first(equal)

    def _first(self, equal: list[tuple[_Lane, Numbers]]) -> _Found | None:
        """Of nodes with the same number, the best one by their exact worth, then by names."""
        alike = [(lane, each) for lane, slots in equal for each in self._alike(slots)]
        found = [_Found(lane, self._nearest(lane, slots)) for lane, slots in alike]
        return found[0] if len(found) == 1 else min(found, key=self._exactly)

    def _alike(self, slots: Numbers) -> list[Numbers]:
        """Slots by view and kind."""
        index = self._index
        pairs = index.numbers[self._family].take(slots) * len(index.kind_of)
        pairs += index.kinds.take(slots)
        if (pairs == pairs[0]).all():
            return [slots]
        return [slots[pairs == pair] for pair in np.unique(pairs)]

    def _nearest(self, lane: _Lane, slots: Numbers) -> int:
        """Of nodes that look alike the one nearest the target, rather above; then by name."""
        index = self._index
        target_milli = lane.worths.target_milli(int(index.numbers[self._family][slots[0]]))
        cpu_milli = index.cpu_milli.take(slots)
        off = np.abs(cpu_milli - target_milli)
        is_nearest = off == off.min()
        above = slots[is_nearest & (cpu_milli >= target_milli)]
        if above.size:
            return int(above[index.order.take(above).argmin()])
        below = slots[is_nearest]
        return int(below[index.order.take(below).argmax()])

    def _exactly(self, found: _Found) -> tuple[object, ...]:
        lane, slot = found
        room = self._index.rooms[slot]
        number = int(self._index.numbers[self._family][slot])
        view = self._index.views[self._family][number]
        worth = lane.worths.exactly(number, room.open_cpu_milli)
        gpus, kind = lane.gpus[room.kind], room.kind
        return (
            self._offers[kind].penalty,
            *worth,
            kind.name,
            view.level,
            view.profile.name,
            "" if gpus is None else gpus.model,
        )

    def _less(self, lane: _Lane, closed: frozenset[tuple[NodeKind, GpuNeed | None]]) -> Numbers:
        """The numbers without the kinds of node that are closed."""
        is_closed = np.zeros(len(self._index.kind_of), np.bool)
        for kind, gpus in closed:
            if kind in lane.gpus and lane.gpus[kind] is gpus:
                is_closed[kind.code] = True
        return np.where(is_closed.take(self._index.kinds[: len(lane.keys)]), NEVER, lane.keys)

    def _allowed(
        self, found: _Found | None, keys: list[Numbers], allows: Callable[[Room], bool]
    ) -> _Found | None:
        """The best one among the rooms that are allowed."""
        rooms = self._index.rooms
        refused = 0
        while found is not None:
            if allows(rooms[found.slot]):
                return found
            if not refused:
                keys = [each.copy() for each in keys]
            refused += 1
            for each in keys:
                each[found.slot] = NEVER
            if refused == MOST_REFUSALS:
                _forbid(keys, rooms, allows)
            found = self._least(keys)
        return None

    def _catch_up(self) -> None:
        index = self._index
        version = self._fleet.catalogue.version
        if (self._kinds_seen, self._slots_seen) != (version, index.slots_version):
            self._look_for_kinds()
        changed = index.since(self._lap, self._read)
        if changed is None:
            changed = np.arange(index.size)
            for lane in self._lanes:
                lane.keys = np.full(index.size, NEVER, np.int64)
        elif not changed.size:
            return
        self._lap, self._read = index.lap, index.end
        views = index.numbers[self._family].take(changed)
        cpu_milli = index.cpu_milli.take(changed)
        serves = cpu_milli >= self._need.cpu_milli
        serves &= index.memory_mib.take(changed) >= self._need.memory_mib
        for lane in self._lanes:
            penalties = lane.penalties.take(changed)
            keys = lane.worths.of(views, cpu_milli, serves & (penalties < NEVER))
            lane.keys[changed] = keys + penalties

    def _look_for_kinds(self) -> None:
        catalogue, index = self._fleet.catalogue, self._index
        self._offers = {}
        for kind in catalogue.kinds.values():
            offer = catalogue.offer(kind, self._need)
            if offer is not None and offer.tier == self._tier and kind not in self._shut:
                self._offers[kind] = offer
        lanes = max((len(kind.models) for kind in self._offers), default=0)
        count = 1 if self._need.gpus is None else lanes
        self._lanes = [self._lane(place) for place in range(count if self._offers else 0)]
        self._kinds_seen, self._slots_seen = catalogue.version, index.slots_version
        self._lap = -1

    def _lane(self, place: int) -> _Lane:
        gpus = self._need.gpus
        may_cut = gpus is not None and any(
            each is not None and each.may_cut
            for offer in self._offers.values()
            for each in offer.gpus
        )
        # Which models a task accepts, the offers of the kinds say.
        taken = None if gpus is None else replace(gpus, models=())
        lane = _Lane(
            self._fleet.appraisals.worths(Demand(taken, may_cut, place, self._need.cpu_milli))
        )
        by_kind = np.full(len(self._index.kind_of), NEVER, np.int64)
        for kind, offer in self._offers.items():
            for each in offer.gpus:
                if each is None or kind.models[place : place + 1] == (each.model,):
                    lane.gpus[kind] = each
                    by_kind[kind.code] = penalty_part(offer.penalty)
        lane.penalties = by_kind.take(self._index.kinds[: self._index.size])
        return lane


def _forbid(keys: list[Numbers], rooms: list[Room], allows: Callable[[Room], bool]) -> None:
    for slot in sorted({int(slot) for each in keys for slot in np.flatnonzero(each < NEVER)}):
        if not allows(rooms[slot]):
            for each in keys:
                each[slot] = NEVER
