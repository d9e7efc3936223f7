"""When a blocked job can start at the latest, and room promised to it for then.

Jobs behind it may start early only on what is not promised, or if they will have left in time.
The time is safe, not sharp: every running job is taken to run to its limit.
"""

from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from muster.model.reason import Behind
from muster.model.value import DeviceId, Instant, JobId, PoolName
from muster.schedule.policy.search import CycleState, Search
from muster.schedule.policy.walk import Clearance, Walk
from muster.schedule.room.index import Promise, Room, Tenant
from muster.schedule.room.ledger import Ledger
from muster.schedule.room.needs import Need
from muster.schedule.state.accounts import WITHOUT_END
from muster.schedule.state.books import Holding
from muster.schedule.state.roster import WaitingJob


class Outset(NamedTuple):
    """From when on all tasks of a group fit, and where."""

    at: Instant
    clearance: Clearance


def earliest(entry: WaitingJob, cycle: CycleState, *, horizon: int | None) -> Instant | None:
    """When the job can start at the latest; None if that is unknown. Promises it room for then.

    At most `horizon` jobs are thought away to find out, all of them if None.
    """
    outsets: list[tuple[Search, Outset]] = []
    if not all(_somebody_ends(need, cycle) for _, need in entry.shape.groups):
        return None
    for group_need in entry.shape.groups:
        search = Search(entry, group_need, cycle)
        outset = _outset(search, horizon)
        if outset is None:
            return None
        outsets.append((search, outset))
    at = Instant(max(cycle.now + 1, *(outset.at for _, outset in outsets)))
    for search, outset in outsets:
        _promise(search, outset.clearance, at, entry.id)
    return at


def behind(entry: WaitingJob, cycle: CycleState) -> Behind | None:
    """Of what is promised to others, the last to fall due on which the job would fit now."""
    group, need = entry.shape.groups[0]
    if len(entry.shape.groups) > 1 or group.count > 1 or need.is_picky:
        return None
    promised = [
        (room.promise.at, room.promise.job, room)
        for room in cycle.ledger.promised.values()
        if room.promise is not None
    ]
    promised.sort(key=itemgetter(0, 1), reverse=True)
    for starts_at, job, room in promised:
        if _fits_on(room, need, cycle.ledger):
            return Behind(job=job, starts_at=starts_at)
    return None


def _fits_on(room: Room, need: Need, ledger: Ledger) -> bool:
    if not room.is_listed or room.cpu_milli < need.cpu_milli:
        return False
    offer = ledger.catalogue.offer(room.kind, need)
    return offer is not None and any(
        ledger.remains.fit_now(room, need, gpus) for gpus in offer.gpus
    )


def _somebody_ends(need: Need, cycle: CycleState) -> bool:
    """Will anybody ever leave a pool that the need may go to?"""
    options = cycle.ledger.catalogue.options(need).values()
    ends = (cycle.books.ends(option.pool) for each in options for option in each)
    return any(each and each[0][0] < WITHOUT_END for each in ends)


def _outset(search: Search, horizon: int | None) -> Outset | None:
    """The option on which the group could start first."""
    best: Outset | None = None
    for tier in search.cycle.ledger.catalogue.tiers(search.need):
        for option in search.cycle.ledger.catalogue.options(search.need)[tier]:
            if search.refusal([search.portion(option.pool, option.gpus, search.group.fewest)]):
                continue
            leaving = _in_order_of_end(search.cycle, option.pool, horizon)
            clearance = Walk(search, tier, option).until_it_fits(leaving)
            if clearance is None or not _stays_open(clearance, search):
                continue
            outset = Outset(clearance.last.ends_at, clearance)
            best = outset if best is None or outset.at < best.at else best
    return best


def _in_order_of_end(cycle: CycleState, pool: PoolName, horizon: int | None) -> Iterator[Holding]:
    """Who must have left the pool when; those without end never do."""
    holdings = cycle.books.holdings
    for ends_at, job, _ in islice(cycle.books.ends(pool), horizon):
        if ends_at >= WITHOUT_END:
            return
        yield holdings[job]


def _stays_open(clearance: Clearance, search: Search) -> bool:
    """Nodes that are reserved for a time are not promised: who knows what else is planned there."""
    rooms = search.cycle.ledger.rooms
    return not any(rooms[node].kind.reserved for node in clearance.tasks)


def _promise(search: Search, clearance: Clearance, at: Instant, job: JobId) -> None:
    ledger = search.cycle.ledger
    for node_id, count in clearance.tasks.items():
        room = ledger.rooms[node_id]
        if room.promise is None:
            ledger.promise(room, _promised(room, search.need, count, at, job))


def _promised(room: Room, need: Need, count: int, at: Instant, job: JobId) -> Promise:
    cpu_milli, memory_mib = _host_left(room, at)
    devices = _free_at(room)
    wanted = 0 if need.gpus is None else need.gpus.count * count
    # Those that come free last, so that what is free now stays open to others.
    in_time = [(-free_at, place) for place, free_at in devices.items() if free_at <= at]
    chosen = sorted(in_time)[:wanted]
    is_whole = need.where.exclusive
    return Promise(
        job=job,
        at=at,
        devices=frozenset(devices if is_whole else (place for _, place in chosen)),
        cpu_milli=0 if is_whole else cpu_milli - need.cpu_milli * count,
        memory_mib=0 if is_whole else memory_mib - need.memory_mib * count,
    )


def _free_at(room: Room) -> dict[int, int]:
    """From when on each healthy device is wholly free; 0 means that it is now."""
    places = {device.id: place for place, device in enumerate(room.node.devices) if device.healthy}
    free_at = dict.fromkeys(places.values(), 0)
    for tenant in room.tenants.values():
        for device in places if tenant.is_exclusive else _devices_of(tenant):
            if device in places:
                free_at[places[device]] = max(free_at[places[device]], tenant.until)
    return free_at


def _devices_of(tenant: Tenant) -> Iterator[DeviceId]:
    if tenant.is_suspended:
        return
    for placement in tenant.placements:
        for share in placement.devices:
            yield share.device


def _host_left(room: Room, at: Instant) -> tuple[int, int]:
    """CPU and memory beside those who will still be there then."""
    cpu_milli, memory_mib = room.node.cpu_milli, room.node.memory_mib
    for tenant in room.tenants.values():
        if tenant.until <= at:
            continue
        for placement in tenant.placements:
            memory_mib -= placement.amount.memory_mib
            cpu_milli -= 0 if tenant.is_suspended else placement.amount.cpu_milli
    return cpu_milli, memory_mib
