"""Which nodes of a pool are in which racks, blocks and zones, as numbers."""

from typing import NamedTuple

import numpy as np

from muster.model.value import PoolName
from muster.schedule.room.index import Index, Numbers, Room

Domain = tuple[str, ...]


class Ranks(NamedTuple):
    """The domains of one depth in their order, and in which of them each node of a pool is."""

    domains: tuple[Domain, ...]
    of_node: Numbers


class Topology:
    """The nodes of one pool in the order of their names, and the domains they are in.

    There is one `Ranks` for each depth, coarsest first; the first one is the whole pool: ().
    """

    def __init__(self, pool: PoolName, index: Index) -> None:
        rooms = [room for room in index.rooms if room.slot >= 0 and room.node.pool == pool]
        rooms.sort(key=lambda room: room.node.id)
        self.levels: tuple[str, ...] = rooms[0].kind.pool.levels if rooms else ()
        self.rooms = rooms
        self.slots = np.array([room.slot for room in rooms], np.int64)
        self.kinds = index.kinds.take(self.slots)
        # Where each slot of the index is among these; -1 for those of other pools.
        self.places = np.full(index.size, -1, np.int64)
        self.places[self.slots] = np.arange(len(rooms))
        self.depths = [_ranks(rooms, depth) for depth in range(len(self.levels) + 1)]


def _ranks(rooms: list[Room], depth: int) -> Ranks:
    found = [room.node.where[:depth] for room in rooms]
    domains = tuple(sorted(set(found)))
    numbers = {domain: number for number, domain in enumerate(domains)}
    return Ranks(domains, np.array([numbers[domain] for domain in found], np.int64))


class Topologies:
    """Those of all pools, each made when it is first asked for."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._known: dict[PoolName, tuple[int, Topology]] = {}

    def of(self, pool: PoolName) -> Topology:
        """Where the nodes of a pool are."""
        version, known = self._known.get(pool, (-1, None))
        if known is None or version != self._index.slots_version:
            known = Topology(pool, self._index)
            self._known[pool] = (self._index.slots_version, known)
        return known
