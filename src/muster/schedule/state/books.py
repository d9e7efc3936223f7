"""Who holds what: kept by queue, user, class, array and pool, as jobs come and go."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from muster.model.cluster import Node
from muster.model.job import Job, JobSpec
from muster.model.placement import Placement
from muster.model.queue import Ceiling, CeilingMeter, JobClass, Queue, Side
from muster.model.reason import OverClassLimit
from muster.model.resources import NOTHING, Resources
from muster.model.snapshot import Snapshot
from muster.model.value import (
    ClassName,
    Duration,
    GpuModel,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
)
from muster.schedule.state.accounts import UNCAPPED, Portion, portion_of
from muster.schedule.state.quota import Change, Quotas
from muster.schedule.state.share import Shares, dominant_milli
from muster.schedule.state.sorted_rows import SortedRows


class Holding(NamedTuple):
    """One job that holds something, until when at the latest.

    milli is what counts against its user, by_pool what its pools will have more when it ends.

    since is when the work began that would be lost: at its start or its last checkpoint.
    victims have still to leave; of what they count for, the job's claim counts only the rest.
    """

    job: Job
    placements: tuple[Placement, ...]
    portions: tuple[Portion, ...]
    milli: int
    by_pool: tuple[tuple[PoolName, int], ...]
    ends_at: Instant
    gpu_milli: int
    since: Instant
    victims: "tuple[Holding, ...]" = ()
    is_awake: bool = True
    is_claim: bool = False
    is_alone: bool = False

    @property
    def spec(self) -> JobSpec:
        """What the job asked for."""
        return self.job.spec


End = tuple[Instant, JobId, int]
"""When a job ends at the latest, and what its pool has more then."""

Loss = tuple[int, int, Holding]
"""The latest checkpoint first; then the newest job."""

ClassSide = tuple[ClassName, Side, str]
"""A class, and a user or a queue with its name."""

LossKey = tuple[ClassName, int, Duration]
"""Class, GPU and restart cost: among jobs alike in these, the latest checkpoint loses the least."""


class Books:
    """Everything that is counted about those who hold something."""

    def __init__(self, snapshot: Snapshot, quotas: Quotas, shares: Shares) -> None:
        self.quotas = quotas
        self.shares = shares
        self.classes = snapshot.classes
        self.whole = whole(snapshot.nodes)
        self.milli_by_pool = _milli_by_pool(snapshot.nodes, self.whole)
        self.holdings: dict[JobId, Holding] = {}
        self.by_queue: dict[QueuePath, dict[JobId, Holding]] = {}
        self._ends: dict[PoolName, SortedRows[End]] = {}
        self.held_by_pool: Counter[PoolName] = Counter()
        self.in_array: Counter[JobId] = Counter()
        self.by_class: dict[ClassName, dict[JobId, Holding]] = {}
        # Those of them of which a checkpoint was seen.
        self.with_checkpoint: dict[ClassName, dict[JobId, Holding]] = {}
        self._losses: dict[LossKey, SortedRows[Loss]] = {}
        # Only for sides of a class that have a ceiling.
        self.by_class_side: dict[ClassSide, dict[JobId, Holding]] = {}
        self._bounded = {name: _bounded(each) for name, each in snapshot.classes.items()}
        self._amount_by_side: dict[ClassSide, Resources] = {}
        self._jobs_by_side: Counter[ClassSide] = Counter()

    def follow_nodes(self, nodes: Mapping[NodeId, Node]) -> set[JobId]:
        """Nodes came, went or were resized. The jobs that hold another part of all there is now."""
        old, self.whole = self.whole, whole(nodes)
        self.milli_by_pool = _milli_by_pool(nodes, self.whole)
        if old == self.whole:
            return set()
        return {
            job_id
            for job_id, holding in self.holdings.items()
            if _is_mixed(holding) or holding.milli != _milli(holding.portions, self.whole)
        }

    def follow_classes(self, classes: Mapping[ClassName, JobClass]) -> None:
        """Classes have other ceilings: count on which sides these bound anybody."""
        self.classes = classes
        self._bounded = {name: _bounded(each) for name, each in classes.items()}
        self.by_class_side, self._amount_by_side = {}, {}
        self._jobs_by_side = Counter()
        for holding in self.holdings.values():
            for side in self._bounded_sides(holding.spec):
                self._count_side(side, holding, 1)

    def follow_queues(self, queues: Mapping[QueuePath, Queue], nodes: Iterable[Node]) -> None:
        """Queues came, went, or have other quotas or weights: count what each of them uses."""
        self.quotas = Quotas(queues)
        self.quotas.resolve(nodes)
        self.shares = self.shares.with_queues(queues)
        plain = [each for each in self.holdings.values() if not each.is_claim]
        for change in _added_up(plain):
            self.quotas.add(change, (), sign=1)
        for holding in self.holdings.values():
            if holding.is_claim:
                self.quotas.add(*_change(holding), sign=1)

    def ends(self, pool: PoolName) -> Sequence[End]:
        """Who leaves the pool when at the latest, in that order."""
        found = self._ends.get(pool)
        return () if found is None else found.read()

    def losses(self) -> Iterator[tuple[LossKey, Sequence[Loss]]]:
        """Who would lose how much, among jobs that are alike in the rest."""
        return ((key, rows.read()) for key, rows in self._losses.items())

    def open(self, holding: Holding) -> None:
        """A job holds something from now on."""
        job = holding.job
        job_id, spec = job.id, job.spec
        self.holdings[job_id] = holding
        self.by_queue.setdefault(spec.queue, {})[job_id] = holding
        self.by_class.setdefault(spec.job_class, {})[job_id] = holding
        if job.checkpoint is not None:
            self.with_checkpoint.setdefault(spec.job_class, {})[job_id] = holding
        self._losses_of(holding).add((-holding.since, -job_id, holding))
        for pool, milli in holding.by_pool:
            ends = self._ends.get(pool)
            if ends is None:
                ends = self._ends[pool] = SortedRows()
            ends.add((holding.ends_at, job_id, milli))
            self.held_by_pool[pool] += milli
        self._count(holding, 1)

    def close(self, job_id: JobId) -> Holding | None:
        """The job holds nothing any more."""
        holding = self.holdings.pop(job_id, None)
        if holding is None:
            return None
        del self.by_queue[holding.spec.queue][job_id]
        del self.by_class[holding.spec.job_class][job_id]
        if holding.job.checkpoint is not None:
            beside = self.with_checkpoint[holding.spec.job_class]
            del beside[job_id]
            if not beside:
                del self.with_checkpoint[holding.spec.job_class]
        self._losses_of(holding).remove((-holding.since, -job_id))
        for pool, milli in holding.by_pool:
            self._ends[pool].remove((holding.ends_at, job_id))
            self.held_by_pool[pool] -= milli
        self._count(holding, -1)
        return holding

    def renew(self, job: Job, *, ends_at: Instant, since: Instant) -> None:
        """The job holds the same, but began or will end at another time."""
        old = self.holdings[job.id]
        # Spelt out because it is five times as quick as _replace, and a plan may renew 50,000.
        new = Holding(
            job,
            old.placements,
            old.portions,
            old.milli,
            old.by_pool,
            ends_at,
            old.gpu_milli,
            since,
            old.victims,
            old.is_awake,
            old.is_claim,
            old.is_alone,
        )
        job_id, spec = job.id, job.spec
        losses = self._losses_of(old)
        losses.remove((-old.since, -job_id))
        losses.add((-since, -job_id, new))
        for pool, milli in old.by_pool if ends_at != old.ends_at else ():
            ends = self._ends[pool]
            ends.remove((old.ends_at, job_id))
            ends.add((ends_at, job_id, milli))
        self.holdings[job_id] = new
        self.by_queue[spec.queue][job_id] = new
        self.by_class[spec.job_class][job_id] = new
        if job.checkpoint is not None:
            self.with_checkpoint.setdefault(spec.job_class, {})[job_id] = new
        for side in self._bounded_sides(spec):
            self.by_class_side[side][job_id] = new

    def array_without(self, job: Job) -> int:
        """How many other jobs of the same array run."""
        part = job.spec.array
        return 0 if part is None else self.in_array[part.array] - (job.id in self.holdings)

    def over_class_limit(
        self, spec: JobSpec, job_class: JobClass, amount: Resources, *, jobs: int = 1
    ) -> OverClassLimit | None:
        """Would the job take its user, or its queue, over what the class allows?"""
        if not self._bounded.get(spec.job_class):
            return None
        for key in self._bounded_sides(spec):
            _, side, whose = key
            used = self._amount_by_side.get(key, NOTHING)
            held = (self._jobs_by_side[key], jobs)
            over = _over(job_class.ceiling(side), used, amount, held)
            if over is not None:
                meter, limit, have, asked = over
                return OverClassLimit(
                    job_class=spec.job_class,
                    side=side,
                    whose=whose,
                    meter=meter,
                    limit=limit,
                    used=have,
                    asked=asked,
                )
        return None

    def _losses_of(self, holding: Holding) -> SortedRows[Loss]:
        spec = holding.job.spec
        key = (spec.job_class, holding.gpu_milli, spec.restart_cost)
        known = self._losses.get(key)
        if known is None:
            known = self._losses[key] = SortedRows()
        return known

    def _count(self, holding: Holding, sign: int) -> None:
        spec = holding.spec
        is_active = holding.is_awake
        self.quotas.add(*_change(holding), sign=sign)
        self.shares.hold(self.shares.leaf(spec.queue, spec.user), sign * holding.milli)
        if spec.array is not None and is_active:
            self.in_array[spec.array.array] += sign
        for side in self._bounded_sides(spec):
            self._count_side(side, holding, sign)

    def _bounded_sides(self, spec: JobSpec) -> list[ClassSide]:
        sides = self._bounded.get(spec.job_class, ())
        return [
            (spec.job_class, side, spec.user if side is Side.USER else spec.queue) for side in sides
        ]

    def _count_side(self, side: ClassSide, holding: Holding, sign: int) -> None:
        total = _total(holding)
        leaving = [each for each in holding.victims if side in _sides(each.spec)]
        rest = _rest(total, leaving) if leaving else total
        self._amount_by_side[side] = self._amount_by_side.get(side, NOTHING) + rest * sign
        self._jobs_by_side[side] += sign * max(0, holding.is_awake - len(leaving))
        beside = self.by_class_side.setdefault(side, {})
        if sign > 0:
            beside[holding.job.id] = holding
        else:
            del beside[holding.job.id]


def _change(holding: Holding) -> tuple[Change, list[Change]]:
    """What the job counts for, and what its victims do."""
    spec = holding.spec
    change = Change(spec.queue, holding.portions, int(holding.is_awake), holding.is_claim)
    return change, [Change(each.spec.queue, each.portions, jobs=1) for each in holding.victims]


def _added_up(holdings: Iterable[Holding]) -> Iterator[Change]:
    """What these count for, one change for each queue: what a line counts is a sum over jobs."""
    sums: dict[QueuePath, dict[tuple[PoolName, GpuModel | None, str | None], list[int]]] = {}
    jobs: Counter[QueuePath] = Counter()
    for holding in holdings:
        queue = holding.spec.queue
        jobs[queue] += holding.is_awake
        by_place = sums.setdefault(queue, {})
        for pool, model, amount, profile, instances in holding.portions:
            total = by_place.setdefault((pool, model, profile), [0, 0, 0, 0])
            total[0] += amount.cpu_milli
            total[1] += amount.memory_mib
            total[2] += amount.gpu_milli
            total[3] += instances
    for queue, by_place in sums.items():
        portions = [
            Portion(
                pool,
                model,
                Resources(cpu_milli=cpu_milli, memory_mib=memory_mib, gpu_milli=gpu_milli),
                profile,
                instances,
            )
            for (pool, model, profile), (
                cpu_milli,
                memory_mib,
                gpu_milli,
                instances,
            ) in by_place.items()
        ]
        yield Change(queue, portions, jobs[queue])


def _is_mixed(holding: Holding) -> bool:
    """Is what its pools get back not simply what counts against its user?"""
    return holding.is_alone or len(holding.portions) > 1


def _milli(portions: tuple[Portion, ...], all_there_is: Resources) -> int:
    return sum(dominant_milli(each.amount, all_there_is) for each in portions)


def _bounded(job_class: JobClass) -> tuple[Side, ...]:
    """For whom the class sets a ceiling."""
    return tuple(side for side in Side if job_class.ceiling(side) != UNCAPPED)


def _sides(spec: JobSpec) -> tuple[ClassSide, ClassSide]:
    return (
        (spec.job_class, Side.USER, spec.user),
        (spec.job_class, Side.QUEUE, spec.queue),
    )


def _total(holding: Holding) -> Resources:
    total = NOTHING
    for portion in holding.portions:
        total += portion.amount
    return total


def _rest(total: Resources, leaving: list[Holding]) -> Resources:
    for each in leaving:
        total -= _total(each)
    return Resources(
        cpu_milli=max(0, total.cpu_milli),
        memory_mib=max(0, total.memory_mib),
        gpu_milli=max(0, total.gpu_milli),
    )


def whole(nodes: Mapping[NodeId, Node]) -> Resources:
    """Everything that all nodes have."""
    return Resources(
        cpu_milli=sum(node.cpu_milli for node in nodes.values()),
        memory_mib=sum(node.memory_mib for node in nodes.values()),
        gpu_milli=sum(1_000 * len(node.devices) for node in nodes.values()),
    )


def _milli_by_pool(nodes: Mapping[NodeId, Node], all_there_is: Resources) -> dict[PoolName, int]:
    found: dict[PoolName, int] = {}
    for node in nodes.values():
        milli = dominant_milli(node.capacity, all_there_is)
        found[node.pool] = found.get(node.pool, 0) + milli
    return found


def portions_of(
    placements: tuple[Placement, ...], nodes: Mapping[NodeId, Node], *, is_suspended: bool
) -> tuple[Portion, ...]:
    """What placements come to, by pool and GPU model; suspended jobs hold their memory only."""
    found: dict[tuple[PoolName, GpuModel | None, object], tuple[Resources, int]] = {}
    for placement in placements:
        part = placement.devices[0].slice if placement.devices else None
        key = (placement.pool, model_of(placement, nodes), part)
        amount, instances = found.get(key, (NOTHING, 0))
        found[key] = (amount + placement.amount, instances + len(placement.devices))
    return tuple(
        _asleep(pool, model, amount)
        if is_suspended
        else portion_of(pool, model, amount, part, instances)
        for (pool, model, part), (amount, instances) in found.items()
    )


def model_of(placement: Placement, nodes: Mapping[NodeId, Node]) -> GpuModel | None:
    """The GPU model of the task's own devices; None if it has none, or its node is gone."""
    node = nodes.get(placement.node)
    if not placement.devices or node is None:
        return None
    first = placement.devices[0].device
    return next((device.model for device in node.devices if device.id == first), None)


def _asleep(pool: PoolName, model: GpuModel | None, amount: Resources) -> Portion:
    return Portion(pool, model, Resources(memory_mib=amount.memory_mib))


def _over(
    ceiling: Ceiling, used: Resources, asked: Resources, jobs: tuple[int, int]
) -> tuple[CeilingMeter, int, int, int] | None:
    amounts = (
        (CeilingMeter.GPU, ceiling.gpu_milli, used.gpu_milli, asked.gpu_milli),
        (CeilingMeter.CPU, ceiling.cpu_milli, used.cpu_milli, asked.cpu_milli),
        (CeilingMeter.MEMORY, ceiling.memory_mib, used.memory_mib, asked.memory_mib),
        (CeilingMeter.JOBS, ceiling.jobs, *jobs),
    )
    for meter, limit, have, more in amounts:
        if limit is not None and more and have + more > limit:
            return meter, limit, have, more
    return None
