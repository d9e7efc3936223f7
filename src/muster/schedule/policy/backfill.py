"""When a blocked job can start, and room promised to it for then.

Jobs behind it may start early only on what is not promised, or if they will have left in time.
Every running job is taken to run to its limit, which is safe; one without a limit for as long as
jobs like it did, which is a bet. So that bets are lost only for so long, who has waited for too
long gets a firm promise, for which only limits count.
"""

from collections.abc import Iterator, Mapping
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple

from muster.model.reason import Behind
from muster.model.value import DeviceId, Instant, JobId, NodeId, PoolName
from muster.schedule.policy.search import CycleState, Search
from muster.schedule.policy.walk import Clearance, Due, Leaving, Prefer, Walk
from muster.schedule.room.index import A_MOMENT, Promise, Room, Tenant
from muster.schedule.room.ledger import Ledger
from muster.schedule.room.needs import Need
from muster.schedule.state.accounts import WITHOUT_END
from muster.schedule.state.calendar import time_limit
from muster.schedule.state.roster import WaitingJob


class _Found(NamedTuple):
    """From when on all tasks of a group fit, and where."""

    search: Search
    clearance: Clearance


class Terms(NamedTuple):
    """How room is promised.

    horizon: at most so many jobs are thought away to find a date, all of them if None.
    may_bet: those who have to leave may be without a limit; then the date is a bet.
    is_firm: the job has waited for too long. It gets the nodes on which nobody has begun for the
    longest time: nobody begins there any more who need not be gone in time, so that in the next
    plan these are the same nodes, until they are free.
    """

    horizon: int | None
    may_bet: bool
    is_firm: bool


def earliest(entry: WaitingJob, cycle: CycleState, terms: Terms) -> Instant | None:
    """When the job can start; None if that is unknown. Promises it room for then."""
    if not all(_somebody_ends(need, cycle) for _, need in entry.shape.groups):
        return None
    ledger, found = cycle.ledger, list[_Found]()
    before = {node: room.promises for node, room in ledger.promised.items()}
    for group_need in entry.shape.groups:
        search = Search(entry, group_need, cycle)
        clearance = _clearance(search, terms)
        if clearance is None or not (terms.may_bet or _is_certain(clearance, cycle)):
            _promise_as_before(ledger, before)
            return None
        found.append(_Found(search, clearance))
        # The next group finds no room where this one will be.
        _promise(search, clearance, Span(clearance.at, Instant(WITHOUT_END), terms.is_firm))
    at = Instant(max(cycle.now + 1, *(each.clearance.at for each in found)))
    _promise_as_before(ledger, before)
    for search, clearance in found:
        until = _leaves_at(search, clearance, at)
        _promise(search, clearance, Span(at, until, terms.is_firm))
    return at


def _is_certain(clearance: Clearance, cycle: CycleState) -> bool:
    """Must everybody who has to leave be gone by some time?"""
    pools, policy = cycle.snapshot.pools, cycle.policy
    return all(
        time_limit(each.spec, pools[pool], policy) < WITHOUT_END
        for each in clearance.leaving.values()
        for pool, _ in each.by_pool
    )


def behind(entry: WaitingJob, cycle: CycleState) -> Behind | None:
    """Of what is promised to others, the last to fall due on which the job would fit now."""
    group_need, *others = entry.shape.groups
    if not cycle.ledger.promised or others or entry.shape.is_picky:
        return None
    group, need = group_need
    rooms = [room for room in cycle.ledger.promised.values() if _fits_on(room, need, cycle.ledger)]
    if group.count > 1 and not _fits_beside(rooms, Search(entry, group_need, cycle)):
        return None
    promises = [each for room in rooms for each in room.promises]
    if not promises:
        return None
    last = max(promises, key=lambda each: (each.at, each.job))
    return Behind(job=last.job, starts_at=last.at)


