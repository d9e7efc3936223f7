"""Room for many tasks at once: how many fit where, and the fewest switches that hold them all."""

from collections.abc import Callable, Iterator, Mapping
from copy import copy

import numpy as np

from muster.model.job import NODE_LEVEL, Together
from muster.model.value import NodeId
from muster.schedule.room.find import Fleet
from muster.schedule.room.index import Numbers, Room, Shut, Truths
from muster.schedule.room.needs import MOST_TASKS, Need, PoolOption, Tier

NodeShare = tuple[Room, int]
"""So many tasks on that room."""


class GangTable:
    """How many tasks of one need fit on each node of one option."""

    def __init__(
        self, need: Need, tier: Tier, option: PoolOption, shut: Shut, fleet: Fleet
    ) -> None:
        self._need = need
        self._tier = tier
        self._option = option
        self._shut = shut
        self._fleet = fleet
        self._mosts = None if option.gpus is None else fleet.appraisals.mosts(option.gpus)
        self._seen = (-1, -1)
        self._lap = -1
        self._read = 0
        self._topology = fleet.topologies.of(option.pool)
        self._may_take: Truths = np.zeros(0, np.bool)
        self._fits: Numbers = np.zeros(0, np.int64)
        # How many tasks the domains of a depth hold, once that was asked.
        self._by_depth: dict[int, Numbers] = {}
        # Nodes that are taken before others with as much room.
        self._first: frozenset[int] = frozenset()

    def beside(self, fits: Mapping[Room, int], *, first: bool) -> "GangTable":
        """The same with more room on some nodes, which are taken first if that is asked for."""
        table = copy(self)
        table._fits, table._by_depth = self._fits.copy(), {}
        slots = np.array([room.slot for room in fits], np.int64)
        places = self._topology.places.take(slots)
        table._fits[places] = np.array(list(fits.values()), np.int64)
        table._first = frozenset(places.tolist()) if first else frozenset()
        return table

    def among(self, allows: Callable[[Room], bool]) -> "GangTable":
        """The same, counting only the rooms that a job may have."""
        table = copy(self)
        table._fits, table._by_depth = self._fits.copy(), {}
        for place in np.flatnonzero(self._fits).tolist():
            if not allows(self._topology.rooms[place]):
                table._fits[place] = 0
        return table

    @property
    def total(self) -> int:
        """How many tasks fit in all."""
        return int(self._fits.sum())

    def catch_up(self) -> None:
        """Look again at the nodes that changed."""
        index = self._fleet.columns
        version = (self._fleet.catalogue.version, index.slots_version)
        if self._seen != version:
            self._seen, self._lap = version, -1
            self._topology = self._fleet.topologies.of(self._option.pool)
            self._may_take = self._kinds_taken().take(self._topology.kinds)
        changed = index.since(self._lap, self._read)
        if changed is None:
            places = np.arange(len(self._topology.rooms))
            self._fits, self._by_depth = np.zeros(len(places), np.int64), {}
        else:
            places = self._topology.places.take(changed)
            places = places[places >= 0]
        self._lap, self._read = index.lap, index.end
        if places.size:
            self._fits[places] = self._fit(places)
            self._by_depth = {}

    def fits(self) -> Iterator[tuple[NodeId, int]]:
        """How many tasks fit on each node that has room for one."""
        rooms = self._topology.rooms
        for place in np.flatnonzero(self._fits).tolist():
            yield rooms[place].node.id, int(self._fits[place])

    def best_fit(self, together: Together | None, *, fewest: int, most: int) -> list[NodeShare]:
        """Between `fewest` and `most` tasks in the smallest domain that holds them, or nothing."""
        depths = self._depths(together)
        if self._largest_at(depths[-1]) < fewest:
            return []
        for depth in depths:
            if self._largest_at(depth) >= most:
                return self._fill_depth(depth, most)
        # A smaller start of an elastic group is second best to a wider spread of the whole.
        return self._fill_depth(depths[-1], self._largest_at(depths[-1]))

    def largest(self, together: Together | None) -> int:
        """The most tasks that would fit under the required topology."""
        if together is None or not together.required:
            return self.total
        return max((self._largest_at(depth) for depth in self._depths(together)), default=0)

    @property
    def _node_depth(self) -> int:
        """The depth at which each domain is a single node."""
        return len(self._topology.depths)

    def _depths(self, together: Together | None) -> list[int]:
        """Levels to try, finest first: one node, then up to the level that is required, or all."""
        coarsest = 0
        if together is not None and together.required:
            coarsest = self._depth_of(together.level)
        return list(range(self._node_depth, coarsest - 1, -1))

    def _depth_of(self, level: str) -> int:
        levels = self._topology.levels
        if level == NODE_LEVEL:
            return self._node_depth
        # A pool that has no such level offers no domain of it but the single node.
        return levels.index(level) + 1 if level in levels else self._node_depth

    def _held(self, depth: int) -> Numbers:
        """How many tasks each domain of a depth holds."""
        if depth == self._node_depth:
            return self._fits
        held = self._by_depth.get(depth)
        if held is None:
            ranks = self._topology.depths[depth]
            held = np.zeros(len(ranks.domains), np.int64)
            np.add.at(held, ranks.of_node, self._fits)
            self._by_depth[depth] = held
        return held

    def _largest_at(self, depth: int) -> int:
        return int(self._held(depth).max(initial=0))

    def _fill_depth(self, depth: int, count: int) -> list[NodeShare]:
        held = self._held(depth)
        # The tightest that holds all; of several, the first by name.
        place = int(np.where(held >= count, held, MOST_TASKS + 1).argmin())
        if depth == self._node_depth:
            alike = [each for each in sorted(self._first) if held[each] == held[place]]
            return [(self._topology.rooms[alike[0] if alike else place], count)]
        return self._fill(depth, place, count)

    def _fill(self, depth: int, domain: int, count: int) -> list[NodeShare]:
        """Put the tasks into as few parts of the domain as possible, the tightest last."""
        inside = self._topology.depths[depth].of_node == domain
        if depth == self._node_depth - 1:
            return self._fill_nodes(np.flatnonzero(inside & (self._fits > 0)).tolist(), count)
        held = self._held(depth + 1)
        numbers = np.unique(self._topology.depths[depth + 1].of_node[inside]).tolist()
        parts = [(int(held[number]), number) for number in numbers if held[number]]
        chosen: list[NodeShare] = []
        while count:
            part = _tightest(parts, count)
            parts.remove(part)
            chosen += self._fill(depth + 1, part[1], min(part[0], count))
            count -= min(part[0], count)
        return chosen

    def _fill_nodes(self, places: list[int], count: int) -> list[NodeShare]:
        rooms = self._topology.rooms
        late = {place: place not in self._first for place in places}
        nodes = sorted((-int(self._fits[place]), late[place], place) for place in places)
        chosen: list[NodeShare] = []
        for rank, (minus_fit, _, place) in enumerate(nodes):
            if -minus_fit >= count:
                # The last tasks go where they just fit.
                enough = ((-fit, late[at], at) for fit, _, at in nodes[rank:] if -fit >= count)
                _, _, tightest = min(enough)
                return [*chosen, (rooms[tightest], count)]
            chosen.append((rooms[place], -minus_fit))
            count += minus_fit
        return chosen

    def _fit(self, places: Numbers) -> Numbers:
        need, index, slots = self._need, self._fleet.columns, self._topology.slots.take(places)
        family = need.family if self._option.gpus is None else self._option.gpus.family
        cpu_milli, memory_mib = index.cpu_milli.take(slots), index.memory_mib.take(slots)
        views = index.numbers[family].take(slots)
        fits = np.full(len(slots), need.where.max_per_node or MOST_TASKS, np.int64)
        if need.cpu_milli:
            fits = np.minimum(fits, cpu_milli // need.cpu_milli)
        if need.memory_mib:
            fits = np.minimum(fits, memory_mib // need.memory_mib)
        is_open = (cpu_milli >= 0) & (memory_mib >= 0) & (views > 0)
        fits[~(self._may_take.take(places) & is_open) | (fits < 0)] = 0
        return fits if self._mosts is None else self._mosts.of(views, fits)

    def _kinds_taken(self) -> Truths:
        """Which kinds of node are among those that the option means, by their codes."""
        catalogue, option = self._fleet.catalogue, self._option
        taken = np.zeros(len(self._fleet.columns.kind_of), np.bool)
        for kind in catalogue.kinds.values():
            may = kind.pool.name == option.pool and kind not in self._shut
            offer = catalogue.offer(kind, self._need) if may else None
            if offer is not None and offer.tier == self._tier and option.gpus in offer.gpus:
                taken[kind.code] = True
        return taken


def _tightest(parts: list[tuple[int, int]], count: int) -> tuple[int, int]:
    """The smallest part that holds all, else the largest there is."""
    enough = [part for part in parts if part[0] >= count]
    return min(enough) if enough else min(parts, key=lambda part: (-part[0], part[1]))
