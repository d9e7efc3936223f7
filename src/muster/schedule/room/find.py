"""The best room for one task: every node has a number for what the task takes, the least one wins.

Nodes that are equal by the number are compared exactly: in the order of their kinds, levels and
profiles, and at last by name, so that an answer never depends on which node was met first.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from muster.model.value import NodeId, replace
from muster.schedule.room.catalogue import Catalogue
from muster.schedule.room.index import Index, NodeKind, Numbers, Room, Shut, Truths
from muster.schedule.room.needs import Need, Offer, Tier
from muster.schedule.room.profiles import GpuNeed, Profiles, Taking
from muster.schedule.room.topology import Topologies
from muster.schedule.room.worth import NEVER, UNKNOWN, Appraisals, Demand, Worths, penalty_part

MOST_REFUSALS = 8
"""After so many nodes that a search may not have, it asks about all nodes at once."""


class Seat(NamedTuple):
    """A room, and what a task would take of its devices there (None without GPUs).

    is_promised: it is due to others later, and the task will have left by then.
    """

    room: Room
    taking: Taking | None
    is_promised: bool = False


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
    """The nodes that may serve with one of the GPU models that they have, by slot."""

    __slots__ = ("gpus", "penalties", "slots", "worths")

    def __init__(self, worths: Worths) -> None:
        self.worths = worths
        # What each kind of node offers in this lane.
        self.gpus: dict[NodeKind, GpuNeed | None] = {}
        self.slots: Numbers = np.zeros(0, np.int64)
        # What unmet preferences add for each of these slots; None where nothing does.
        self.penalties: Numbers | None = None

    def keys(self) -> Numbers:
        """The numbers of these slots; they may be those that are kept, so copy before a change."""
        all_keys = self.worths.keys()
        is_all = len(self.slots) == len(all_keys)
        keys = all_keys if is_all else all_keys.take(self.slots)
        if keys[keys.argmin()] == UNKNOWN:
            places = np.flatnonzero(keys == UNKNOWN)
            keys[places] = self.worths.settled(self.slots.take(places))
        return keys if self.penalties is None else keys + self.penalties


_Keys = list[tuple[_Lane, Numbers]]
"""The numbers of each lane; or, of each lane, some places among its slots."""


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
        "_need",
        "_offers",
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

    @property
    def size(self) -> int:
        """How many numbers are kept."""
        return sum(2 * len(lane.slots) for lane in self._lanes)

    def has_seat(self) -> bool:
        """Is there any seat at all? That is quicker to find out than which is best."""
        return bool(self._least(self._keys()))

    def best(self, bounds: Bounds) -> tuple[Seat, GpuNeed | None] | None:
        """The best seat that is open to jobs of any length."""
        keys = self._keys()
        if bounds.closed or bounds.allows is not None:
            keys = [(lane, each.copy()) for lane, each in keys]
            self._close(keys, bounds.closed)
        found = self._first(self._least(keys))
        if bounds.allows is not None:
            found = self._allowed(found, keys, bounds.allows)
        return None if found is None else self._seat(found)

    def numbers(self) -> dict[NodeId, int]:
        """Each node that has a seat, with its number: the least is the best."""
        found: dict[NodeId, int] = {}
        for lane, keys in self._keys():
            fits = (keys < NEVER) & ~self._lacks_memory(lane.slots)
            slots: list[int] = lane.slots[fits].tolist()
            numbers: list[int] = keys[fits].tolist()
            for slot, number in zip(slots, numbers, strict=True):
                id = self._index.rooms[slot].node.id
                found[id] = min(number, found.get(id, number))
        return found

    def _keys(self) -> _Keys:
        version = (self._fleet.catalogue.version, self._index.slots_version)
        if (self._kinds_seen, self._slots_seen) != version:
            self._look_for_kinds()
        return [(lane, lane.keys()) for lane in self._lanes]

    def _seat(self, found: _Found) -> tuple[Seat, GpuNeed | None]:
        room = self._index.rooms[found.slot]
        gpus = found.lane.gpus[room.kind]
        profiles = self._fleet.profiles
        taking = None if gpus is None else profiles.taking(room.views[self._family], gpus)
        return Seat(room, taking), gpus

    def _least(self, keys: _Keys) -> _Keys:
        """The places with the least number; usually that is one of one lane."""
        least = _least(keys)
        for lane, places in least:
            if self._lacks_memory(lane.slots.take(places)).any():
                return _least([(lane, self._with_memory(lane, each)) for lane, each in keys])
        return least

    def _with_memory(self, lane: _Lane, keys: Numbers) -> Numbers:
        """The numbers without those of nodes that have too little memory left."""
        return np.where(self._lacks_memory(lane.slots), NEVER, keys)

    def _lacks_memory(self, slots: Numbers) -> Truths:
        return self._index.memory_mib.take(slots) < self._need.memory_mib

    def _first(self, least: _Keys) -> _Found | None:
        """Of nodes with the same number, the best one by their exact worth, then by names."""
        if not least:
            return None
        lane, places = least[0]
        if len(least) == 1 and len(places) == 1:
            return _Found(lane, int(lane.slots[places[0]]))
        alike = [
            (lane, slots)
            for lane, places in least
            for slots in self._alike(lane.slots.take(places))
        ]
        lane, slots = alike[0] if len(alike) == 1 else min(alike, key=self._exactly)
        return _Found(lane, self._nearest(lane, slots))

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

    def _exactly(self, alike: tuple[_Lane, Numbers]) -> tuple[object, ...]:
        """What nodes that look alike are worth, in full and then by names."""
        lane, slot = alike[0], int(alike[1][0])
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

    def _close(self, keys: _Keys, closed: frozenset[tuple[NodeKind, GpuNeed | None]]) -> None:
        """Leave out the kinds of node that are closed."""
        for lane, each in keys:
            is_closed = np.zeros(len(self._index.kind_of), np.bool)
            for kind, gpus in closed:
                if kind in lane.gpus and lane.gpus[kind] is gpus:
                    is_closed[kind.code] = True
            each[is_closed.take(self._index.kinds.take(lane.slots))] = NEVER

    def _allowed(
        self, found: _Found | None, keys: _Keys, allows: Callable[[Room], bool]
    ) -> _Found | None:
        """The best one among the rooms that are allowed."""
        rooms = self._index.rooms
        refused = 0
        while found is not None and not allows(rooms[found.slot]):
            refused += 1
            for lane, each in keys:
                each[lane.slots == found.slot] = NEVER
                if refused == MOST_REFUSALS:
                    rest: list[int] = lane.slots[each < NEVER].tolist()
                    forbidden = [slot for slot in rest if not allows(rooms[slot])]
                    each[np.isin(lane.slots, forbidden)] = NEVER
            found = self._first(self._least(keys))
        return found

    def _look_for_kinds(self) -> None:
        catalogue, index = self._fleet.catalogue, self._index
        self._offers = {}
        for kind in catalogue.kinds.values():
            offer = catalogue.offer(kind, self._need)
            if offer is not None and offer.tier == self._tier and kind not in self._shut:
                self._offers[kind] = offer
        models = max((len(kind.models) for kind in self._offers), default=0)
        count = 1 if self._need.gpus is None else models
        lanes = [self._lane(place) for place in range(count if self._offers else 0)]
        self._lanes = [lane for lane in lanes if lane.slots.size]
        self._kinds_seen, self._slots_seen = catalogue.version, index.slots_version

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
        penalties = by_kind.take(self._index.kinds[: self._index.size])
        lane.slots = np.flatnonzero(penalties < NEVER)
        if penalties.take(lane.slots).any():
            lane.penalties = penalties.take(lane.slots)
        return lane


def _least(keys: _Keys) -> _Keys:
    least = NEVER
    found: _Keys = []
    for lane, each in keys:
        place = int(each.argmin())
        key = int(each[place])
        if key >= NEVER or key > least:
            continue
        if key < least:
            least = key
            found.clear()
        # Is it the only one? Look for another in its absence.
        each[place] = NEVER
        is_only = each[each.argmin()] != key
        each[place] = key
        found.append((lane, np.array((place,)) if is_only else np.flatnonzero(each == key)))
    return found
