"""The tree of shares of one snapshot, without planning it: for those who want to see shares."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from operator import attrgetter

from muster.model.job import Job
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.model.value import JobId, QueuePath, UserName
from muster.model.versioned import changed_keys
from muster.schedule.state.books import portions_of, whole
from muster.schedule.state.follow import HeldRoom, hold_of
from muster.schedule.state.share import Shares, dominant_milli

Leaf = tuple[QueuePath, UserName]
_LEAF: Callable[[Job], Leaf] = attrgetter("spec.queue", "spec.user")


class JobCounts:
    """How many jobs each user has, and which jobs have a claim: kept up between snapshots."""

    def __init__(self) -> None:
        self._seen: Mapping[JobId, Job] = {}
        self.by_user: Counter[Leaf] = Counter()
        self.claimants: set[JobId] = set()

    def follow(self, jobs: Mapping[JobId, Job]) -> None:
        """Agree with these jobs."""
        old, self._seen = self._seen, jobs
        noted = changed_keys(old, jobs)
        if noted is None:
            self.by_user = Counter(map(_LEAF, jobs.values()))
            self.claimants = {job.id for job in jobs.values() if job.claim is not None}
            return
        for each in noted:
            self._swap(old.get(each), jobs.get(each))

    def _swap(self, old: Job | None, new: Job | None) -> None:
        if old is not None:
            self.by_user[_LEAF(old)] -= 1
            self.claimants.discard(old.id)
        if new is not None:
            self.by_user[_LEAF(new)] += 1
            if new.claim is not None:
                self.claimants.add(new.id)


def shares_of(snapshot: Snapshot, policy: Policy, counts: JobCounts | None = None) -> Shares:
    """As they are before the first decision of a plan. counts: of this snapshot, where known."""
    if counts is None:
        counts = JobCounts()
        counts.follow(snapshot.jobs)
    shares = Shares(snapshot.queues, policy.share)
    capacity = whole(snapshot.nodes)
    for (queue, user), count in counts.by_user.items():
        if count:
            shares.leaf(queue, user).jobs += count
    for hold in _holds(snapshot, policy, counts.claimants):
        portions = portions_of(hold.placements, snapshot.nodes, is_suspended=hold.is_suspended)
        milli = sum(dominant_milli(each.amount, capacity) for each in portions)
        shares.hold(shares.leaf(hold.job.spec.queue, hold.job.spec.user), milli)
    shares.recount(snapshot, capacity.gpu_milli or capacity.cpu_milli)
    return shares


def _holds(snapshot: Snapshot, policy: Policy, claimants: Set[JobId]) -> Iterator[HeldRoom]:
    for job in sorted(snapshot.allocations.keys() | claimants):
        hold = hold_of(job, snapshot, policy)
        if hold is not None:
            yield hold
