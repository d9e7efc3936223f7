"""Whose leaving would make room for a group of tasks: those who end first, where that is enough.

The answer is for people: it counts GPUs, slices, cores and memory, and leaves reservations,
promises and neighbours to the planner.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from muster.model.cluster import Node, NodeState
from muster.model.gpu import WHOLE_GPU_MILLI, Device, GpuAsk, Mig, MigInstance, Slice
from muster.model.job import Job, JobSpec, Spot, TaskGroup, gpu_milli
from muster.model.mig import free_starts
from muster.model.placement import DeviceShare, Placement
from muster.model.snapshot import Snapshot
from muster.model.value import DeviceId, GpuModel, Instant, JobId, NodeId, PoolName
from muster.schedule.room.fit import domain_of, is_tolerated

MOST_TASKS = 1 << 20


class Holder(NamedTuple):
    """A job that holds room, or gets it in this plan, and when it must have left."""

    job: Job
    placements: tuple[Placement, ...]
    ends_at: Instant


class Tenant(NamedTuple):
    """What a job holds of one node, and when it must have left."""

    job: JobId
    placements: list[Placement]
    ends_at: Instant


class Domain(NamedTuple):
    """All tasks of a group go to one pool and one GPU model, and perhaps to one rack."""

    pool: PoolName
    model: GpuModel
    place: tuple[str, ...]


class Step(NamedTuple):
    """From then on, with these gone from the node, so many more tasks fit there."""

    at: Instant
    node: NodeId
    gone: tuple[JobId, ...]
    tasks: int


class Seat(NamedTuple):
    """A node and a model that tasks of the group may use there, and who is on the node."""

    node: Node
    model: GpuModel
    domain: Domain
    tenants: list[Tenant]


def in_the_way(
    group: TaskGroup, spec: JobSpec, snapshot: Snapshot, holders: Iterable[Holder]
) -> tuple[JobId, ...]:
    """Those who must leave so that the group fits where it would fit first, in order of leaving."""
    leaving = sorted(holders, key=first_to_leave)
    seats = _seats(group, spec, snapshot, leaving)
    at, domains = _first_fit(group, seats, leaving)
    ways = [
        way
        for domain in sorted(domains)
        if (way := _way(_steps_in(domain, seats, group, at), group.fewest))
    ]
    if not ways:
        return ()
    gone = {job for step in min(ways, key=_last) for job in step.gone}
    return tuple(each.job.id for each in leaving if each.job.id in gone)


def first_to_leave(holder: Holder) -> tuple[Instant, JobId]:
    return (holder.ends_at, holder.job.id)


def _seats(
    group: TaskGroup, spec: JobSpec, snapshot: Snapshot, leaving: Iterable[Holder]
) -> dict[NodeId, list[Seat]]:
    """Where tasks of the group may go, node by node; tenants in the order in which they leave."""
    found: dict[NodeId, list[Seat]] = {}
    staying: dict[NodeId, list[Tenant]] = {}
    for _, node in sorted(snapshot.nodes.items()):
        if _is_usable(node, group, spec, snapshot):
            there = staying[node.id] = []
            place = domain_of(node, group.together, snapshot.pools[node.pool].levels)
            found[node.id] = [
                Seat(node, model, Domain(node.pool, model, place), there)
                for model in _models(node, group)
            ]
    for holder in leaving:
        job, placements = holder.job.id, holder.placements
        for name in _nodes(holder):
            if name in staying:
                here = [each for each in placements if each.node == name]
                staying[name].append(Tenant(job, here, holder.ends_at))
    return found


def _nodes(holder: Holder) -> Iterable[NodeId]:
    return dict.fromkeys([placement.node for placement in holder.placements])


def _first_fit(
    group: TaskGroup, seats: Mapping[NodeId, list[Seat]], leaving: Sequence[Holder]
) -> tuple[Instant, set[Domain]]:
    """When the whole group first fits anywhere, and where that is: nowhere, if it never does."""
    fit: dict[tuple[NodeId, GpuModel], int] = {}
    fit_in: dict[Domain, int] = {}
    for name, each in seats.items():
        for seat in each:
            now = fit[name, seat.model] = _fit(seat.node, seat.model, group, seat.tenants)
            fit_in[seat.domain] = fit_in.get(seat.domain, 0) + now
    enough = {domain for domain, tasks in fit_in.items() if tasks >= group.fewest}
    if enough:
        return Instant(0), enough
    left: dict[NodeId, int] = {}
    for at, together in groupby(leaving, key=attrgetter("ends_at")):
        for holder in together:
            for name in _nodes(holder):
                left[name] = left.get(name, 0) + 1
                for seat in seats.get(name, ()):
                    key = (name, seat.model)
                    then = _fit(seat.node, seat.model, group, seat.tenants[left[name] :])
                    fit_in[seat.domain] += max(0, then - fit[key])
                    fit[key] = max(then, fit[key])
                    if fit_in[seat.domain] >= group.fewest:
                        enough.add(seat.domain)
        if enough:
            return at, enough
    return Instant(0), set()


def _steps_in(
    domain: Domain, seats: Mapping[NodeId, list[Seat]], group: TaskGroup, at: Instant
) -> Iterator[Step]:
    """The steps in this domain up to this time."""
    for each in seats.values():
        for seat in each:
            if seat.domain == domain:
                yield from _steps(seat, group, at)


def _last(way: list[Step]) -> Instant:
    return way[-1].at


def _way(steps: Iterable[Step], wanted: int) -> list[Step]:
    """The earliest steps that together make room; nothing if they never do."""
    way: list[Step] = []
    for step in sorted(steps):
        way.append(step)
        wanted -= step.tasks
        if wanted <= 0:
            return way
    return []


def _is_usable(node: Node, group: TaskGroup, spec: JobSpec, snapshot: Snapshot) -> bool:
    pool, cluster = snapshot.pools.get(node.pool), snapshot.clusters.get(node.cluster)
    if pool is None or cluster is None or not cluster.reachable:
        return False
    job_class = snapshot.classes.get(spec.job_class)
    is_spot_only = spec.spot is Spot.ONLY or (job_class is not None and job_class.spot_only)
    where = group.where
    return (
        node.state is NodeState.UP
        and (not spec.pools or pool.name in spec.pools)
        and pool.lets_in(spec.user, spec.queue, spec.job_class)
        and (not spec.clusters or cluster.name in spec.clusters)
        and cluster.abilities.lacking(spec.takes) is None
        and (pool.spot if is_spot_only else not pool.spot or spec.spot is Spot.ALLOWED)
        and (not where.nodes or node.id in where.nodes)
        and node.id not in where.not_nodes
        and all(rule.accepts(node.labels) for rule in where.require)
        and all(is_tolerated(taint, where.tolerate) for taint in node.taints)
    )


def _models(node: Node, group: TaskGroup) -> list[GpuModel]:
    gpus = group.each.gpus
    if gpus is None:
        return [GpuModel("")]
    models = {device.model for device in node.devices}
    return sorted(model for model in models if not gpus.models or model in gpus.models)


def _steps(seat: Seat, group: TaskGroup, at: Instant) -> Iterator[Step]:
    """One step for each tenant whose leaving brings room, and one for the room there is."""

    def fit(staying: list[Tenant]) -> int:
        return _fit(seat.node, seat.model, group, staying)

    tenants = seat.tenants
    before = fit(tenants)
    if before:
        yield Step(Instant(0), seat.node.id, (), before)
    gone: list[Tenant] = []
    for place, tenant in enumerate(tenants, start=1):
        if tenant.ends_at > at:
            return
        gone.append(tenant)
        after = fit(tenants[place:])
        if after > before:
            spared = _spared(gone, tenants[place:], after, fit)
            needed = tuple(each.job for each in gone if each not in spared)
            yield Step(tenant.ends_at, seat.node.id, needed, after - before)
            before, gone = after, spared


def _spared(
    gone: list[Tenant], staying: list[Tenant], wanted: int, fit: Callable[[list[Tenant]], int]
) -> list[Tenant]:
    """Those who might as well have stayed: who ends last is spared first."""
    spared: list[Tenant] = []
    for tenant in reversed(gone):
        if fit([*staying, *spared, tenant]) >= wanted:
            spared.insert(0, tenant)
    return spared


def _fit(node: Node, model: GpuModel, group: TaskGroup, staying: list[Tenant]) -> int:
    """How many tasks of the group fit on the node beside those who stay."""
    where, each = group.where, group.each
    if where.exclusive and staying:
        return 0
    held = [placement for tenant in staying for placement in tenant.placements]
    fit = where.max_per_node or MOST_TASKS
    if each.cpu_milli:
        used_milli = sum([placement.amount.cpu_milli for placement in held])
        fit = min(fit, (node.cpu_milli - used_milli) // each.cpu_milli)
    if each.memory_mib:
        used_mib = sum([placement.amount.memory_mib for placement in held])
        fit = min(fit, (node.memory_mib - used_mib) // each.memory_mib)
    if each.gpus is not None and fit > 0:
        fit = min(fit, _parts(node, model, group, held) // each.gpus.count)
    return max(0, fit)


def _parts(node: Node, model: GpuModel, group: TaskGroup, held: list[Placement]) -> int:
    """How many GPUs, or slices, of what the group asks for are free."""
    gpus = group.each.gpus
    if gpus is None:
        return 0
    shares: dict[DeviceId, list[DeviceShare]] = {}
    for placement in held:
        for share in placement.devices:
            shares.setdefault(share.device, []).append(share)
    suiting = [
        device
        for device in node.devices
        if device.model == model and device.healthy and device.memory_mib >= gpus.min_memory_mib
    ]
    if gpus.slice is None:
        return sum([device.id not in shares for device in suiting])
    return sum(_parts_of(device, gpus.slice, shares.get(device.id, [])) for device in suiting)


def _parts_of(device: Device, part: Slice, shares: list[DeviceShare]) -> int:
    """How often the device still has such a part; not at all if it is used in another way."""
    if any(type(share.slice) is not type(part) for share in shares):
        return 0
    if isinstance(part, Mig):
        return _instances(device, part.profile, shares)
    left_milli = WHOLE_GPU_MILLI - sum(_milli(share.slice, device) for share in shares)
    return left_milli // max(1, _milli(part, device))


def _instances(device: Device, profile: str, shares: list[DeviceShare]) -> int:
    taken = [
        MigInstance(profile=share.slice.profile, start=share.start)
        for share in shares
        if isinstance(share.slice, Mig) and share.start is not None
    ]
    return _more_instances(device.model, tuple(taken), profile)


@lru_cache(maxsize=10_000)
def _more_instances(model: GpuModel, taken: tuple[MigInstance, ...], profile: str) -> int:
    """How many more of them fit on a device that has these. Devices look alike in many places."""
    instances = list(taken)
    while starts := free_starts(model, instances, profile):
        instances.append(MigInstance(profile=profile, start=starts[0]))
    return len(instances) - len(taken)


def _milli(part: Slice | None, device: Device) -> int:
    return gpu_milli(GpuAsk(count=1, slice=part), device.model)
