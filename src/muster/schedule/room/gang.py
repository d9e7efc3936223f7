"""Room for many tasks at once: how many fit where, and the fewest switches that hold them all."""

from collections.abc import Callable, Iterable, Iterator

from muster.model.job import NODE_LEVEL, Together
from muster.model.value import NodeId
from muster.schedule.room.index import Kind, Room
from muster.schedule.room.ledger import Ledger
from muster.schedule.room.needs import Need, Option, Shut, Tier, tasks_on_host

Domain = tuple[str, ...]
Share = tuple[Room, int]
"""So many tasks on that room."""


class Table:
    """How many tasks of one need fit on each node of one option, summed over topology domains."""

    def __init__(
        self,
        need: Need,
        tier: Tier,
        option: Option,
        shut: Shut,
        ledger: Ledger,
    ) -> None:
        self._need = need
        self._tier = tier
        self._option = option
        self._shut = shut
        self._ledger = ledger
        self._levels = next(
            (kind.pool.levels for kind in ledger.kinds.values() if kind.pool.name == option.pool),
            (),
        )
        self._takes: dict[Kind, bool] = {}
        self._fits: dict[NodeId, int] = {}
        self._rooms_by_fit: dict[int, dict[NodeId, Room]] = {}
        # One dictionary for each level, coarsest first; level 0 is the whole pool: ().
        self._sums: list[dict[Domain, int]] = [{} for _ in range(len(self._levels) + 1)]
        self._rooms: list[dict[Domain, dict[NodeId, Room]]] = [{} for _ in self._sums]
        self._read = 0

    def fill(self) -> "Table":
        """Look at every room."""
        for kind in self._ledger.kinds.values():
            for room in kind.rooms.values() if self._may_take(kind) else ():
                self._note(room)
        self._read = len(self._ledger.index.moved[self._option.pool])
        return self

    def among(self, allows: Callable[[Room], bool]) -> "Table":
        """The same, counting only the rooms that a job may have."""
        table = Table(self._need, self._tier, self._option, self._shut, self._ledger)
        for node, fit in self._fits.items():
            room = self._ledger.rooms.get(node)
            if room is not None and allows(room):
                table._count(room, fit)
        return table

    @property
    def total(self) -> int:
        """How many tasks fit in all."""
        return self._sums[0].get((), 0)

    def catch_up(self) -> None:
        """Look again at the rooms that changed."""
        moved = self._ledger.index.moved[self._option.pool]
        if self._read == len(moved):
            return
        for room in dict.fromkeys(moved[self._read :]):
            self._note(room)
        self._read = len(moved)

    def fits(self) -> Iterator[tuple[NodeId, int]]:
        """How many tasks fit on each node that has room for one."""
        return iter(self._fits.items())

    def best_fit(self, together: Together | None, *, fewest: int, most: int) -> list[Share]:
        """Between `fewest` and `most` tasks in the smallest domain that holds them, or nothing."""
        depths = self._depths(together)
        for depth in depths:
            if self._largest_at(depth) >= most:
                return self._fill_depth(depth, most)
        # A smaller start of an elastic group is second best to a wider spread of the whole.
        largest = self._largest_at(depths[-1])
        return self._fill_depth(depths[-1], largest) if largest >= fewest else []

    def largest(self, together: Together | None) -> int:
        """The most tasks that would fit under the required topology."""
        if together is None or not together.required:
            return self.total
        return max((self._largest_at(depth) for depth in self._depths(together)), default=0)

    def _depths(self, together: Together | None) -> list[int]:
        """Levels to try, finest first: one node, then up to the level that is required, or all."""
        deepest = len(self._sums)
        coarsest = 0
        if together is not None and together.required:
            coarsest = self._depth_of(together.level)
        return list(range(deepest, coarsest - 1, -1))

    def _depth_of(self, level: str) -> int:
        if level == NODE_LEVEL:
            return len(self._sums)
        # A pool that has no such level offers no domain of it but the single node.
        return self._levels.index(level) + 1 if level in self._levels else len(self._sums)

    def _largest_at(self, depth: int) -> int:
        if depth == len(self._sums):
            return max((fit for fit, rooms in self._rooms_by_fit.items() if rooms), default=0)
        return max(self._sums[depth].values(), default=0)

    def _fill_depth(self, depth: int, count: int) -> list[Share]:
        if depth == len(self._sums):
            fit = min(fit for fit, rooms in self._rooms_by_fit.items() if rooms and fit >= count)
            return [(self._rooms_by_fit[fit][min(self._rooms_by_fit[fit])], count)]
        sums = self._sums[depth]
        domain = min((held, domain) for domain, held in sums.items() if held >= count)[1]
        return self._fill(depth, domain, count)

    def _fill(self, depth: int, domain: Domain, count: int) -> list[Share]:
        """Put the tasks into as few parts of the domain as possible, the tightest last."""
        if depth == len(self._sums) - 1:
            return self._fill_nodes(self._rooms[depth][domain].values(), count)
        parts = [
            (held, part)
            for part, held in self._sums[depth + 1].items()
            if held and part[:depth] == domain
        ]
        chosen: list[Share] = []
        while count:
            held, part = _tightest(parts, count)
            parts.remove((held, part))
            chosen += self._fill(depth + 1, part, min(held, count))
            count -= min(held, count)
        return chosen

    def _fill_nodes(self, rooms: Iterable[Room], count: int) -> list[Share]:
        nodes = [(self._fits[room.node.id], room.node.id) for room in rooms]
        nodes.sort(key=lambda node: (-node[0], node[1]))
        chosen: list[Share] = []
        for place, (fit, node) in enumerate(nodes):
            if fit >= count:
                # The last tasks go where they just fit.
                _, tightest = min(each for each in nodes[place:] if each[0] >= count)
                return [*chosen, (self._ledger.rooms[tightest], count)]
            chosen.append((self._ledger.rooms[node], fit))
            count -= fit
        return chosen

    def _note(self, room: Room) -> None:
        fit = self._fit(room)
        if fit != self._fits.get(room.node.id, 0):
            self._count(room, fit)

    def _count(self, room: Room, fit: int) -> None:
        node, where = room.node.id, room.node.where
        before = self._fits.pop(node, 0)
        if before:
            self._rooms_by_fit[before].pop(node, None)
        if fit:
            self._fits[node] = fit
            self._rooms_by_fit.setdefault(fit, {})[node] = room
        for depth, sums in enumerate(self._sums):
            domain = where[:depth]
            sums[domain] = sums.get(domain, 0) + fit - before
            if not before:
                self._rooms[depth].setdefault(domain, {})[node] = room
            elif fit:
                self._rooms[depth][domain][node] = room
            else:
                del self._rooms[depth][domain][node]

    def _fit(self, room: Room) -> int:
        kind, gpus = room.kind, self._option.gpus
        takes = self._takes[kind] if kind in self._takes else self._may_take(kind)
        if not takes or not room.is_listed or self._ledger.rooms.get(room.node.id) is not room:
            return 0
        fit = tasks_on_host(self._need, room.open_cpu_milli, room.open_memory_mib)
        if gpus is None or not fit:
            return fit
        return min(fit, self._ledger.profiles.most(room.views[gpus.family], gpus))

    def _may_take(self, kind: Kind) -> bool:
        """Is this kind of node among those that the option means?"""
        may = kind.pool.name == self._option.pool and kind not in self._shut
        offer = self._ledger.offer(kind, self._need) if may else None
        may = offer is not None and offer.tier == self._tier and self._option.gpus in offer.gpus
        self._takes[kind] = may
        return may


def _tightest(parts: list[tuple[int, Domain]], count: int) -> tuple[int, Domain]:
    """The smallest part that holds all, else the largest there is."""
    enough = [part for part in parts if part[0] >= count]
    return min(enough) if enough else min(parts, key=lambda part: (-part[0], part[1]))
