"""Queues as documents: what each holds, may hold and borrows, with everything below counted in."""

from collections import defaultdict
from collections.abc import Mapping

from muster.api.site import QueueDocument, QuotaDocument
from muster.doors.rest.show_nodes import held
from muster.model.amounts import capacity_of, ceiling, covers, resolved
from muster.model.cluster import Node
from muster.model.gpu import Mig
from muster.model.job import HOLDING, WAITING
from muster.model.placement import Placement
from muster.model.policy import SharePolicy
from muster.model.queue import Meter, Queue, Quota, Scope, lineage
from muster.model.snapshot import Snapshot
from muster.model.value import Duration, GpuModel, NodeId, PoolName, QueuePath
from muster.schedule.state.share import decayed

UNITS = {
    Meter.GPU: ("GPUs", 1_000),
    Meter.CPU: ("CPUs", 1_000),
    Meter.MEMORY: ("MiB", 1),
    Meter.MIG: ("instances", 1),
}
"""What a line of a quota is counted in, and how many of the meter make one of it."""

Spot = tuple[PoolName, GpuModel | None, Meter, str | None]
"""One kind of thing in one place."""


def queue_documents(snapshot: Snapshot, policy: SharePolicy) -> tuple[QueueDocument, ...]:
    """All queues, in the order of their paths."""
    tally = _QueueTotals(snapshot, policy)
    return tuple(_queue(queue, tally) for _, queue in sorted(snapshot.queues.items()))


class _QueueTotals:
    """Everything that is counted for queues, in one pass over the jobs."""

    def __init__(self, snapshot: Snapshot, policy: SharePolicy) -> None:
        self.running: dict[str, int] = defaultdict(int)
        self.waiting: dict[str, int] = defaultdict(int)
        self.used: dict[str, dict[Spot, int]] = defaultdict(lambda: defaultdict(int))
        self.lately: dict[str, int] = defaultdict(int)
        self.shares = _shares(snapshot.queues)
        self._nodes = tuple(snapshot.nodes.values())
        self._capacity: dict[Scope, int] = {}
        self._count_jobs(snapshot)
        self._count_amounts(snapshot)
        self._count_lately(snapshot, policy)

    def capacity(self, scope: Scope) -> int:
        """All that the scope has."""
        if scope not in self._capacity:
            self._capacity[scope] = capacity_of(scope, self._nodes)
        return self._capacity[scope]

    def _count_jobs(self, snapshot: Snapshot) -> None:
        counts: dict[tuple[QueuePath, bool], int] = defaultdict(int)
        for job in snapshot.jobs.values():
            if job.state in HOLDING or job.state in WAITING:
                counts[job.spec.queue, job.state in HOLDING] += 1
        for (path, is_running), count in counts.items():
            for each in lineage(path):
                (self.running if is_running else self.waiting)[each] += count

    def _count_amounts(self, snapshot: Snapshot) -> None:
        own: dict[QueuePath, dict[Spot, int]] = defaultdict(lambda: defaultdict(int))
        for job, placement in held(snapshot):
            model = _model(placement, snapshot.nodes)
            spots = own[snapshot.jobs[job].spec.queue]
            for meter, amount in _amounts(placement):
                spots[placement.pool, model, meter, None] += amount
            for share in placement.devices:
                if isinstance(share.slice, Mig):
                    spots[placement.pool, model, Meter.MIG, share.slice.profile] += 1
        for path, spots in own.items():
            for each in lineage(path):
                for spot, amount in spots.items():
                    self.used[each][spot] += amount

    def _count_lately(self, snapshot: Snapshot, policy: SharePolicy) -> None:
        for row in snapshot.used_lately:
            elapsed = Duration(snapshot.now - row.as_of)
            left = decayed(row.gpu_milli_ms, elapsed=elapsed, half_life=policy.half_life)
            for each in (*lineage(row.queue), ""):
                self.lately[each] += left


def _queue(queue: Queue, tally: _QueueTotals) -> QueueDocument:
    path = queue.path
    used = tally.used[path]
    return QueueDocument(
        path=path,
        weight=queue.weight,
        priority=queue.priority,
        default_class=queue.default_class,
        max_jobs=queue.max_jobs,
        running=tally.running[path],
        waiting=tally.waiting[path],
        gpus_used=_measured(used, Scope()) / 1_000,
        share=round(tally.shares[path], 6),
        used_share=round(tally.lately[path] / max(1, tally.lately[""]), 6),
        quotas=tuple(_quota(quota, used, tally) for quota in queue.quotas),
        may_submit=queue.may_submit,
    )


def _quota(quota: Quota, used: Mapping[Spot, int], tally: _QueueTotals) -> QuotaDocument:
    capacity = tally.capacity(quota.scope)
    unit, size = UNITS[quota.scope.meter]
    now, guaranteed = _measured(used, quota.scope), resolved(quota.guaranteed, capacity)
    most = ceiling(quota, capacity)
    return QuotaDocument(
        scope=scope_text(quota.scope),
        unit=unit,
        used=now / size,
        guaranteed=guaranteed / size,
        limit=None if most is None else most / size,
        borrowed=max(0, now - guaranteed) / size,
    )


def scope_text(scope: Scope) -> str:
    """`gpu`, `mig:1g.5gb`, `gpu pool=a100 model=A100-40GB`."""
    meter = f"{scope.meter}:{scope.profile}" if scope.profile else scope.meter.value
    pool = f" pool={scope.pool}" if scope.pool else ""
    return meter + pool + (f" model={scope.model}" if scope.model else "")


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


def _shares(queues: Mapping[QueuePath, Queue]) -> dict[str, float]:
    """Each queue's part of everything, by the weights of those beside it and above it."""
    beside: dict[str, int] = defaultdict(int)
    for path, queue in queues.items():
        beside[path.rpartition("/")[0]] += queue.weight
    shares: dict[str, float] = {"": 1.0}
    for path in sorted(queues):
        above = path.rpartition("/")[0]
        part = queues[path].weight / max(1, beside[above])
        shares[path] = shares.get(above, 1.0) * part
    return shares
