"""Who holds what and stays: everyone is looked at once, and written down as rules will ask."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from muster.model.job import Job, JobState, TaskGroup
from muster.model.placement import Placement
from muster.model.queue import Ceiling, JobClass
from muster.model.snapshot import Snapshot
from muster.model.value import ClassName, JobId, NodeId, PoolName, QueuePath

Holder = tuple[Job, tuple[Placement, ...]]
"""A job and what it holds."""

Sitting = tuple[Job, Placement]
"""A job and one of its placements."""

GpuUse = dict[PoolName, dict[QueuePath, int]]
"""How much GPU, in thousandths, each queue itself uses in each pool."""

NO_BOUND = Ceiling()


@dataclass(frozen=True)
class Census:
    """Those who hold something and stay: their jobs, and beside each its queue, groups and holding.

    `bounded` are those of them whose class has a ceiling,
    `standing` those on nodes to which the plan adds something.
    Apart from these, `suspended` are the jobs that keep only their memory.
    """

    jobs: list[Job] = field(default_factory=list[Job])
    queues: list[QueuePath] = field(default_factory=list[QueuePath])
    groups: list[tuple[TaskGroup, ...]] = field(default_factory=list[tuple[TaskGroup, ...]])
    held: list[tuple[Placement, ...]] = field(default_factory=list[tuple[Placement, ...]])
    bounded: list[Holder] = field(default_factory=list[Holder])
    suspended: list[Holder] = field(default_factory=list[Holder])
    standing: dict[NodeId, list[Sitting]] = field(default_factory=dict[NodeId, list[Sitting]])
    gpu_use: GpuUse = field(default_factory=lambda: defaultdict(_by_queue))

    def holders(self) -> Iterator[Holder]:
        """Each with what it holds."""
        return zip(self.jobs, self.held, strict=True)

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
            for number, groups in enumerate(self.groups)
            for group in groups
            if group.where.apart
        ]
        return [(self.jobs[number], self.held[number]) for number in found]


def census_of(snapshot: Snapshot, victims: Container[JobId], nodes: Container[NodeId]) -> Census:
    """Look at everyone but the victims, and closer at those on these nodes."""
    census = Census()
    _note_jobs(census, snapshot, victims)
    _note_placements(census, nodes)
    return census


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


def _note_jobs(census: Census, snapshot: Snapshot, victims: Container[JobId]) -> None:
    """Jobs lie all over memory; whatever is needed of one is taken while it is at hand."""
    jobs, ceilings = snapshot.jobs, ceilings_of(snapshot.classes)
    running, starting, stopping = JobState.RUNNING, JobState.STARTING, JobState.STOPPING
    note_job, note_queue = census.jobs.append, census.queues.append
    note_groups, note_held = census.groups.append, census.held.append
    for job_id, allocation in snapshot.allocations.items():
        job = jobs.get(job_id)
        if job is None:
            continue
        state = job.state
        # Asked one by one: to look an enum's member up in a set takes far longer.
        if state is running or state is starting or state is stopping:
            if job_id in victims:
                continue
            spec = job.spec
            note_job(job)
            note_queue(spec.queue)
            note_groups(spec.groups)
            note_held(allocation.placements)
            if spec.job_class in ceilings:
                census.bounded.append((job, allocation.placements))
        elif state is JobState.SUSPENDED:
            census.suspended.append((job, allocation.placements))


def _note_placements(census: Census, nodes: Container[NodeId]) -> None:
    """Jobs are left where they are, but for the few on these nodes."""
    jobs, queues, standing, gpu_use = census.jobs, census.queues, census.standing, census.gpu_use
    for number, placements in enumerate(census.held):
        queue = queues[number]
        for placement in placements:
            if placement.node in nodes:
                standing.setdefault(placement.node, []).append((jobs[number], placement))
            gpu_use[placement.pool][queue] += placement.amount.gpu_milli


def _by_queue() -> dict[QueuePath, int]:
    return defaultdict(int)
