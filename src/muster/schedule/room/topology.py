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

    def __init__(self, pool: PoolName, levels: tuple[str, ...], index: Index) -> None:
        rooms = [room for room in index.rooms if room.slot >= 0 and room.node.pool == pool]
        rooms.sort(key=lambda room: room.node.id)
        self.levels = levels
        self.rooms = rooms
        self.slots = np.array([room.slot for room in rooms], np.int64)
        self.kinds = index.kinds.take(self.slots)
        # Where each slot of the index is among these; -1 for those of other pools.
        self.places = np.full(index.size, -1, np.int64)
        self.places[self.slots] = np.arange(len(rooms))
        self.depths = [_ranks(rooms, depth) for depth in range(len(levels) + 1)]


def _ranks(rooms: list[Room], depth: int) -> Ranks:
    found = [room.node.where[:depth] for room in rooms]
    domains = tuple(sorted(set(found)))
    numbers = {domain: number for number, domain in enumerate(domains)}
    return Ranks(domains, np.array([numbers[domain] for domain in found], np.int64))
