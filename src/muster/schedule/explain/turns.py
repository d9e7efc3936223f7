"""How every job and every user stands: what the planner sorts by, for those who want to see it.

The numbers are those that hold before the first decision of a plan of the same snapshot. They are
worked out without the ledger, so that a list of jobs can have them at once.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from operator import attrgetter
from typing import NamedTuple

from muster.model.job import Job, JobSpec
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.model.value import ClassName, JobId, QueuePath, UserName
from muster.model.versioned import changed_keys
from muster.schedule.policy.merit import FULL, Merits, aged
from muster.schedule.room.needs import least_gpu_milli
from muster.schedule.state.accounts import Portion
from muster.schedule.state.books import portions_of, whole
from muster.schedule.state.follow import Hold, hold_of
from muster.schedule.state.quota import Change, Quotas
from muster.schedule.state.share import Shares, dominant_milli

Alike = tuple[QueuePath, UserName, ClassName, int]
"""Jobs that bring the same, apart from their age, size and level."""

Leaf = tuple[QueuePath, UserName]
_LEAF: Callable[[Job], Leaf] = attrgetter("spec.queue", "spec.user")


class Points(NamedTuple):
    """What a turn is made of. is_own: its queue is within its guarantee, and so goes first."""

    job_class: int
    queue: int
    size: int
    short: int
    service: int
    asked: int
    age: int
    fair_share: int
    is_own: bool

    @property
    def total(self) -> int:
        """Of two jobs, both within a guarantee or both not, the one with more goes first."""
        return sum(self[:-1])


class Crowds:
    """How many jobs everybody has, and who has a claim: kept up from snapshot to snapshot."""

    def __init__(self) -> None:
        self._seen: Mapping[JobId, Job] = {}
        self.sizes: Counter[Leaf] = Counter()
        self.claimants: set[JobId] = set()

    def follow(self, jobs: Mapping[JobId, Job]) -> None:
        """Agree with these jobs."""
        old, self._seen = self._seen, jobs
        noted = changed_keys(old, jobs)
        if noted is None:
            self.sizes = Counter(map(_LEAF, jobs.values()))
            self.claimants = {job.id for job in jobs.values() if job.claim is not None}
            return
        for each in noted:
            self._swap(old.get(each), jobs.get(each))

    def _swap(self, old: Job | None, new: Job | None) -> None:
        if old is not None:
            self.sizes[_LEAF(old)] -= 1
            self.claimants.discard(old.id)
        if new is not None:
            self.sizes[_LEAF(new)] += 1
            if new.claim is not None:
                self.claimants.add(new.id)


class Turns:
    """Everybody's turn, by one snapshot. crowds: of the same snapshot, where they are known."""

    def __init__(self, snapshot: Snapshot, policy: Policy, crowds: Crowds | None = None) -> None:
        self.weights = policy.order
        self.shares = Shares(snapshot.queues, policy.share)
        self._merits = Merits(snapshot.queues, snapshot.classes, policy.order)
        self._quotas = Quotas(snapshot.queues)
        self._quotas.resolve(snapshot.nodes.values())
        self._now = aged(snapshot.now, policy.order)
        self._age_points = policy.order.age * FULL
        self._guarantees = any(each.own_lines for each in self._quotas.accounts.values())
        self._levels = snapshot.levels if policy.has_levels else None
        self._is_plain = not (policy.order.size or policy.order.short or policy.order.service)
        self._same: dict[Alike, int] = {}
        if crowds is None:
            crowds = Crowds()
            crowds.follow(snapshot.jobs)
        self._count(snapshot, policy, crowds)

    def of(self, job: Job) -> Points:
        """What the job's turn is made of; an age counts from when it could first have begun."""
        spec = job.spec
        level = 0 if self._levels is None else self._levels.level(spec, job.ran)
        merit = self._merits.of(job, _gpu_milli(spec), level)
        return Points(
            *merit[:-1],
            age=max(0, self._now + merit.age),
            fair_share=self._fair_share(spec),
            is_own=self.is_own(spec),
        )

    def total(self, job: Job) -> int:
        """The sum of its points. Long lists ask for it, and most jobs differ by age alone."""
        if not self._is_plain:
            return self.of(job).total
        spec = job.spec
        key = (spec.queue, spec.user, spec.job_class, spec.priority)
        same = self._same.get(key)
        if same is None:
            points = self.of(job)
            same = self._same[key] = points.total - points.age
        since, begin_at = job.submitted_at, job.begin_at
        if begin_at is not None and begin_at > since:
            since = begin_at
        age = self._now - self._age_points * since // self.weights.age_full
        return same + age if age > 0 else same

    def is_own(self, spec: JobSpec) -> bool:
        """Would the job keep its queue within what is guaranteed to it?"""
        if not self._guarantees or not self._quotas.may_own(spec.queue):
            return False
        least = sum(least_gpu_milli(group.each.gpus) * group.fewest for group in spec.groups)
        return self._quotas.is_own(spec.queue, least)

    def _fair_share(self, spec: JobSpec) -> int:
        leaf = self.shares.seat(spec.queue, spec.user)
        return self.weights.fair_share * self.shares.factor(leaf)

    def _count(self, snapshot: Snapshot, policy: Policy, crowds: Crowds) -> None:
        capacity = whole(snapshot.nodes)
        leaf = self.shares.leaf
        for (queue, user), size in crowds.sizes.items():
            if size:
                leaf(queue, user).jobs += size
        holds = dict(_holds(snapshot, policy, crowds.claimants))
        portions = {
            job: portions_of(hold.placements, snapshot.nodes, is_suspended=hold.is_suspended)
            for job, hold in holds.items()
        }
        for job, hold in holds.items():
            milli = sum(dominant_milli(each.amount, capacity) for each in portions[job])
            self.shares.hold(leaf(hold.job.spec.queue, hold.job.spec.user), milli)
            victims = [
                _change(holds[each], portions[each]) for each in hold.victims if each in holds
            ]
            self._quotas.add(_change(hold, portions[job]), victims, sign=1)
        self.shares.recount(snapshot, capacity.gpu_milli or capacity.cpu_milli)


def _holds(
    snapshot: Snapshot, policy: Policy, claimants: Set[JobId]
) -> Iterator[tuple[JobId, Hold]]:
    for job in sorted(snapshot.allocations.keys() | claimants):
        hold = hold_of(job, snapshot, policy)
        if hold is not None:
            yield job, hold


def _change(hold: Hold, portions: tuple[Portion, ...]) -> Change:
    is_awake = int(not hold.is_suspended)
    return Change(hold.job.spec.queue, portions, is_awake, is_claim=hold.is_claim)


def _gpu_milli(spec: JobSpec) -> int:
    return sum(group.each.amount(None).gpu_milli * group.count for group in spec.groups)
