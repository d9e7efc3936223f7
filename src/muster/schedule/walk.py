"""If jobs left one after the other, when would a waiting one fit?

Backfill lets them leave in the order in which they must end, preemption in the order of the work
that would be lost. How many tasks then fit is counted by domain, and only where enough came free.
"""

from collections.abc import Iterable
from typing import NamedTuple

from muster.model.value import JobId, NodeId
from muster.schedule.books import Holding
from muster.schedule.fit import domain_of
from muster.schedule.index import Room
from muster.schedule.ledger import by_node
from muster.schedule.needs import Option, Tier
from muster.schedule.search import Search

Domain = tuple[str, ...]


class Clearance(NamedTuple):
    """The group fits: after whom, on which nodes how many tasks, and who has to leave there."""

    last: Holding
    tasks: dict[NodeId, int]
    leaving: dict[JobId, Holding]


class Walk:
    """One group, one option; jobs leave until the group fits in some domain."""

    def __init__(self, search: Search, tier: Tier, option: Option) -> None:
        self._search = search
        self._option = option
        self._ledger = search.standing.ledger
        self._gone: dict[NodeId, dict[JobId, Holding]] = {}
        self._fits: dict[NodeId, int] = {}
        self._by_domain: dict[Domain, int] = {}
        self._nodes: dict[Domain, list[NodeId]] = {}
        self._gpu_milli = search.need.amount(option.gpus).gpu_milli
        self._left_milli: dict[NodeId, int] = {}
        if search.group.count > 1:
            for node_id, fit in search.table(tier, option).fits():
                self._set_fit(self._ledger.rooms[node_id], fit)

    def until_it_fits(self, leaving: Iterable[Holding]) -> Clearance | None:
        """Let them leave in this order until the group fits; None if it never does."""
        for holding in leaving:
            for node_id in self._leave(holding):
                domain = self._recount(node_id)
                if domain is not None and self._by_domain[domain] >= self._search.group.fewest:
                    return self._clearance(holding, domain)
        return None

    def _leave(self, holding: Holding) -> list[NodeId]:
        """The nodes on which it now pays to look closer."""
        worth: list[NodeId] = []
        for node_id, placements in by_node(holding.placements).items():
            room = self._ledger.rooms.get(node_id)
            if room is None or not self._may_use(room):
                continue
            self._gone.setdefault(node_id, {})[holding.job.id] = holding
            left_milli = self._left_milli.get(node_id)
            if left_milli is None:
                left_milli = sum(state.left_milli for state in room.devices if state is not None)
            left_milli += sum(each.amount.gpu_milli for each in placements)
            self._left_milli[node_id] = left_milli
            if left_milli >= self._gpu_milli:
                worth.append(node_id)
        return worth

    def _may_use(self, room: Room) -> bool:
        search, kind = self._search, room.kind
        if not room.is_listed or kind.pool.name != self._option.pool or room.promise is not None:
            return False
        offer = self._ledger.offer(kind, search.need)
        if offer is None or self._option.gpus not in offer.gpus or kind in search.shut:
            return False
        # An exclusive task wants a node that others have left, which is what this is about.
        return search.allows is None or search.need.where.exclusive or search.allows(room)

    def _recount(self, node_id: NodeId) -> Domain | None:
        room = self._ledger.rooms[node_id]
        gone = self._gone[node_id].keys()
        fit = self._ledger.fit_without(room, gone, self._search.need, self._option.gpus)
        return self._set_fit(room, fit)

    def _set_fit(self, room: Room, fit: int) -> Domain | None:
        before = self._fits.get(room.node.id, 0)
        if fit <= before or room.promise is not None:
            return None
        domain = self._domain(room)
        if not before:
            self._nodes.setdefault(domain, []).append(room.node.id)
        self._fits[room.node.id] = fit
        self._by_domain[domain] = self._by_domain.get(domain, 0) + fit - before
        return domain

    def _domain(self, room: Room) -> Domain:
        group = self._search.group
        if group.count == 1:
            return (room.node.id,)
        return domain_of(room.node, group.together, room.kind.pool.levels)

    def _clearance(self, last: Holding, domain: Domain) -> Clearance:
        """Of the nodes in the domain, those that hold the most tasks, until all have a place."""
        nodes = sorted(self._nodes[domain], key=lambda node: (-self._fits[node], node))
        missing, tasks = self._search.group.fewest, dict[NodeId, int]()
        leaving: dict[JobId, Holding] = {}
        for node_id in nodes:
            if missing:
                tasks[node_id] = min(missing, self._fits[node_id])
                missing -= tasks[node_id]
                leaving |= self._gone.get(node_id, {})
        return Clearance(last, tasks, leaving)