def _fits_on(room: Room, need: Need, ledger: Ledger) -> bool:
    if not room.is_listed or room.cpu_milli < need.cpu_milli:
        return False
    offer = ledger.catalogue.offer(room.kind, need)
    return offer is not None and any(
        ledger.remains.fit_for(room, need, gpus, A_MOMENT) for gpus in offer.gpus
    )


def _fits_beside(rooms: list[Room], search: Search) -> bool:
    """Would all tasks of a group fit now, were nothing promised of these rooms?"""
    catalogue, group = search.cycle.ledger.catalogue, search.group
    fit_for = search.cycle.ledger.remains.fit_for
    for tier in catalogue.tiers(search.need):
        for option in catalogue.options(search.need)[tier]:
            more = {
                room: fit_for(room, search.need, option.gpus, A_MOMENT)
                for room in rooms
                if room.kind.pool.name == option.pool
            }
            table = search.table(tier, option).beside(more, first=False)
            if table.best_fit(group.together, fewest=group.fewest, most=group.fewest):
                return True
    return False


def _somebody_ends(need: Need, cycle: CycleState) -> bool:
    """Will anybody ever leave a pool that the need may go to?"""
    options = cycle.ledger.catalogue.options(need).values()
    ends = (cycle.books.ends(option.pool) for each in options for option in each)
    return any(each and each[0][0] < WITHOUT_END for each in ends)


def _clearance(search: Search, terms: Terms) -> Clearance | None:
    """The option on which the group could start first."""
    prefer = Prefer.FIRST if terms.is_firm else Prefer.BUSY
    best: Clearance | None = None
    for tier in search.cycle.ledger.catalogue.tiers(search.need):
        for option in search.cycle.ledger.catalogue.options(search.need)[tier]:
            if search.refusal([search.portion(option.pool, option.gpus, search.group.fewest)]):
                continue
            leaving = _leaving(search.cycle, option.pool, terms)
            found = Walk(search, tier, option, prefer=prefer).until_it_fits(leaving)
            if found is None or not _stays_open(found, search):
                continue
            best = found if best is None or found.at < best.at else best
    return best


def _leaving(cycle: CycleState, pool: PoolName, terms: Terms) -> Iterator[Leaving]:
    if terms.is_firm:
        return _in_order_of_begin(cycle, pool)
    return _in_order_of_end(cycle, pool, terms.horizon)


def _in_order_of_begin(cycle: CycleState, pool: PoolName) -> Iterator[Leaving]:
    """Who runs in the pool, those who began first before the others; when all of these are gone."""
    holdings, allocations = cycle.books.holdings, cycle.snapshot.allocations
    rows = [(cycle.now, job) for _, job, _ in cycle.books.ends(pool)]
    rows = [(allocations[job].placed_at if job in allocations else at, job) for at, job in rows]
    gone_at = Instant(cycle.now + 1)
    for _, job in sorted(rows):
        gone_at = max(gone_at, holdings[job].ends_at)
        yield gone_at, (holdings[job],)


def _in_order_of_end(cycle: CycleState, pool: PoolName, horizon: int | None) -> Iterator[Leaving]:
    """Who must have left the pool when, those of one instant together; who has no end never does.

    One that is beyond its time may leave at any moment.
    """
    soon, holdings = cycle.now + 1, cycle.books.holdings
    ends = islice(cycle.books.ends(pool), horizon)
    running = ((max(soon, at), job, holdings[job]) for at, job, _ in ends)
    due = ((each.ends_at, each.job, each) for each in _due(cycle.ledger))
    together = groupby(merge(running, due, key=itemgetter(0, 1)), key=itemgetter(0))
    for at, rows in together:
        if at >= WITHOUT_END:
            return
        yield Instant(at), [leaver for _, _, leaver in rows]


def _due(ledger: Ledger) -> list[Due]:
    """The jobs that were promised room, in the order in which they will leave it again."""
    rooms: dict[tuple[Instant, JobId], list[Room]] = {}
    for _, room in sorted(ledger.promised.items()):
        for promise in room.promises:
            rooms.setdefault((promise.until, promise.job), []).append(room)
    return [Due(job, tuple(rooms[until, job]), until) for until, job in sorted(rooms)]


