"""If jobs left one after the other, when would a waiting one fit?

Backfill lets them leave in the order in which they must end, preemption in the order of the work
that would be lost. How many tasks then fit is counted by domain, and only where enough came free.
"""

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import NamedTuple

from muster.model.placement import Placement
from muster.model.value import Instant, JobId, NodeId
from muster.schedule.policy.search import Search
from muster.schedule.room.fit import domain_of
from muster.schedule.room.index import Room, Tenant
from muster.schedule.room.needs import PoolOption, Tier, tasks_on_host
from muster.schedule.room.profiles import Family, GpuNeed
from muster.schedule.room.slices import DeviceState, Use
from muster.schedule.state.books import Holding

Domain = tuple[str, ...]


class Clearance(NamedTuple):
    """The group fits: from when on, on which nodes how many tasks, and who has to leave there."""

    at: Instant
    tasks: dict[NodeId, int]
    leaving: dict[JobId, Holding]


class Prefer(Enum):
    """Which nodes, of those on which there will be room.

    ROOMY: where most tasks fit. BUSY: of these, where others have to leave first, so that what is
    free now stays open. FIRST: where there was room first.
    """

    ROOMY = auto()
    BUSY = auto()
    FIRST = auto()


class Due(NamedTuple):
    """A job that will have its promised room and leave it again, as if it ran already."""

    job: JobId
    rooms: tuple[Room, ...]
    ends_at: Instant


Leaving = tuple[Instant, Sequence[Holding | Due]]
"""When these leave, all together."""


class _Spot:
    """One node on the walk: who has left it, and what is free there now.

    As long as only whole devices are given back, `idle` and the rest can be counted along.
    due: the promises that still hold there.
    """

    __slots__ = ("cpu_milli", "due", "gone", "idle", "is_plain", "left_milli", "memory_mib", "room")

    def __init__(self, room: Room, gpus: GpuNeed | None) -> None:
        self.room = room
        self.gone: dict[JobId, Holding] = {}
        self.due = {promise.job: promise for promise in room.promises}
        self.cpu_milli, self.memory_mib = room.cpu_milli, room.memory_mib
        self.left_milli = sum([state.left_milli for state in room.devices if state is not None])
        is_usual = not room.promises and not any(map(_is_special, room.tenants.values()))
        self.is_plain = is_usual and _is_whole(gpus)
        self.idle = 0
        if self.is_plain and gpus is not None:
            self.idle = sum([each is not None and _serves(each, gpus) for each in room.devices])


