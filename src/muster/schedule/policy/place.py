"""Where a whole job goes: every group of it, in one cluster, or nothing is taken."""

from typing import NamedTuple

from muster.model.job import TaskGroup
from muster.model.placement import DeviceShare, Placement
from muster.model.reason import NeverFits, NoRoom, NoSuchPool, WaitReason
from muster.model.resources import NOTHING, Resources
from muster.model.value import ClusterName, Instant
from muster.schedule.policy.search import (
    ALL_OPEN,
    CycleState,
    Search,
    is_bounded,
    no_room,
)
from muster.schedule.room.find import Bounds, Finder, Seat
from muster.schedule.room.index import Room
from muster.schedule.room.ledger import Ledger
from muster.schedule.room.needs import PoolOption, Tier
from muster.schedule.room.profiles import GpuNeed
from muster.schedule.state.accounts import Portion
from muster.schedule.state.quota import is_everywhere
from muster.schedule.state.roster import WaitingJob


class Placed(NamedTuple):
    """A job that has its room."""

    cluster: ClusterName
    placements: tuple[Placement, ...]
    portions: tuple[Portion, ...]
    ends_at: Instant


class _GroupPlaced(NamedTuple):
    placements: tuple[Placement, ...]
    portion: Portion


class _Task(NamedTuple):
    room: Room
    devices: tuple[DeviceShare, ...]


def place(entry: WaitingJob, cycle: CycleState) -> Placed | WaitReason:
    """Take room for the whole job, or say what is missing."""
    why: WaitReason | None = _crowded_out(entry, cycle)
    if why is not None:
        return why
    for cluster in cycle.ledger.catalogue.clusters(entry.shape.groups[0].need):
        with cycle.ledger.trial() as trial:
            placed = _place_in(cluster, entry, cycle)
            if isinstance(placed, Placed):
                trial.keep()
                return placed
        why = why or placed
    return why or _nowhere(entry, cycle)


def _crowded_out(entry: WaitingJob, cycle: CycleState) -> NoRoom | None:
    """The usual answer, found quickly: nowhere a seat for its one task, and nothing else to ask."""
    shape, ledger = entry.shape, cycle.ledger
    group, need = shape.groups[0]
    is_usual = shape.is_single and len(shape.groups) == 1 and not shape.is_picky
    if not is_usual or ledger.promised or not _is_timeless(entry, ledger):
        return None
    if ledger.private_labels or cycle.neighbours.matters_to(entry.job.spec):
        return None
    order = ledger.catalogue.tiers(need)
    has_seat = any(ledger.finder(need, tier, ALL_OPEN).has_seat() for tier in order)
    return no_room(group, need, ledger) if order and not has_seat else None


def _is_timeless(entry: WaitingJob, ledger: Ledger) -> bool:
    """Is no kind of node closed to the job for the time that it takes?"""
    return not is_bounded(entry) and not ledger.catalogue.timed_kinds


def place_more(search: Search, bounds: Bounds, already: int) -> tuple[Placement, ...]:
    """Further tasks for a group that runs, one at a time, until it is whole or room runs out."""
    group, need = search.group, search.need
    added: tuple[Placement, ...] = ()
    portions: list[Portion] = []
    most_here = need.where.max_per_node
    while already + len(added) < group.count and most_here is None:
        found = _first_seat(search, bounds)
        if found is None or (found[0].taking is not None and found[0].taking.cuts):
            # A device is cut again for a job that starts, not for one more task.
            break
        seat, gpus = found
        portion = search.portion(seat.room.kind.pool.name, gpus, 1)
        if search.refusal([*portions, portion]) or _over_class(search, [*portions, portion]):
            break
        task = _take(search, seat)
        added += _placements(group, search.amount(gpus), [task], first=already + len(added))
        portions.append(portion)
    return added


def _over_class(search: Search, portions: list[Portion]) -> WaitReason | None:
    """Would a job that runs already, with this much more, be over what its class allows?"""
    total = sum((portion.amount for portion in portions), NOTHING)
    entry, books = search.entry, search.cycle.books
    return books.over_class_limit(entry.job.spec, entry.job_class, total, jobs=0)


