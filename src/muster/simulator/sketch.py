"""When those start who wait farther back than a course gets: in their order, room counted by pool.

A course plays the real cycle, which takes milliseconds for each start. Where thousands wait, a
sketch has a date for everybody at once: it knows who goes before whom and how long jobs last, and
nothing of nodes, limits of queues and newcomers. Courses then take the place of it for those that
they reach, and what became of earlier dates corrects both.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush

from muster.model.cluster import NodeState, Pool
from muster.model.job import Job, JobSpec
from muster.model.placement import Allocation
from muster.model.resources import NOTHING, Resources
from muster.model.snapshot import Snapshot
from muster.model.value import Duration, GpuModel, Instant, JobId, PoolName
from muster.simulator.course import LONGEST_FORECAST, CourseStart, kind_of

WHOLE = 1_000_000
"""A pool has so many parts; a job takes as many as of the resource that it needs most of."""

Lasts = Callable[[Job, Allocation | None], Duration]
"""How long a job runs in all; of one that waits there is no allocation yet."""

Block = tuple[Instant, int]
"""From when on so many parts of a pool are free."""

Option = tuple[PoolName, int]
"""A pool that a job may go to, and how many parts it takes there."""


def sketched(
    snapshot: Snapshot, order: Iterable[JobId], lasts: Lasts
) -> Iterator[tuple[JobId, CourseStart]]:
    """When each of these starts, if those before it in the order take their room first.

    It is drawn as it is read, so that the first in line need not wait for the others.
    """
    pools, until = _Pools(snapshot, lasts), snapshot.now + LONGEST_FORECAST
    for job_id in order:
        job = snapshot.jobs[job_id]
        at = pools.take(job.spec, lasts(job, None))
        if at is not None and at < until:
            yield job_id, CourseStart(at=at, after=(), newcomers=0, is_sketched=True)


class _Pools:
    """What comes free in each pool, and when."""

    def __init__(self, snapshot: Snapshot, lasts: Lasts) -> None:
        self._snapshot = snapshot
        self._capacity: dict[PoolName, Resources] = {}
        self._models: dict[PoolName, set[GpuModel]] = {}
        for node in snapshot.nodes.values():
            if node.state is NodeState.UP:
                before = self._capacity.get(node.pool, NOTHING)
                self._capacity[node.pool] = before + node.capacity
                self._models.setdefault(node.pool, set()).update(
                    device.model for device in node.devices
                )
        self._blocks = {pool: self._after(ends) for pool, ends in self._ends(lasts).items()}
        self._options: dict[object, list[Option]] = {}

    def take(self, spec: JobSpec, lasts: Duration) -> Instant | None:
        """Take room where some comes free first; from when on, or None if there never is any."""
        options = self._options_of(spec)
        if not options:
            return None
        pool, needs = min(options, key=lambda option: (self._blocks[option[0]][0], option))
        blocks, gathered, at = self._blocks[pool], 0, self._snapshot.now
        while gathered < needs:
            at, parts = heappop(blocks)
            gathered += parts
        if gathered > needs:
            heappush(blocks, (at, gathered - needs))
        heappush(blocks, (Instant(at + lasts), needs))
        return at

    def _ends(self, lasts: Lasts) -> dict[PoolName, list[Block]]:
        """By pool, when those leave who run there."""
        snapshot, found = self._snapshot, dict[PoolName, list[Block]]()
        for pool in self._capacity:
            found[pool] = []
        for job_id, allocation in snapshot.allocations.items():
            begun = allocation.started_at
            begun = allocation.placed_at if begun is None else begun
            ends_at = begun + allocation.stood + lasts(snapshot.jobs[job_id], allocation)
            for pool, amount in _held(allocation, snapshot).items():
                block = (Instant(max(snapshot.now + 1, ends_at)), self._parts(pool, amount))
                found[pool].append(block)
        return found

    def _after(self, ends: list[Block]) -> list[Block]:
        """With what is free now: those who wait do not fit there before somebody leaves."""
        soonest = min(ends)[0] if ends else self._snapshot.now
        free = WHOLE - sum(parts for _, parts in ends)
        blocks = [*ends, (soonest, free)] if free > 0 else list(ends)
        heapify(blocks)
        return blocks

    def _options_of(self, spec: JobSpec) -> list[Option]:
        amount = NOTHING
        for group in spec.groups:
            amount += group.each.amount(None) * group.count
        key = (kind_of(spec), spec.user, spec.queue, spec.job_class, amount)
        known = self._options.get(key)
        if known is None:
            known = self._options[key] = [
                (pool, parts)
                for pool in self._open_to(spec)
                if (parts := self._parts(pool, amount)) <= WHOLE
            ]
        return known

    def _open_to(self, spec: JobSpec) -> Iterator[PoolName]:
        for name in sorted(self._capacity):
            pool = self._snapshot.pools.get(name)
            if pool is not None and _is_open(pool, spec) and self._has_models(name, spec):
                yield name

    def _has_models(self, pool: PoolName, spec: JobSpec) -> bool:
        asked = (group.each.gpus.models for group in spec.groups if group.each.gpus is not None)
        return all(not models or self._models[pool] & set(models) for models in asked)

    def _parts(self, pool: PoolName, amount: Resources) -> int:
        there = self._capacity[pool]
        shares = (
            (amount.gpu_milli, there.gpu_milli),
            (amount.cpu_milli, there.cpu_milli),
            (amount.memory_mib, there.memory_mib),
        )
        return max(1, *(-(-asked * WHOLE // max(1, whole)) for asked, whole in shares))


def _is_open(pool: Pool, spec: JobSpec) -> bool:
    is_named = not spec.pools or pool.name in spec.pools
    is_there = not spec.clusters or pool.cluster in spec.clusters
    is_let_in = pool.is_open or pool.lets_in(spec.user, spec.queue, spec.job_class)
    return is_named and is_there and pool.starts and is_let_in


def _held(allocation: Allocation, snapshot: Snapshot) -> Mapping[PoolName, Resources]:
    """What it holds in each pool, on nodes that take work."""
    found: dict[PoolName, Resources] = {}
    for placed in allocation.placements:
        node = snapshot.nodes.get(placed.node)
        if node is not None and node.state is NodeState.UP:
            found[node.pool] = found.get(node.pool, NOTHING) + placed.amount
    return found
