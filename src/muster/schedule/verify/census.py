"""Who holds what and stays, written down as rules will ask, and no more of it than they do."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Set
from functools import cached_property

from muster.model.job import Job, JobState
from muster.model.placement import Placement
from muster.model.queue import Ceiling, JobClass
from muster.model.snapshot import Snapshot
from muster.model.value import ClassName, JobId, NodeId, QueuePath, UserName, Value
from muster.schedule.verify.register import GpuUse, Register, by_queue

Holder = tuple[Job, tuple[Placement, ...]]
"""A job and what it holds."""

Sitting = tuple[Job, Placement]
"""A job and one of its placements."""

NO_BOUND = Ceiling()


class Rows(Value):
    """Jobs and what they hold, and how many of them each queue has."""

    holders: list[Holder]
    queues: Counter[QueuePath]
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
    def suspended(self) -> list[Holder]:
        """Apart from these, the jobs that keep only their memory."""
        if self._register is None:
            return self._rows.suspended
        return self._those(self._register.suspended)

    @property
    def queues(self) -> Set[QueuePath]:
        """Those that have any of them."""
        return (
            self._rows.queues.keys() if self._register is None else self._register.by_queue.keys()
        )

    def holders(self) -> Iterator[Holder]:
        """Each with what it holds."""
        return iter(self._rows.holders)

    def of(self, queues: Iterable[QueuePath], users: Iterable[UserName] = ()) -> Iterator[Holder]:
        """Those of these queues themselves, or of these users."""
        register, queues, users = self._register, set(queues), set(users)
        if register is None:
            specs = ((holder, holder[0].spec) for holder in self._rows.holders)
            return (each for each, spec in specs if spec.queue in queues or spec.user in users)
        found: set[JobId] = set()
        for queue in queues:
            found |= register.by_queue.get(queue, set())
        for user in users:
            found |= register.by_user.get(user, set())
        return iter(self._those(found))

    def in_arrays(self, arrays: Iterable[JobId]) -> list[Job]:
        """Those that are part of one of these."""
        register, wanted = self._register, set(arrays)
        if register is not None:
            found = {job for array in wanted for job in register.by_array.get(array, ())}
            return [job for job, _ in self._those(found)]
        parts = ((job, job.spec.array) for job, _ in self._rows.holders)
        return [job for job, part in parts if part is not None and part.array in wanted]

    @cached_property
    def gpu_use(self) -> GpuUse:
        """How much GPU each queue uses where."""
        register = self._register
        if register is None:
            queues = [job.spec.queue for job, _ in self._rows.holders]
            return gpu_use_of(queues, [held for _, held in self._rows.holders])
        leaving = register.holding & self._victims
        if not leaving:
            return register.gpu_use
        found = {pool: dict(uses) for pool, uses in register.gpu_use.items()}
        for each in leaving:
            for placement in self._snapshot.allocations[each].placements:
                queue = self._snapshot.jobs[each].spec.queue
                found[placement.pool][queue] -= placement.amount.gpu_milli
        return found

    @cached_property
    def count_by_queue(self) -> Counter[QueuePath]:
        """How many of them each queue itself has."""
        register = self._register
        if register is None:
            return Counter(self._rows.queues)
        found = Counter({queue: len(jobs) for queue, jobs in register.by_queue.items()})
        for each in register.holding & self._victims:
            found[self._snapshot.jobs[each].spec.queue] -= 1
        return found

    @cached_property
    def labelled(self) -> list[Holder]:
        """Those that carry a label."""
        if self._register is not None:
            return self._those(self._register.labelled)
        return [holder for holder in self.holders() if holder[0].spec.labels]

    @cached_property
    def shy(self) -> list[Holder]:
        """Those that keep others off."""
        if self._register is not None:
            return self._those(self._register.shy)
        return [
            holder
            for holder in self.holders()
            if any(group.where.apart for group in holder[0].spec.groups)
        ]

    def _those(self, jobs: Set[JobId]) -> list[Holder]:
        """These with what they hold, by id, without victims."""
        snapshot, victims = self._snapshot, self._victims
        return [
            (snapshot.jobs[each], snapshot.allocations[each].placements)
            for each in sorted(jobs)
            if each not in victims
        ]

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
    found: GpuUse = defaultdict(by_queue)
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
    rows = Rows(holders=[], queues=Counter(), suspended=[])
    jobs = snapshot.jobs
    running, starting, stopping = JobState.RUNNING, JobState.STARTING, JobState.STOPPING
    for job_id, allocation in snapshot.allocations.items():
        job = jobs.get(job_id)
        if job is None:
            continue
        state = job.state
        if state is running or state is starting or state is stopping:
            if job_id not in victims:
                rows.holders.append((job, allocation.placements))
                rows.queues[job.spec.queue] += 1
        elif state is JobState.SUSPENDED:
            rows.suspended.append((job, allocation.placements))
    return rows
