"""Where everybody is, kept from snapshot to snapshot, so that a judge need not walk past them all.

It is made from snapshots alone and says only whom to look at: what they hold, and whether they hold
it still, is read in the snapshot that is judged.
"""

from collections.abc import Iterable, Mapping

from muster.model.job import Job, JobState
from muster.model.placement import Allocation
from muster.model.plan import Plan, Wait
from muster.model.snapshot import Snapshot
from muster.model.value import Instant, JobId, NodeId
from muster.model.versioned import changed_keys

HOLDING = (JobState.RUNNING, JobState.STARTING, JobState.STOPPING)


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
        self._start_over()

    def follow(self, snapshot: Snapshot) -> None:
        """Agree with this snapshot."""
        old, self._seen = self._seen, snapshot
        jobs = changed_keys(old.jobs, snapshot.jobs)
        allocations = changed_keys(old.allocations, snapshot.allocations)
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
        self.claiming: set[JobId] = set()
        self._by_node: dict[NodeId, dict[JobId, None]] = {}
        self._nodes_of: dict[JobId, tuple[NodeId, ...]] = {}

    def _look_at(self, these: Iterable[JobId], snapshot: Snapshot) -> None:
        for job_id in these:
            self._note(job_id, snapshot.jobs.get(job_id), snapshot.allocations.get(job_id))

    def _note(self, job_id: JobId, job: Job | None, allocation: Allocation | None) -> None:
        for node in self._nodes_of.pop(job_id, ()):
            self._by_node[node].pop(job_id, None)
        self.holding.discard(job_id)
        self.claiming.discard(job_id)
        if job is None:
            return
        if job.claim is not None:
            self.claiming.add(job_id)
        if allocation is None:
            return
        if job.state in HOLDING:
            self.holding.add(job_id)
        nodes = tuple([placement.node for placement in allocation.placements])
        self._nodes_of[job_id] = nodes
        for node in nodes:
            self._by_node.setdefault(node, {})[job_id] = None
