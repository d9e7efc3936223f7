"""Queues: what each holds, may hold and borrows, and how its share stands."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from threading import Lock

from muster.controller.messages import Caller, Fleet, QueueUse, QuotaUse, Share, ShareTree
from muster.controller.rights import sees_names
from muster.controller.world.journal import Clock
from muster.controller.world.record import Record
from muster.model.amounts import capacity_of, ceiling, covers, resolved
from muster.model.cluster import Node
from muster.model.gpu import Mig
from muster.model.job import HOLDING, WAITING, Job
from muster.model.placement import Placement
from muster.model.policy import SharePolicy
from muster.model.queue import Meter, Queue, Quota, Scope, is_private, lineage
from muster.model.snapshot import UsedLately
from muster.model.value import (
    Duration,
    GpuModel,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
)
from muster.schedule.explain.shares import JobCounts, shares_of
from muster.schedule.state.share import Branch, Shares, decayed

Spot = tuple[PoolName, GpuModel | None, Meter, str | None]
"""One kind of thing in one place."""

WHOLE = QueuePath("")
"""Stands for all queues together."""


class QueueQueries:
    """The queue tree in use."""

    def __init__(self, record: Record, clock: Clock) -> None:
        self._record = record
        self._clock = clock
        self._counts = JobCounts()
        self._lock = Lock()

    def all(self) -> tuple[QueueUse, ...]:
        """All queues, in the order of their paths."""
        sums = self._sums()
        return tuple(sums.use(queue) for _, queue in sorted(self._record.site.queues.items()))

    def find(self, path: QueuePath) -> QueueUse | None:
        """The queue at this path."""
        queue = self._record.site.queues.get(path)
        return None if queue is None else self._sums().use(queue)

    def shares(
        self, caller: Caller, members: Iterable[tuple[QueuePath, UserName]] = ()
    ) -> ShareTree:
        """How the shares of queues and users stand. members: users to show beside those with use.

        A user without use has the share that he would have if he came now. Of private queues, only
        the caller's own use is shown to those without a role there.
        """
        found = self._shares()
        seats = [
            (queue, user)
            for queue, user in (*found.users, *members)
            if user == caller.user or sees_names(caller, self._record.site, queue)
        ]
        return ShareTree(
            root=_share(found.root, found),
            queues={path: _share(branch, found) for path, branch in found.queues().items()},
            users={seat: _share(found.seat(*seat), found) for seat in seats},
        )

    def _shares(self) -> Shares:
        snapshot = self._record.snapshot(self._clock())
        with self._lock:
            self._counts.follow(snapshot.jobs)
            return shares_of(snapshot, self._record.site.policy, self._counts)

    def _sums(self) -> "_Sums":
        now, record = self._clock(), self._record
        fleet, site = record.fleet(now), record.site
        with record.lock:
            jobs = list(record.jobs.values())
            lately = record.usage.lately(now, site.policy.share)
        sums = _Sums(site.queues, fleet.nodes)
        sums.count_jobs(jobs)
        sums.count_held(fleet, record.jobs.get)
        sums.count_lately(lately, now, site.policy.share)
        return sums


def _share(branch: Branch, shares: Shares) -> Share:
    return Share(
        weight=branch.weight,
        share=branch.share,
        used=branch.used,
        effective=shares.effective(branch),
        factor=shares.factor(branch),
    )


class _Sums:
    """Everything that is counted for queues, with what is below each counted in."""

    def __init__(self, queues: Mapping[QueuePath, Queue], nodes: Mapping[NodeId, Node]) -> None:
        self._running: dict[str, int] = defaultdict(int)
        self._waiting: dict[str, int] = defaultdict(int)
        self._used: dict[str, dict[Spot, int]] = defaultdict(lambda: defaultdict(int))
        self._lately: dict[str, int] = defaultdict(int)
        self._shares = _parts(queues)
        self._queues = queues
        self._nodes = nodes
        self._capacity: dict[Scope, int] = {}

    def use(self, queue: Queue) -> QueueUse:
        """What one queue uses."""
        path, used = queue.path, self._used[queue.path]
        return QueueUse(
            queue=queue,
            is_private=is_private(self._queues, path),
            running=self._running[path],
            waiting=self._waiting[path],
            gpu_milli=_measured(used, Scope()),
            share=self._shares[path],
            used_share=self._lately[path] / max(1, self._lately[WHOLE]),
            quotas=tuple(self._quota(quota, used) for quota in queue.quotas),
        )

    def count_jobs(self, jobs: Iterable[Job]) -> None:
        counts: dict[tuple[QueuePath, bool], int] = defaultdict(int)
        for job in jobs:
            if job.state in HOLDING or job.state in WAITING:
                counts[job.spec.queue, job.state in HOLDING] += 1
        for (path, is_running), count in counts.items():
            for each in lineage(path):
                (self._running if is_running else self._waiting)[each] += count

    def count_held(self, fleet: Fleet, job_of: Callable[[JobId], Job | None]) -> None:
        own: dict[QueuePath, dict[Spot, int]] = defaultdict(lambda: defaultdict(int))
        for job_id, allocation in fleet.allocations.items():
            job = job_of(job_id)
            if job is not None and job.state in HOLDING:
                for placement in allocation.placements:
                    self._count_placement(placement, own[job.spec.queue])
        for path, spots in own.items():
            for each in lineage(path):
                for spot, amount in spots.items():
                    self._used[each][spot] += amount

    def count_lately(self, lately: Iterable[UsedLately], now: Instant, policy: SharePolicy) -> None:
        for row in lately:
            elapsed = Duration(now - row.as_of)
            left = decayed(row.gpu_milli_ms, elapsed=elapsed, half_life=policy.half_life)
            for each in (*lineage(row.queue), WHOLE):
                self._lately[each] += left

    def _count_placement(self, placement: Placement, spots: dict[Spot, int]) -> None:
        model = _model(placement, self._nodes)
        for meter, amount in _amounts(placement):
            spots[placement.pool, model, meter, None] += amount
        for share in placement.devices:
            if isinstance(share.slice, Mig):
                spots[placement.pool, model, Meter.MIG, share.slice.profile] += 1

    def _quota(self, quota: Quota, used: Mapping[Spot, int]) -> QuotaUse:
        capacity = self._capacity.get(quota.scope)
        if capacity is None:
            nodes = tuple(self._nodes.values())
            capacity = self._capacity[quota.scope] = capacity_of(quota.scope, nodes)
        return QuotaUse(
            quota=quota,
            used=_measured(used, quota.scope),
            guaranteed=resolved(quota.guaranteed, capacity),
            limit=ceiling(quota, capacity),
        )


def _measured(used: Mapping[Spot, int], scope: Scope) -> int:
    profile = scope.profile if scope.meter is Meter.MIG else None
    return sum(
        amount
        for (pool, model, meter, cut), amount in used.items()
        if meter is scope.meter and cut == profile and covers(scope, pool, model)
    )


def _amounts(placement: Placement) -> tuple[tuple[Meter, int], ...]:
    amount = placement.amount
    return (
        (Meter.GPU, amount.gpu_milli),
        (Meter.CPU, amount.cpu_milli),
        (Meter.MEMORY, amount.memory_mib),
    )


def _model(placement: Placement, nodes: Mapping[NodeId, Node]) -> GpuModel | None:
    """The model that the task is on; None for a task without GPUs."""
    if not placement.devices or placement.node not in nodes:
        return None
    devices = nodes[placement.node].devices
    wanted = placement.devices[0].device
    return next((device.model for device in devices if device.id == wanted), None)


def _parts(queues: Mapping[QueuePath, Queue]) -> dict[str, float]:
    """Each queue's part of everything, by the weights of those beside it and above it."""
    beside: dict[str, int] = defaultdict(int)
    for path, queue in queues.items():
        beside[path.rpartition("/")[0]] += queue.weight
    parts: dict[str, float] = {"": 1.0}
    for path in sorted(queues):
        above = path.rpartition("/")[0]
        part = queues[path].weight / max(1, beside[above])
        parts[path] = parts.get(above, 1.0) * part
    return parts
