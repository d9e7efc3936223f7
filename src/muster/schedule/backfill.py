"""When a blocked job can start at the latest, and room promised to it for then.

Jobs behind it may start early only on what is not promised, or if they will have left in time.
The foretold time is safe, not sharp: every running job is taken to run to its limit, and a device
counts as free for a slice only when all its tenants have left.
"""

from collections.abc import Iterator
from heapq import nsmallest
from typing import NamedTuple

from muster.model.job import NODE_LEVEL, TaskGroup
from muster.model.value import DeviceId, Instant, JobId, NodeId
from muster.schedule.index import Kind, Promise, Room, Tenant
from muster.schedule.ledger import Ledger
from muster.schedule.needs import Need, Option, tasks_on_host
from muster.schedule.quota import WITHOUT_END
from muster.schedule.roster import Entry
from muster.schedule.search import Search, Standing, tiers

Slot = tuple[Instant, NodeId]
"""From then on one more task fits on that node."""


MOST_SLOTS = 64
"""More tasks on one node than this are not looked for."""


class Start(NamedTuple):
    """The time from which all tasks of a group fit, and where."""

    at: Instant
    slots: list[Slot]


class Forecast:
    """For one need and option: the times from which 1, 2, ... tasks fit on each node."""

    def __init__(self, need: Need, option: Option, ledger: Ledger) -> None:
        self._need = need
        self._option = option
        self._ledger = ledger
        self.times: dict[NodeId, tuple[Instant, ...]] = {}
        for kind in ledger.kinds.values():
            if ledger.offer(kind, need) is not None:
                for room in kind.rooms.values():
                    self._note(room)
        self._read = len(ledger.index.moved)

    def catch_up(self) -> None:
        """Look again at the rooms that changed."""
        moved = self._ledger.index.moved
        if self._read == len(moved):
            return
        for room in dict.fromkeys(moved[self._read :]):
            self._note(room)
        self._read = len(moved)

    def _note(self, room: Room) -> None:
        times = self._times(room)
        if times:
            self.times[room.node.id] = times
        else:
            self.times.pop(room.node.id, None)

    def _times(self, room: Room) -> tuple[Instant, ...]:
        offer = self._ledger.offer(room.kind, self._need)
        is_here = room.is_listed and room.kind.pool.name == self._option.pool
        if not is_here or offer is None or self._option.gpus not in offer.gpus:
            return ()
        need = self._need
        on_gpus = _gpu_times(room, self._option, self._ledger)
        if not on_gpus:
            return ()
        slots = [on_gpus]
        if need.cpu_milli or need.memory_mib:
            slots.append(_host_times(room, need))
        most = need.where.max_per_node
        together = (max(each) for each in zip(*slots, strict=False))
        return tuple(Instant(each) for each in together if each < WITHOUT_END)[:most]


def earliest(entry: Entry, standing: Standing) -> Instant | None:
    """When the job can start at the latest; None if nobody can say. Promises it room for then."""
    starts: list[tuple[Search, Start]] = []
    for group_need in entry.shape.groups:
        search = Search(entry, group_need, standing)
        start = _earliest_of(search)
        if start is None:
            return None
        starts.append((search, start))
    at = Instant(max(standing.now + 1, *(start.at for _, start in starts)))
    for search, start in starts:
        _promise(search, start.slots, at, entry.id)
    return at


def _earliest_of(search: Search) -> Start | None:
    """The option on which the group could start first."""
    ledger = search.standing.ledger
    best: Start | None = None
    for tier in tiers(search.need, ledger):
        for option in search.need.options[tier]:
            if search.refusal([search.portion(option.pool, option.gpus, search.group.fewest)]):
                continue
            start = _earliest_on(search, _forecast(search, option))
            if start is not None and (best is None or start.at < best.at):
                best = start
    return best


def _forecast(search: Search, option: Option) -> Forecast:
    need, standing = search.need, search.standing
    forecast = need.forecasts.get(option)
    if forecast is None:
        forecast = Forecast(need, option, standing.ledger)
        need.forecasts[option] = forecast
    forecast.catch_up()
    return forecast


def _earliest_on(search: Search, forecast: Forecast) -> Start | None:
    count = search.group.fewest
    best: tuple[Instant, tuple[str, ...]] | None = None
    slots_of: dict[tuple[str, ...], list[Slot]] = _by_domain(search, forecast)
    for domain, slots in slots_of.items():
        if len(slots) >= count:
            slots_of[domain] = nsmallest(count, slots)
            key = (slots_of[domain][-1][0], domain)
            best = key if best is None else min(best, key)
    return None if best is None else Start(best[0], slots_of[best[1]])