def never_fits(entry: WaitingJob, cycle: CycleState) -> NeverFits | None:
    """The group of which not even the empty clusters could hold enough tasks."""
    for group, need in entry.shape.groups:
        most = cycle.ledger.catalogue.at_most(need)
        if most < group.fewest:
            return NeverFits(group=group.name, wanted=group.fewest, at_most=most)
    return None


def _nowhere(entry: WaitingJob, cycle: CycleState) -> WaitReason:
    """Not a single node is of a kind that the job accepts."""
    spec, snapshot, group = entry.job.spec, cycle.snapshot, entry.shape.groups[0].group
    reachable = {name for name, cluster in snapshot.clusters.items() if cluster.reachable}
    pools = {
        name for name, pool in snapshot.pools.items() if pool.starts and pool.cluster in reachable
    }
    if not pools and snapshot.pools:
        return NoSuchPool(name=min(spec.pools or snapshot.pools))
    for named, known in ((spec.pools, pools), (spec.clusters, reachable)):
        if named and not known.intersection(named):
            return NoSuchPool(name=named[0])
    return never_fits(entry, cycle) or NeverFits(group=group.name, wanted=group.fewest, at_most=0)


def _place_in(cluster: ClusterName, entry: WaitingJob, cycle: CycleState) -> Placed | WaitReason:
    placements: tuple[Placement, ...] = ()
    portions: list[Portion] = []
    for group_need in entry.shape.groups:
        found = _place_group(Search(entry, group_need, cycle), cluster, portions)
        if not isinstance(found, _GroupPlaced):
            return found
        placements += found.placements
        portions.append(found.portion)
    if entry.is_capped:
        total = sum((portion.amount for portion in portions), NOTHING)
        over = cycle.books.over_class_limit(entry.job.spec, entry.job_class, total)
        if over is not None:
            return over
    until = max([cycle.ends_at(entry, portion.pool) for portion in portions])
    return Placed(cluster, placements, tuple(portions), until)


def _place_group(
    search: Search, cluster: ClusterName, before: list[Portion]
) -> _GroupPlaced | WaitReason:
    why: WaitReason | None = None
    for tier in search.cycle.ledger.catalogue.tiers(search.need):
        if tier[-1] == cluster:
            place_tasks = _place_one if search.group.count == 1 else _place_many
            found = place_tasks(search, tier, before)
            if isinstance(found, _GroupPlaced):
                return found
            why = why or found
    return why or search.no_room(0)


def _place_one(search: Search, tier: Tier, before: list[Portion]) -> _GroupPlaced | WaitReason:
    bounds = search.bounds()
    finder = search.finder(tier)
    why: WaitReason | None = None
    while True:
        found = _best_seat(search, finder, tier, bounds)
        if found is None:
            return why or _kept_by_time(search) or search.no_room(0)
        seat, gpus = found
        pool = seat.room.kind.pool.name
        portion = search.portion(pool, gpus, 1)
        refusal = search.refusal([*before, portion])
        if refusal is None:
            task = _take(search, seat)
            _seal(search, task.room)
            placements = _placements(search.group, search.amount(gpus), [task])
            return _GroupPlaced(placements, portion)
        why = refusal
        if is_everywhere(refusal):
            return refusal
        bounds = bounds._replace(closed=bounds.closed | search.alike(pool, gpus))


def _place_many(search: Search, tier: Tier, before: list[Portion]) -> _GroupPlaced | WaitReason:
    group, why = search.group, None
    for option in search.cycle.ledger.catalogue.options(search.need)[tier]:
        most = _most_allowed(search, option, before)
        if not isinstance(most, int):
            why = why or most
            continue
        table = search.table_now(tier, option)
        shares = table.best_fit(group.together, fewest=group.fewest, most=most)
        if shares:
            return _take_many(search, option, shares)
        why = why or search.no_room(min(table.largest(group.together), group.fewest - 1))
    return _kept_by_time(search) or why or search.no_room(0)