def _stays_open(clearance: Clearance, search: Search) -> bool:
    """Nodes that are reserved for a time are not promised: who knows what else is planned there."""
    rooms = search.cycle.ledger.rooms
    return not any(rooms[node].kind.reserved for node in clearance.tasks)


class Span(NamedTuple):
    """From when until when a job will have what is promised to it, and how firmly."""

    at: Instant
    until: Instant
    is_firm: bool


def _leaves_at(search: Search, clearance: Clearance, at: Instant) -> Instant:
    """When the job will have left again that starts at this time."""
    rooms, now = search.cycle.ledger.rooms, search.cycle.now
    pools = {rooms[node].kind.pool.name for node in clearance.tasks}
    longest = max(search.stay(pool).likely - now for pool in pools)
    return Instant(min(WITHOUT_END, at + longest))


def _promise_as_before(ledger: Ledger, before: Mapping[NodeId, tuple[Promise, ...]]) -> None:
    for node, room in list(ledger.promised.items()):
        if room.promises is not before.get(node):
            ledger.promise(room, before.get(node, ()))


def _promise(search: Search, clearance: Clearance, span: Span) -> None:
    ledger = search.cycle.ledger
    for node_id, count in clearance.tasks.items():
        room = ledger.rooms[node_id]
        ledger.promise_more(room, _promised(room, search, count, span), search.need, count)


def _promised(room: Room, search: Search, count: int, span: Span) -> Promise:
    need = search.need
    cpu_milli, memory_mib = _host_left(room, span.at)
    devices = _free_at(room)
    wanted = 0 if need.gpus is None else need.gpus.count * count
    # Those that come free last, so that what is free now stays open to others.
    in_time = [(-free_at, place) for place, free_at in devices.items() if free_at <= span.at]
    chosen = sorted(in_time)[:wanted]
    is_whole = need.where.exclusive
    takes = (need.cpu_milli * count, need.memory_mib * count)
    return Promise(
        job=search.entry.id,
        at=span.at,
        until=span.until,
        devices=frozenset(devices if is_whole else (place for _, place in chosen)),
        takes=(cpu_milli, memory_mib) if is_whole else takes,
        cpu_milli=0 if is_whole else cpu_milli - takes[0],
        memory_mib=0 if is_whole else memory_mib - takes[1],
        is_firm=span.is_firm,
    )


def _free_at(room: Room) -> dict[int, int]:
    """From when on each healthy device is wholly free; 0 means that it is now."""
    places = {device.id: place for place, device in enumerate(room.node.devices) if device.healthy}
    free_at = dict.fromkeys(places.values(), 0)
    for tenant in room.tenants.values():
        for device in places if tenant.is_exclusive else _devices_of(tenant):
            if device in places:
                free_at[places[device]] = max(free_at[places[device]], tenant.until)
    for promise in room.promises:
        for place in promise.devices & free_at.keys():
            free_at[place] = max(free_at[place], promise.until)
    return free_at


def _devices_of(tenant: Tenant) -> Iterator[DeviceId]:
    if tenant.is_suspended:
        return
    for placement in tenant.placements:
        for share in placement.devices:
            yield share.device


def _host_left(room: Room, at: Instant) -> tuple[int, int]:
    """CPU and memory beside those who will still be there then, or have it promised."""
    cpu_milli, memory_mib = room.node.cpu_milli, room.node.memory_mib
    for tenant in room.tenants.values():
        if tenant.until <= at:
            continue
        for placement in tenant.placements:
            memory_mib -= placement.amount.memory_mib
            cpu_milli -= 0 if tenant.is_suspended else placement.amount.cpu_milli
    for promise in room.promises:
        if promise.until > at:
            cpu_milli -= promise.takes[0]
            memory_mib -= promise.takes[1]
    return cpu_milli, memory_mib
