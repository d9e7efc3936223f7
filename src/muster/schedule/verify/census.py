"""Who holds what and stays, written down as rules will ask, and no more of it than they do."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Set
from functools import cached_property

from muster.model.job import Job, JobState, TaskGroup
from muster.model.placement import Placement
from muster.model.queue import Ceiling, JobClass
from muster.model.snapshot import Snapshot
from muster.model.value import ClassName, JobId, NodeId, PoolName, QueuePath, Value
from muster.schedule.verify.register import Register

Holder = tuple[Job, tuple[Placement, ...]]
"""A job and what it holds."""

Sitting = tuple[Job, Placement]
"""A job and one of its placements."""

GpuUse = dict[PoolName, dict[QueuePath, int]]
"""How much GPU, in thousandths, each queue itself uses in each pool."""

NO_BOUND = Ceiling()


class Rows(Value):
    """Jobs side by side: their queues, groups and what they hold."""

    jobs: list[Job]
    queues: list[QueuePath]
    groups: list[tuple[TaskGroup, ...]]
    held: list[tuple[Placement, ...]]
    bounded: list[Holder]
    suspended: list[Holder]


class Glimpse(Value):
    """Those on the nodes in question, and how many of those that were passed hold something."""

    count: int
    standing: dict[NodeId, list[Sitting]]
    dozing: dict[NodeId, list[Sitting]]


class Census:
    """Those who hold something and stay: everyone but the victims; more closely, who is on `nodes`.

    Few plans ask for more than that, so the rest is written down when it is asked for.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        victims: Set[JobId],
        nodes: Set[NodeId],
        register: Register | None,
    ) -> None:
        self._snapshot = snapshot
        self._victims = victims
        self._nodes = nodes
        self._register = register

    @property
    def count(self) -> int:
        """How many they are."""
        if self._register is None:
            return self._glimpse.count
        holding = self._register.holding
        return len(holding) - len(holding & self._victims)

    @property
    def standing(self) -> dict[NodeId, list[Sitting]]:
        """Those on nodes to which the plan adds something."""
        return self._glimpse.standing

    @property
    def dozing(self) -> dict[NodeId, list[Sitting]]:
        """Jobs that are suspended on these nodes; they are not counted among the others."""
        return self._glimpse.dozing

    @property
    def jobs(self) -> list[Job]:
        """All of them; beside each, in lists of their own, its queue, groups and holding."""
        return self._rows.jobs

    @property
    def queues(self) -> list[QueuePath]:
        """Their queues."""
        return self._rows.queues

    @property
    def held(self) -> list[tuple[Placement, ...]]:
        """What they hold."""
        return self._rows.held

    @property
    def bounded(self) -> list[Holder]:
        """Those of them whose class has a ceiling."""
        return self._rows.bounded

    @property
    def suspended(self) -> list[Holder]:
        """Apart from these, the jobs that keep only their memory."""
        return self._rows.suspended

    def holders(self) -> Iterator[Holder]:
        """Each with what it holds."""
        return zip(self.jobs, self.held, strict=True)

    @cached_property
    def gpu_use(self) -> GpuUse:
        """How much GPU each queue uses where."""
        return gpu_use_of(self.queues, self.held)

    @cached_property
    def count_by_queue(self) -> Counter[QueuePath]:
        """How many of them each queue itself has."""
        return Counter(self.queues)

    @cached_property
    def labelled(self) -> list[Holder]:
        """Those that carry a label."""
        return [holder for holder in self.holders() if holder[0].spec.labels]

    @cached_property
    def shy(self) -> list[Holder]:
        """Those that keep others off, once for each group with such a rule."""
        found = [
            number
            for number, groups in enumerate(self._rows.groups)
            for group in groups
            if group.where.apart
        ]
        return [(self.jobs[number], self.held[number]) for number in found]

    @cached_property
    def _glimpse(self) -> Glimpse:
        register, everybody = self._register, self._snapshot.allocations
        if register is None:
            return _glimpse_of(self._snapshot, everybody, self._victims, self._nodes)
        # In the order of their ids, not in the order in which they came.
        there = sorted({job_id for node in self._nodes for job_id in register.on(node)})
        return _glimpse_of(self._snapshot, there, self._victims, self._nodes)

    @cached_property
    def _rows(self) -> Rows:
        return _rows_of(self._snapshot, self._victims)


def gpu_use_of(queues: Iterable[QueuePath], held: Iterable[tuple[Placement, ...]]) -> GpuUse:
    """How much GPU jobs of these queues use, each of which holds what stands beside its queue."""
    found: GpuUse = defaultdict(_by_queue)
    for queue, placements in zip(queues, held, strict=True):
        for placement in placements:
            found[placement.pool][queue] += placement.amount.gpu_milli
    return found


def ceilings_of(classes: Mapping[ClassName, JobClass]) -> dict[ClassName, JobClass]:
    """The classes that bound what one user or one queue holds."""
    return {
        name: each
        for name, each in classes.items()
        if each.per_user != NO_BOUND or each.per_queue != NO_BOUND
    }


def _glimpse_of(
    snapshot: Snapshot, ids: Iterable[JobId], victims: Set[JobId], nodes: Set[NodeId]
) -> Glimpse:
    """Everybody may be passed on the way, so this is spelt out."""
    jobs, allocations, count = snapshot.jobs, snapshot.allocations, 0
    running, starting, stopping = JobState.RUNNING, JobState.STARTING, JobState.STOPPING
    standing: dict[NodeId, list[Sitting]] = {}
    dozing: dict[NodeId, list[Sitting]] = {}
    for job_id in ids:
        job, allocation = jobs.get(job_id), allocations.get(job_id)
        if job is None or allocation is None:
            continue
        state = job.state
        # Asked one by one: to look an enum's member up in a set takes far longer.
        if state is running or state is starting or state is stopping:
            if job_id in victims:
                continue
            count += 1
            there = standing
        elif state is JobState.SUSPENDED:
            there = dozing
        else:
            continue
        for placement in allocation.placements:
            if placement.node in nodes:
                there.setdefault(placement.node, []).append((job, placement))
    return Glimpse(count=count, standing=standing, dozing=dozing)


def _rows_of(snapshot: Snapshot, victims: Container[JobId]) -> Rows:
    """Jobs lie all over memory; whatever is needed of one is taken while it is at hand."""
    rows = Rows(jobs=[], queues=[], groups=[], held=[], bounded=[], suspended=[])
    jobs, ceilings = snapshot.jobs, ceilings_of(snapshot.classes)
    running, starting, stopping = JobState.RUNNING, JobState.STARTING, JobState.STOPPING
    note_job, note_queue = rows.jobs.append, rows.queues.append
    note_groups, note_held = rows.groups.append, rows.held.append
    for job_id, allocation in snapshot.allocations.items():
        job = jobs.get(job_id)
        if job is None:
            continue
        state = job.state
        if state is running or state is starting or state is stopping:
            if job_id in victims:
                continue
            spec = job.spec
            note_job(job)
            note_queue(spec.queue)
            note_groups(spec.groups)
            note_held(allocation.placements)
            if spec.job_class in ceilings:
                rows.bounded.append((job, allocation.placements))
        elif state is JobState.SUSPENDED:
            rows.suspended.append((job, allocation.placements))
    return rows


def _by_queue() -> dict[QueuePath, int]:
    return defaultdict(int)
