"""Which victims would be enough: walk them from the cheapest until the job fits somewhere."""

from collections.abc import Iterable

from muster.model.job import NODE_LEVEL, TaskGroup
from muster.model.value import JobId, NodeId
from muster.schedule.books import Holding
from muster.schedule.index import Room
from muster.schedule.ledger import by_node
from muster.schedule.needs import Option, Tier
from muster.schedule.roster import Entry
from muster.schedule.search import Search, Standing, tiers

Domain = tuple[str, ...]


def enough(entry: Entry, willing: list[Holding], standing: Standing) -> list[Holding]:
    """The first of them that make room for each group, cheapest first; maybe more than needed."""
    chosen: dict[JobId, Holding] = {}
    for group_need in entry.shape.groups:
        found = _enough_for(Search(entry, group_need, standing), willing)
        if found is None:
            return []
        chosen |= {victim.job.id: victim for victim in found}
    return [victim for victim in willing if victim.job.id in chosen]


def _enough_for(search: Search, willing: list[Holding]) -> list[Holding] | None:
    for tier in tiers(search.need, search.standing.ledger):
        for option in search.need.options[tier]:
            found = _Walk(search, tier, option).until_it_fits(willing)
            if found is not None:
                return found
    return None


class _Walk:
    """Victims leave one by one; how many tasks fit is counted by domain as they go."""

    def __init__(self, search: Search, tier: Tier, option: Option) -> None:
        self._search = search
        self._option = option
        self._ledger = search.standing.ledger
        self._gone: dict[NodeId, dict[JobId, Holding]] = {}
        self._fits: dict[NodeId, int] = {}
        self._by_domain: dict[Domain, int] = {}
        self._nodes: dict[Domain, list[NodeId]] = {}
        self._gpu_milli = search.need.amount(option.gpus).gpu_milli
        self._freed_milli: dict[NodeId, int] = {}
        if search.group.count > 1:
            self._count_free(tier)

    def until_it_fits(self, willing: Iterable[Holding]) -> list[Holding] | None:
        """The victims on the nodes of the first domain in which the group fits."""
        for victim in willing:
            for node_id in self._leave(victim):
                domain = self._recount(node_id)
                if domain is not None and self._by_domain[domain] >= self._search.group.fewest:
                    return self._victims_in(domain)
        return None

    def _count_free(self, tier: Tier) -> None:
        table = self._search.table(tier, self._option)
        for node_id, fit in table.fits():
            self._set_fit(self._ledger.rooms[node_id], fit)

    def _leave(self, victim: Holding) -> list[NodeId]:
        """The nodes on which it now pays to look closer."""
        worth: list[NodeId] = []
        for node_id, placements in by_node(victim.placements).items():
            room = self._ledger.rooms.get(node_id)
            if room is None or not room.is_listed or not self._may_use(room):
                continue
            self._gone.setdefault(node_id, {})[victim.job.id] = victim
            freed = sum(each.amount.gpu_milli for each in placements)
            before = self._freed_milli.get(node_id)
            if before is None:
                before = sum(state.left_milli for state in room.devices if state is not None)
            self._freed_milli[node_id] = before + freed
            if before + freed >= self._gpu_milli:
                worth.append(node_id)
        return worth

    def _may_use(self, room: Room) -> bool:
        search, kind = self._search, room.kind
        offer = self._ledger.offer(kind, search.need)
        if offer is None or self._option.gpus not in offer.gpus or kind in search.shut:
            return False
        if kind.pool.name != self._option.pool or room.promise is not None:
            return False
        where = search.need.where
        return where.exclusive or search.allows is None or search.allows(room)

    def _recount(self, node_id: NodeId) -> Domain | None:
        room = self._ledger.rooms[node_id]
        gone = self._gone[node_id].keys()
        fit = self._ledger.fit_without(room, gone, self._search.need, self._option.gpus)
        return self._set_fit(room, fit)

    def _set_fit(self, room: Room, fit: int) -> Domain | None:
        before = self._fits.get(room.node.id, 0)
        if fit <= before:
            return None
        domain = _domain(self._search.group, room)
        if not before:
            self._nodes.setdefault(domain, []).append(room.node.id)
        self._fits[room.node.id] = fit
        self._by_domain[domain] = self._by_domain.get(domain, 0) + fit - before
        return domain

    def _victims_in(self, domain: Domain) -> list[Holding]:
        found: dict[JobId, Holding] = {}
        for node_id in self._nodes[domain]:
            found |= self._gone.get(node_id, {})
        return list(found.values())


def _domain(group: TaskGroup, room: Room) -> Domain:
    together = group.together
    if group.count == 1:
        return (room.node.id,)
    if together is None or not together.required:
        return ()
    levels = room.kind.pool.levels
    if together.level == NODE_LEVEL or together.level not in levels:
        return (room.node.id,)
    return room.node.where[: levels.index(together.level) + 1]