def _kept_by_time(search: Search) -> WaitReason | None:
    """Why it may not have nodes that would do: if they have room, or it could have no others."""
    why = search.shut.why
    if why is None or not search.has_open_kinds or search.would_fit_on_shut():
        return why
    return None


def _most_allowed(search: Search, option: PoolOption, before: list[Portion]) -> int | WaitReason:
    """How many tasks quota and promises allow, down to the fewest that may start."""
    group = search.group
    for count in range(group.count, group.fewest, -1):
        if search.refusal([*before, search.portion(option.pool, option.gpus, count)]) is None:
            return count
    fewest = search.portion(option.pool, option.gpus, group.fewest)
    return search.refusal([*before, fewest]) or group.fewest


def _take_many(search: Search, option: PoolOption, shares: list[tuple[Room, int]]) -> _GroupPlaced:
    tasks: list[_Task] = []
    profiles, gpus = search.cycle.ledger.profiles, option.gpus
    for room, count in shares:
        for _ in range(count):
            seat = _promised_seat(search, room, gpus) if room.promises else None
            if seat is None:
                taking = None if gpus is None else profiles.taking(room.views[gpus.family], gpus)
                seat = Seat(room, taking)
            tasks.append(_take(search, seat))
        _seal(search, room)
    amount = search.amount(option.gpus)
    portion = search.portion(option.pool, option.gpus, len(tasks))
    return _GroupPlaced(_placements(search.group, amount, tasks), portion)


def _take(search: Search, seat: Seat) -> _Task:
    stay = search.stay(seat.room.kind.pool.name)
    return _Task(seat.room, search.cycle.ledger.take(seat, search.need, stay))


def _seal(search: Search, room: Room) -> None:
    if search.need.where.exclusive:
        search.cycle.ledger.seal(room)


def _best_seat(
    search: Search, finder: Finder, tier: Tier, bounds: Bounds
) -> tuple[Seat, GpuNeed | None] | None:
    """The best seat, or one that is promised to others, if the job will have left in time.

    Who must be gone by then tries that first; who is only expected to be gone, last.
    """
    if not search.cycle.ledger.promised:
        return finder.best(bounds)
    if search.has_limit:
        return _on_promised(search, tier, bounds) or finder.best(bounds)
    return finder.best(bounds) or _on_promised(search, tier, bounds)


def _on_promised(search: Search, tier: Tier, bounds: Bounds) -> tuple[Seat, GpuNeed | None] | None:
    """A seat that is promised to a job for later, if this job will have left by then."""
    for room, offer in search.in_time(tier):
        for gpus in offer.gpus:
            seat = _promised_seat(search, room, gpus)
            if seat is not None and (room.kind, gpus) not in bounds.closed:
                return seat, gpus
    return None


def _promised_seat(search: Search, room: Room, gpus: GpuNeed | None) -> Seat | None:
    """A seat in a room that is promised in part, for as long as the job stays."""
    need, ledger, stay = search.need, search.cycle.ledger, search.stay(room.kind.pool.name)
    cpu_milli, memory_mib = room.host_for(stay)
    if cpu_milli < need.cpu_milli or memory_mib < need.memory_mib:
        return None
    if gpus is None:
        return Seat(room, None, is_promised=True)
    taking = ledger.profiles.taking(ledger.views_for(room, stay)[gpus.family], gpus)
    return None if taking is None else Seat(room, taking, is_promised=True)


def _first_seat(search: Search, bounds: Bounds) -> tuple[Seat, GpuNeed | None] | None:
    for tier in search.cycle.ledger.catalogue.tiers(search.need):
        found = search.finder(tier).best(bounds)
        if found is not None:
            return found
    return None


def _placements(
    group: TaskGroup, amount: Resources, tasks: list[_Task], *, first: int = 0
) -> tuple[Placement, ...]:
    return tuple(
        [
            Placement(
                group=group.name,
                index=index,
                node=room.node.id,
                pool=room.node.pool,
                amount=amount,
                devices=devices,
            )
            for index, (room, devices) in enumerate(tasks, start=first)
        ]
    )
