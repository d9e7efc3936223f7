"""One job's search: what it may have, where it may look, and what keeps it from there."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from muster.model.job import Job, TaskGroup
from muster.model.policy import Policy
from muster.model.reason import NoRoom, WaitReason
from muster.model.resources import Resources
from muster.model.snapshot import Snapshot
from muster.model.value import ClassName, Instant, PoolName
from muster.schedule.policy.merit import waited_since
from muster.schedule.policy.service import Service
from muster.schedule.room.find import Bounds, Finder
from muster.schedule.room.gang import GangTable
from muster.schedule.room.index import NodeKind, Room, Shut, Stay
from muster.schedule.room.ledger import Ledger
from muster.schedule.room.needs import Need, Offer, PoolOption, Tier
from muster.schedule.room.profiles import GpuNeed
from muster.schedule.state.accounts import WITHOUT_END, Portion, portion_of
from muster.schedule.state.books import Books
from muster.schedule.state.calendar import Calendar, likely_time, time_limit
from muster.schedule.state.neighbours import Neighbours
from muster.schedule.state.roster import GroupNeed, WaitingJob

Closed = frozenset[tuple[NodeKind, GpuNeed | None]]


class ShutKinds(NamedTuple):
    """Kinds of node that would do but for the time a job takes, and why."""

    whys: Mapping[NodeKind, WaitReason]
    kinds: Shut

    @property
    def why(self) -> WaitReason | None:
        """Why the first of them is closed."""
        return next(iter(self.whys.values()), None)


ShutKey = tuple[Need, int | None, ClassName, tuple[str, ...]]
"""Jobs to which the same kinds are closed: by need, time bucket, class and reservations."""


class CycleState(NamedTuple):
    """How things stand while one plan is made."""

    snapshot: Snapshot
    policy: Policy
    ledger: Ledger
    books: Books
    calendar: Calendar
    neighbours: Neighbours
    service: Service
    shut: dict[ShutKey, ShutKinds]

    @property
    def now(self) -> Instant:
        """The instant of the snapshot."""
        return self.snapshot.now

    def is_own(self, entry: WaitingJob) -> bool:
        """Is the job within what is guaranteed to its queue?"""
        return self.books.quotas.is_own(entry.lane.queue, entry.shape.least_gpu_milli)

    @property
    def may_take_saved(self) -> bool:
        """Do jobs run that might be stopped by service, because they save?"""
        return self.policy.preempt.by_service_if_saved and bool(self.books.with_checkpoint)

    def is_overdue(self, job: Job) -> bool:
        """Has it waited for longer than anybody should?"""
        patience = self.policy.patience
        return bool(patience) and waited_since(job) + patience < self.now

    def stay(self, entry: WaitingJob, pool: PoolName) -> Stay:
        """How long the job stays if it begins now in this pool."""
        limit = time_limit(entry.job.spec, self.snapshot.pools[pool], self.policy)
        at_most = Instant(min(WITHOUT_END, self.now + limit))
        return Stay(likely=self.ends_at(entry, pool), at_most=at_most)

    def ends_at(self, entry: WaitingJob, pool: PoolName) -> Instant:
        """When the job must have ended if it begins now in this pool, or is expected to."""
        is_bound = bool(self.snapshot.reservations)
        limit = likely_time(entry.job, self.snapshot.pools[pool], self.policy, is_bound=is_bound)
        return Instant(min(WITHOUT_END, self.now + limit))


class Search:
    """The search for one group of one job."""

    def __init__(self, entry: WaitingJob, group_need: GroupNeed, cycle: CycleState) -> None:
        self.entry = entry
        self.group, self.need = group_need
        self.cycle = cycle
        self.shut = _shut_kinds(entry, self.need, cycle)
        self._stays: dict[PoolName, Stay] = {}
        self.allows = _room_filter(entry, self.need, cycle)

    def stay(self, pool: PoolName) -> Stay:
        """How long the job stays if it begins now in this pool."""
        known = self._stays.get(pool)
        if known is None:
            known = self._stays[pool] = self.cycle.stay(self.entry, pool)
        return known

    @property
    def has_limit(self) -> bool:
        """Must the job have ended by some time, wherever it runs?"""
        return self.entry.job.spec.time_limit is not None

    @property
    def has_open_kinds(self) -> bool:
        """Are there nodes that would do, and that the time it takes does not keep it from?"""
        catalogue, shut = self.cycle.ledger.catalogue, self.shut.kinds
        return any(
            kind not in shut and catalogue.offer(kind, self.need) is not None
            for kind in catalogue.kinds.values()
        )

    def would_fit_on_shut(self) -> bool:
        """Is there room for the group now, were no kind of node shut to it?"""
        tiers = self.cycle.ledger.catalogue.tiers(self.need)
        return any(self._has_room_in(tier) for tier in tiers)

    def _has_room_in(self, tier: Tier) -> bool:
        ledger, group, need = self.cycle.ledger, self.group, self.need
        if group.count == 1:
            return ledger.finder(need, tier, ALL_OPEN).best(self.bounds()) is not None
        options = ledger.catalogue.options(need)[tier]
        tables = (ledger.table(need, tier, option, ALL_OPEN) for option in options)
        allowed = (each if self.allows is None else each.among(self.allows) for each in tables)
        return any(each.largest(group.together) >= group.fewest for each in allowed)

    def in_time(self, tier: Tier, pool: PoolName | None = None) -> Iterator[tuple[Room, Offer]]:
        """Rooms of which the job may use what is promised to others: it leaves in time."""
        catalogue = self.cycle.ledger.catalogue
        for _, room in sorted(self.cycle.ledger.promised.items()):
            kind = room.kind
            if not room.is_listed or kind in self.shut.kinds or pool not in (None, kind.pool.name):
                continue
            stay = self.stay(kind.pool.name)
            if all(stay.outlives(promise) for promise in room.promises):
                continue
            offer = catalogue.offer(kind, self.need)
            if offer is not None and offer.tier == tier and self._may_have(room):
                yield room, offer

    def _may_have(self, room: Room) -> bool:
        return self.allows is None or self.allows(room)

    def bounds(self) -> Bounds:
        """What a finder must leave out."""
        return Bounds(NONE, self.allows)

    def finder(self, tier: Tier) -> Finder:
        """Finds single seats in one tier."""
        return self.cycle.ledger.finder(self.need, tier, self.shut.kinds)

    def table(self, tier: Tier, option: PoolOption) -> GangTable:
        """Tells how many tasks fit where for any length of time; kept from search to search."""
        table = self.cycle.ledger.table(self.need, tier, option, self.shut.kinds)
        return table if self.allows is None else table.among(self.allows)

    def table_now(self, tier: Tier, option: PoolOption) -> GangTable:
        """The same, with what is promised to others for when this job will have left."""
        table, stay = self.table(tier, option), self.stay(option.pool)
        fit_for = self.cycle.ledger.remains.fit_for
        more = {
            room: fit_for(room, self.need, option.gpus, stay)
            for room, offer in self.in_time(tier, option.pool)
            if option.gpus in offer.gpus
        }
        # An expectation may be wrong: only who must be gone by then is sent there first.
        return table.beside(more, first=self.has_limit) if more else table

    def portion(self, pool: PoolName, gpus: GpuNeed | None, count: int) -> Portion:
        """What so many tasks come to."""
        model, part, each = (None, None, 0) if gpus is None else (gpus.model, gpus.part, gpus.count)
        return portion_of(pool, model, self.amount(gpus) * count, part, each * count)

    def amount(self, gpus: GpuNeed | None) -> Resources:
        """What one task comes to on the model that was settled."""
        return self.cycle.ledger.catalogue.amount(self.need, gpus)

    def refusal(self, portions: list[Portion]) -> WaitReason | None:
        """Why quota or a promise forbids this much, or None."""
        spec, calendar = self.entry.job.spec, self.cycle.calendar
        refusal = self.cycle.books.quotas.refusal(spec.queue, portions)
        if refusal is None and calendar.has_amounts:
            limit = self.stay(portions[-1].pool).likely - self.cycle.now
            refusal = calendar.refusal(spec, portions, limit)
        return refusal

    def no_room(self, placed: int) -> NoRoom:
        """The reason when nothing but room is missing."""
        return no_room(self.group, self.need, self.cycle.ledger, placed)

    def alike(self, pool: PoolName, gpus: GpuNeed | None) -> Closed:
        """All nodes on which the job would count against the same quota."""
        kinds = self.cycle.ledger.catalogue.kinds.values()
        return frozenset((kind, gpus) for kind in kinds if kind.pool.name == pool)


NONE: Closed = frozenset()
ALL_OPEN: Shut = frozenset()
NOTHING_SHUT = ShutKinds({}, ALL_OPEN)


def no_room(group: TaskGroup, need: Need, ledger: Ledger, placed: int = 0) -> NoRoom:
    """The reason when nothing but room is missing."""
    nodes = ledger.catalogue.usable_nodes(need)
    return NoRoom(group=group.name, placed=placed, wanted=group.fewest, nodes=nodes)


def is_bounded(entry: WaitingJob) -> bool:
    """Does it depend on the time where the job may go, even among nodes that are always open?"""
    spec = entry.job.spec
    by_time = spec.deadline is not None or entry.job_class.max_time is not None
    return by_time or spec.reservation is not None


def _shut_kinds(entry: WaitingJob, need: Need, cycle: CycleState) -> ShutKinds:
    """Kinds that would do but for the time the job takes; usually none."""
    spec, ledger, calendar = entry.job.spec, cycle.ledger, cycle.calendar
    kinds = ledger.catalogue.kinds if is_bounded(entry) else ledger.catalogue.timed_kinds
    if not kinds:
        return NOTHING_SHUT
    if spec.deadline is not None:
        return _find_shut(kinds, entry, need, cycle)
    key = (need, calendar.bucket(spec), spec.job_class, calendar.guest_of(spec))
    known = cycle.shut.get(key)
    if known is None:
        known = cycle.shut[key] = _find_shut(kinds, entry, need, cycle)
    return known


def _find_shut(
    kinds: Mapping[str, NodeKind], entry: WaitingJob, need: Need, cycle: CycleState
) -> ShutKinds:
    shut: dict[NodeKind, WaitReason] = {}
    for _, kind in sorted(kinds.items()):
        if cycle.ledger.catalogue.offer(kind, need) is not None:
            why = cycle.calendar.closed(kind, entry.job.spec, entry.job_class)
            if why is not None:
                shut[kind] = why
    return ShutKinds(shut, frozenset(shut)) if shut else NOTHING_SHUT


def _room_filter(entry: WaitingJob, need: Need, cycle: CycleState) -> Callable[[Room], bool] | None:
    where = need.where
    beside = cycle.neighbours.filter(entry.job.spec, where)
    private = cycle.ledger.private_labels
    rules = [rule for rule in where.require if rule.key in private] if private else []
    if not need.is_picky and not rules and beside is None:
        return None
    wanted, unwanted = frozenset(where.nodes), frozenset(where.not_nodes)

    def allows(room: Room) -> bool:
        node = room.node
        if (wanted and node.id not in wanted) or node.id in unwanted:
            return False
        if where.exclusive and room.tenants:
            return False
        if not all(rule.accepts(node.labels) for rule in rules):
            return False
        return beside is None or beside(room)

    return allows