class Walk:
    """One group, one option; jobs leave until the group fits in some domain.

    prefer: which nodes it takes of those that would do.
    """

    def __init__(
        self, search: Search, tier: Tier, option: PoolOption, *, prefer: Prefer = Prefer.ROOMY
    ) -> None:
        self._search = search
        self._prefer = prefer
        self._option = option
        self._ledger = search.cycle.ledger
        self._spots: dict[NodeId, _Spot | None] = {}
        self._fits: dict[NodeId, int] = {}
        self._by_domain: dict[Domain, int] = {}
        self._nodes: dict[Domain, list[NodeId]] = {}
        self._gpu_milli = search.amount(option.gpus).gpu_milli
        if search.group.count > 1:
            for node_id, fit in search.table(tier, option).fits():
                self._set_fit(self._ledger.rooms[node_id], fit)

    def until_it_fits(self, leaving: Iterable[Leaving]) -> Clearance | None:
        """Let them leave in this order until the group fits; None if it never does."""
        for at, together in leaving:
            enough: Domain | None = None
            for each in together:
                for spot in self._leave(each):
                    domain = self._set_fit(spot.room, self._fit(spot))
                    if domain is not None and self._holds_all(domain):
                        enough = domain if enough is None else enough
            if enough is not None:
                return self._clearance(at, enough)
        return None

    def _holds_all(self, domain: Domain) -> bool:
        return self._by_domain[domain] >= self._search.group.fewest

    def _leave(self, each: Holding | Due) -> list[_Spot]:
        """The nodes on which it now pays to look closer."""
        return self._end_promise(each) if isinstance(each, Due) else self._vacate(each)

    def _end_promise(self, due: Due) -> list[_Spot]:
        touched: list[_Spot] = []
        for room in due.rooms:
            node_id = room.node.id
            spot = self._spots[node_id] if node_id in self._spots else self._meet(node_id)
            if spot is not None:
                spot.due.pop(due.job, None)
                touched.append(spot)
        return touched

    def _vacate(self, holding: Holding) -> list[_Spot]:
        touched: dict[NodeId, _Spot] = {}
        for placement in holding.placements:
            node_id = placement.node
            spot = self._spots[node_id] if node_id in self._spots else self._meet(node_id)
            if spot is None:
                continue
            spot.gone[holding.job.id] = holding
            spot.left_milli += placement.amount.gpu_milli
            if spot.is_plain:
                self._give_back(spot, placement)
            touched[node_id] = spot
        return [spot for spot in touched.values() if spot.left_milli >= self._gpu_milli]

    def _meet(self, node_id: NodeId) -> _Spot | None:
        room = self._ledger.rooms.get(node_id)
        is_usable = room is not None and self._may_use(room)
        spot = _Spot(room, self._option.gpus) if room is not None and is_usable else None
        self._spots[node_id] = spot
        return spot

    def _give_back(self, spot: _Spot, placement: Placement) -> None:
        gpus = self._option.gpus
        spot.cpu_milli += placement.amount.cpu_milli
        spot.memory_mib += placement.amount.memory_mib
        for share in placement.devices:
            if share.slice is not None:
                spot.is_plain = False
                return
            state = self._ledger.remains.resting(spot.room).get(share.device)
            spot.idle += gpus is not None and state is not None and _serves(state, gpus)

    def _may_use(self, room: Room) -> bool:
        search, kind = self._search, room.kind
        if not room.is_listed or kind.pool.name != self._option.pool:
            return False
        offer = self._ledger.catalogue.offer(kind, search.need)
        if offer is None or self._option.gpus not in offer.gpus or kind in search.shut.kinds:
            return False
        # An exclusive task wants a node that others have left, which is what this is about.
        return search.allows is None or search.need.where.exclusive or search.allows(room)

    def _fit(self, spot: _Spot) -> int:
        need, gpus = self._search.need, self._option.gpus
        if not spot.is_plain or need.where.exclusive:
            gone, due = spot.gone.keys(), spot.due.values()
            return self._ledger.remains.fit_without(spot.room, gone, need, gpus, due)
        fit = tasks_on_host(need, spot.cpu_milli, spot.memory_mib)
        return fit if gpus is None else min(fit, spot.idle // gpus.count)

    def _set_fit(self, room: Room, fit: int) -> Domain | None:
        before = self._fits.get(room.node.id, 0)
        if fit <= before:
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

    def _clearance(self, at: Instant, domain: Domain) -> Clearance:
        """Of the nodes in the domain, those that hold the most tasks, until all have a place."""
        nodes = self._nodes[domain]
        if self._prefer is not Prefer.FIRST:
            nodes = sorted(nodes, key=self._preference)
        missing, tasks = self._search.group.fewest, dict[NodeId, int]()
        leaving: dict[JobId, Holding] = {}
        for node_id in nodes:
            if missing:
                tasks[node_id] = min(missing, self._fits[node_id])
                missing -= tasks[node_id]
                spot = self._spots.get(node_id)
                leaving |= {} if spot is None else spot.gone
        return Clearance(at, tasks, leaving)

    def _preference(self, node: NodeId) -> tuple[int, bool, NodeId]:
        is_free = self._spots.get(node) is None
        return (-self._fits[node], is_free and self._prefer is Prefer.BUSY, node)


def _is_special(tenant: Tenant) -> bool:
    """Does it hold, or keep from others, something else than what its placements name?"""
    return tenant.is_exclusive or tenant.is_suspended or tenant.is_unready


def _is_whole(gpus: GpuNeed | None) -> bool:
    return gpus is None or gpus.family is Family.WHOLE


def _serves(state: DeviceState, gpus: GpuNeed) -> bool:
    """Would a task that wants whole GPUs take this device?"""
    is_idle = state.use is Use.IDLE and (state.layout is None or gpus.may_cut)
    return is_idle and state.model == gpus.model and state.memory_mib >= gpus.min_memory_mib