def _by_domain(search: Search, forecast: Forecast) -> dict[tuple[str, ...], list[Slot]]:
    """Slots on nodes that are not promised yet, by the domain in which tasks must stay together."""
    ledger = search.standing.ledger
    found: dict[tuple[str, ...], list[Slot]] = {}
    for node_id, times in forecast.times.items():
        room = ledger.rooms[node_id]
        if node_id in ledger.promised or not _may_have(search, room):
            continue
        domain = _domain(search.group, room)
        found.setdefault(domain, []).extend((at, node_id) for at in times)
    return found


def _may_have(search: Search, room: Room) -> bool:
    kind: Kind = room.kind
    where = search.need.where
    if kind in search.shut or kind.reserved:
        return False
    if where.exclusive:
        return True
    return search.allows is None or search.allows(room)


def _domain(group: TaskGroup, room: Room) -> tuple[str, ...]:
    together = group.together
    if together is None or not together.required:
        return ()
    levels = room.kind.pool.levels
    if together.level == NODE_LEVEL or together.level not in levels:
        return (room.node.id,)
    return room.node.where[: levels.index(together.level) + 1]


def _promise(search: Search, slots: list[Slot], at: Instant, job: JobId) -> None:
    ledger = search.standing.ledger
    tasks: dict[NodeId, int] = {}
    for _, node_id in slots:
        tasks[node_id] = tasks.get(node_id, 0) + 1
    for node_id, count in tasks.items():
        room = ledger.rooms[node_id]
        if room.promise is None:
            ledger.promise(room, _promised(room, search.need, count, at, job))


def _promised(room: Room, need: Need, count: int, at: Instant, job: JobId) -> Promise:
    cpu_milli, memory_mib = _host_left(room, at)
    devices = _free_devices(room)
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


def _gpu_times(room: Room, option: Option, ledger: Ledger) -> list[int]:
    """From when on the devices serve 1, 2, ... tasks."""
    gpus = option.gpus
    if gpus is None:
        return [0] * MOST_SLOTS
    free = sorted(
        free_at
        for place, free_at in _free_devices(room).items()
        if room.node.devices[place].model == gpus.model
    )
    if gpus.part is None:
        return free[gpus.count - 1 :: gpus.count]
    assert room.size is not None
    devices = max(1, len(room.node.devices))
    empty = ledger.profiles.of(room.size[2], gpus.family)
    per_device = max(1, ledger.profiles.most(empty, gpus) // devices)
    return [at for at in free for _ in range(per_device)]


def _free_devices(room: Room) -> dict[int, int]:
    """From when on each healthy device is wholly free; 0 means that it is now."""
    free_at = {device.id: 0 for device in room.node.devices if device.healthy}
    for tenant in room.tenants.values():
        until = tenant.until
        for device in free_at if tenant.is_exclusive else _devices_of(tenant):
            if device in free_at:
                free_at[device] = max(free_at[device], until)
    places = {device.id: place for place, device in enumerate(room.node.devices)}
    return {places[device]: at for device, at in free_at.items()}


def _devices_of(tenant: Tenant) -> Iterator[DeviceId]:
    if tenant.is_suspended:
        return
    for placement in tenant.placements:
        for share in placement.devices:
            yield share.device


def _host_times(room: Room, need: Need) -> list[int]:
    """From when on CPU and memory serve 1, 2, ... tasks."""
    if any(tenant.is_exclusive for tenant in room.tenants.values()):
        until = max(tenant.until for tenant in room.tenants.values())
        return [until] * tasks_on_host(need, room.node.cpu_milli, room.node.memory_mib)
    cpu_milli, memory_mib = room.cpu_milli, room.memory_mib
    times = [0] * min(MOST_SLOTS, tasks_on_host(need, cpu_milli, memory_mib))
    leaving = sorted((tenant.until, job) for job, tenant in room.tenants.items())
    for until, job in leaving:
        tenant = room.tenants[job]
        for placement in tenant.placements:
            memory_mib += placement.amount.memory_mib
            cpu_milli += 0 if tenant.is_suspended else placement.amount.cpu_milli
        fit = min(MOST_SLOTS, tasks_on_host(need, cpu_milli, memory_mib))
        times += [until] * (fit - len(times))
    return times


def _host_left(room: Room, at: Instant) -> tuple[int, int]:
    """CPU and memory beside those who will still be there then."""
    cpu_milli, memory_mib = room.node.cpu_milli, room.node.memory_mib
    for tenant in room.tenants.values():
        if tenant.until <= at:
            continue
        if tenant.is_exclusive:
            return 0, 0
        for placement in tenant.placements:
            memory_mib -= placement.amount.memory_mib
            cpu_milli -= 0 if tenant.is_suspended else placement.amount.cpu_milli
    return cpu_milli, memory_mib
