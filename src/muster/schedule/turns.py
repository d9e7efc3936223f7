"""How every job and every user stands: what the planner sorts by, for those who want to see it.

The numbers are those that hold before the first decision of a plan of the same snapshot. They are
worked out without the ledger, so that a list of jobs can have them at once.
"""

from collections.abc import Iterator
from typing import NamedTuple

from muster.model.job import Job, JobSpec
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.model.value import ClassName, JobId, QueuePath, UserName
from muster.schedule.accounts import Portion
from muster.schedule.books import portions_of, whole
from muster.schedule.follow import Hold, hold_of
from muster.schedule.merit import FULL, Merits, aged
from muster.schedule.needs import least_gpu_milli
from muster.schedule.quota import Change, Quotas
from muster.schedule.share import Shares, dominant_milli

Alike = tuple[QueuePath, UserName, ClassName, int]
"""Jobs that bring the same, apart from their age, size and level."""


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


class Turns:
    """Everybody's turn, by one snapshot."""

    def __init__(self, snapshot: Snapshot, policy: Policy) -> None:
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
        self._count(snapshot, policy)

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

    def _count(self, snapshot: Snapshot, policy: Policy) -> None:
        capacity = whole(snapshot.nodes)
        leaf = self.shares.leaf
        for job in snapshot.jobs.values():
            leaf(job.spec.queue, job.spec.user).jobs += 1
        holds = dict(_holds(snapshot, policy))
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


def _holds(snapshot: Snapshot, policy: Policy) -> Iterator[tuple[JobId, Hold]]:
    claimants = {job.id for job in snapshot.jobs.values() if job.claim is not None}
    for job in sorted(snapshot.allocations.keys() | claimants):
        hold = hold_of(job, snapshot, policy)
        if hold is not None:
            yield job, hold


def _change(hold: Hold, portions: tuple[Portion, ...]) -> Change:
    is_awake = int(not hold.is_suspended)
    return Change(hold.job.spec.queue, portions, is_awake, is_claim=hold.is_claim)


def _gpu_milli(spec: JobSpec) -> int:
    return sum(group.each.amount(None).gpu_milli * group.count for group in spec.groups)
