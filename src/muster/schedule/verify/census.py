"""Who holds what: everyone is looked at once, and written down as the rules will ask for it."""

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from muster.model.job import ANYWHERE, Job, JobState
from muster.model.placement import Placement
from muster.model.queue import Ceiling, JobClass
from muster.model.snapshot import Snapshot
from muster.model.value import ClassName, JobId, NodeId, PoolName, QueuePath

Holder = tuple[Job, tuple[Placement, ...]]
"""A job and what it holds."""

Sitting = tuple[Job, Placement]
"""A job and one of its placements."""

NO_BOUND = Ceiling()


@dataclass(frozen=True)
class Column:
    """The placements in one pool, and beside each its job and the queue of that job.

    Three long lists cost less than one of very many tuples.
    """

    queues: list[QueuePath] = field(default_factory=list[QueuePath])
    jobs: list[Job] = field(default_factory=list[Job])
    placements: list[Placement] = field(default_factory=list[Placement])


Columns = Mapping[PoolName, Column]


@dataclass(frozen=True)
class Census:
    """Those who hold something and stay; job by job, each with its queue and its placements.

    `bounded` are those of them whose class has a ceiling, `choosy` those with groups that do not
    go just anywhere. `suspended` are beside them: they keep their memory only.
    """

    jobs: list[Job] = field(default_factory=list[Job])
    queues: list[QueuePath] = field(default_factory=list[QueuePath])
    held: list[tuple[Placement, ...]] = field(default_factory=list[tuple[Placement, ...]])
    bounded: list[Holder] = field(default_factory=list[Holder])
    choosy: list[Holder] = field(default_factory=list[Holder])
    suspended: list[Holder] = field(default_factory=list[Holder])

    def holders(self) -> Iterator[Holder]:
        """Each with what it holds."""
        return zip(self.jobs, self.held, strict=True)

    @cached_property
    def columns(self) -> Columns:
        """What they hold, by pool."""
        return _columns(self.jobs, self.queues, self.held)

    @cached_property
    def count_by_queue(self) -> Counter[QueuePath]:
        """How many of them each queue itself has."""
        return Counter(self.queues)

    def on(self, nodes: Container[NodeId]) -> dict[NodeId, list[Sitting]]:
        """Those on some of these nodes."""
        found: dict[NodeId, list[Sitting]] = {}
        for column in self.columns.values():
            for job, placement in zip(column.jobs, column.placements, strict=True):
                if placement.node in nodes:
                    found.setdefault(placement.node, []).append((job, placement))
        return found


def census_of(snapshot: Snapshot, victims: Container[JobId]) -> Census:
    """Count everyone but the victims.

    Jobs and allocations lie all over memory, and fetching them is what takes the time:
    whatever is needed of a job is taken while it is at hand.
    """
    census = Census()
    jobs, ceilings = snapshot.jobs, ceilings_of(snapshot.classes)
    running, starting, stopping = JobState.RUNNING, JobState.STARTING, JobState.STOPPING
    for job_id, allocation in snapshot.allocations.items():
        job = jobs.get(job_id)
        if job is None:
            continue
        state, placements = job.state, allocation.placements
        # Asked one by one, because the hash of an enum's member is slow.
        if state is running or state is starting or state is stopping:
            if job_id in victims:
                continue
            spec = job.spec
            census.jobs.append(job)
            census.queues.append(spec.queue)
            census.held.append(placements)
            if spec.job_class in ceilings:
                census.bounded.append((job, placements))
            if len(spec.groups) > 1 or spec.groups[0].where is not ANYWHERE:
                census.choosy.append((job, placements))
        elif state is JobState.SUSPENDED:
            census.suspended.append((job, placements))
    return census


def ceilings_of(classes: Mapping[ClassName, JobClass]) -> dict[ClassName, JobClass]:
    """The classes that bound what one user or one queue holds."""
    return {
        name: each
        for name, each in classes.items()
        if each.per_user != NO_BOUND or each.per_queue != NO_BOUND
    }


def columns_of(holders: Iterable[Holder]) -> Columns:
    """What these hold, by pool."""
    found = list(holders)
    jobs = [job for job, _ in found]
    return _columns(jobs, [job.spec.queue for job in jobs], [held for _, held in found])


def _columns(
    jobs: Collection[Job],
    queues: Collection[QueuePath],
    held: Collection[tuple[Placement, ...]],
) -> Columns:
    columns: dict[PoolName, Column] = {}
    for job, queue, placements in zip(jobs, queues, held, strict=True):
        for placement in placements:
            column = columns.get(placement.pool)
            if column is None:
                column = columns[placement.pool] = Column()
            column.queues.append(queue)
            column.jobs.append(job)
            column.placements.append(placement)
    return columns
