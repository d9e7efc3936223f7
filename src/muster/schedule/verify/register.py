"""Where everybody is, kept from snapshot to snapshot, so that a judge need not walk past them all.

It is made from snapshots alone. Beside the GPU that queues use it says only whom to look at: what
they hold is read in the snapshot that is judged.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from muster.model.job import Job, JobSpec, JobState
from muster.model.placement import Allocation, Placement
from muster.model.plan import Plan, Wait
from muster.model.snapshot import Snapshot
from muster.model.value import Instant, JobId, NodeId, PoolName, QueuePath, UserName
from muster.model.versioned import changed_keys
from muster.schedule.verify.fleet import Fleet

HOLDING = (JobState.RUNNING, JobState.STARTING, JobState.STOPPING)

K = TypeVar("K")

Groups = dict[K, set[JobId]]

GpuUse = dict[PoolName, dict[QueuePath, int]]
"""How much GPU, in thousandths, each queue itself uses in each pool."""


class Entry(NamedTuple):
    """What is written down of one job that has an allocation."""

    spec: JobSpec
    placements: tuple[Placement, ...]
    is_holding: bool
    is_suspended: bool


class Register:
    """Who holds something, who is on which node, who has a claim, and whose decision was checked.

    A plan says which waits differ from those of the plan before. Of a job that is as it was, whose
    wait is as it was, and about which nothing else was decided in either plan, what was found then
    holds now.
    """

    def __init__(self) -> None:
        self._seen = Snapshot(now=Instant(0))
        # The waits and moves of the last plan that kept all rules; None if there is none.
        self._approved: tuple[Mapping[JobId, Wait], frozenset[JobId]] | None = None
        self._changed: set[JobId] = set()
        self.fleet = Fleet(self._seen)
        self._start_over()

    def follow(self, snapshot: Snapshot) -> None:
        """Agree with this snapshot."""
        old, self._seen = self._seen, snapshot
        jobs = changed_keys(old.jobs, snapshot.jobs)
        allocations = changed_keys(old.allocations, snapshot.allocations)
        if changed_keys(old.nodes, snapshot.nodes) != ():
            self.fleet = Fleet(snapshot)
        if jobs is None or allocations is None:
            self._approved = None
            self._start_over()
            self._look_at(snapshot.jobs.keys() | snapshot.allocations.keys(), snapshot)
        else:
            self._changed.update(jobs)
            self._look_at({*jobs, *allocations}, snapshot)

    def suspects(self, plan: Plan) -> set[JobId] | None:
        """The jobs whose decisions must be counted; None if those of all."""
        if self._approved is None:
            return None
        waits, moved = self._approved
        others = changed_keys(waits, plan.waits)
        if others is None:
            return None
        return {*others, *self._changed, *moved, *(each.job for each in plan.moves)}

    def approve(self, plan: Plan, *, is_sound: bool) -> None:
        """Remember what came of judging this plan."""
        self._changed.clear()
        moved = frozenset(each.job for each in plan.moves)
        self._approved = (plan.waits, moved) if is_sound else None

    def on(self, node: NodeId) -> Iterable[JobId]:
        """Whose allocations name this node."""
        return self._by_node.get(node, ())

    def _start_over(self) -> None:
        self.holding: set[JobId] = set()
        self.suspended: set[JobId] = set()
        self.claiming: set[JobId] = set()
        # Of those that are holding: by whose they are, and those that are not like most others.
        self.by_queue: Groups[QueuePath] = {}
        self.by_user: Groups[UserName] = {}
        self.by_array: Groups[JobId] = {}
        self.labelled: set[JobId] = set()
        self.shy: set[JobId] = set()
        self.gpu_use: GpuUse = defaultdict(by_queue)
        self._by_node: dict[NodeId, dict[JobId, None]] = {}
        self._entries: dict[JobId, Entry] = {}

    def _look_at(self, these: Iterable[JobId], snapshot: Snapshot) -> None:
        for job_id in these:
            self._note(job_id, snapshot.jobs.get(job_id), snapshot.allocations.get(job_id))

    def _note(self, job_id: JobId, job: Job | None, allocation: Allocation | None) -> None:
        if job is not None and job.claim is not None:
            self.claiming.add(job_id)
        else:
            self.claiming.discard(job_id)
        known = self._entries.get(job_id)
        new = None
        if job is not None and allocation is not None:
            is_holding, is_asleep = job.state in HOLDING, job.state is JobState.SUSPENDED
            new = Entry(job.spec, allocation.placements, is_holding, is_asleep)
        if known is not None:
            if new is not None and _is_same(known, new):
                return
            self._forget(job_id, known)
        if new is not None:
            self._remember(job_id, new)

    def _remember(self, job_id: JobId, entry: Entry) -> None:
        self._entries[job_id] = entry
        for placement in entry.placements:
            self._by_node.setdefault(placement.node, {})[job_id] = None
        if entry.is_suspended:
            self.suspended.add(job_id)
        if not entry.is_holding:
            return
        spec, queue = entry.spec, entry.spec.queue
        self.holding.add(job_id)
        self.by_queue.setdefault(queue, set()).add(job_id)
        self.by_user.setdefault(spec.user, set()).add(job_id)
        if spec.array is not None:
            self.by_array.setdefault(spec.array.array, set()).add(job_id)
        if spec.labels:
            self.labelled.add(job_id)
        if any(group.where.apart for group in spec.groups):
            self.shy.add(job_id)
        for placement in entry.placements:
            self.gpu_use[placement.pool][queue] += placement.amount.gpu_milli

    def _forget(self, job_id: JobId, entry: Entry) -> None:
        del self._entries[job_id]
        for placement in entry.placements:
            self._by_node[placement.node].pop(job_id, None)
        self.suspended.discard(job_id)
        if not entry.is_holding:
            return
        spec, queue = entry.spec, entry.spec.queue
        self.holding.discard(job_id)
        _leave(self.by_queue, queue, job_id)
        _leave(self.by_user, spec.user, job_id)
        if spec.array is not None:
            _leave(self.by_array, spec.array.array, job_id)
        self.labelled.discard(job_id)
        self.shy.discard(job_id)
        for placement in entry.placements:
            self.gpu_use[placement.pool][queue] -= placement.amount.gpu_milli


def by_queue() -> dict[QueuePath, int]:
    return defaultdict(int)


def _is_same(one: Entry, other: Entry) -> bool:
    """Nothing that is written down differs; most who move only begin to run."""
    return (
        one.spec is other.spec
        and one.placements is other.placements
        and one.is_holding == other.is_holding
        and one.is_suspended == other.is_suspended
    )


def _leave(groups: Groups[K], key: K, job_id: JobId) -> None:
    group = groups[key]
    group.discard(job_id)
    if not group:
        del groups[key]
