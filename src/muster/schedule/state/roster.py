"""The waiting jobs, in lanes: one for each user in each queue, in their order.

Within a lane the order never changes while nothing is edited: class, size, queue and age set it,
and age grows alike for all. Between lanes it follows fair share, which `order.py` looks after.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from muster.model.cluster import Ability, Pool
from muster.model.job import Job, JobSpec, JobState, Spot, TaskGroup
from muster.model.levels import Levels
from muster.model.policy import Policy
from muster.model.queue import JobClass, Queue
from muster.model.reason import NoRoom, NoSuchClass, NoSuchQueue, WaitReason
from muster.model.resources import NOTHING, Resources
from muster.model.snapshot import Snapshot
from muster.model.value import (
    ClassName,
    ClusterName,
    Duration,
    Instant,
    JobId,
    PoolName,
    QueuePath,
    UserName,
)
from muster.schedule.policy.merit import NO_MERIT, Merits, waited_since
from muster.schedule.room.needs import Need, Needs
from muster.schedule.state.accounts import UNCAPPED, WITHOUT_END
from muster.schedule.state.bursting import BurstRules
from muster.schedule.state.share import Branch, Shares
from muster.schedule.state.sorted_rows import SortedRows
from muster.schedule.state.verdict import Verdict

NEVER = -1
"""The number of no plan, and of no state of things."""


class GroupNeed(NamedTuple):
    """A task group and the need of each of its tasks."""

    group: TaskGroup
    need: Need


class Shape:
    """Jobs that ask for the same. Equal shapes are one object."""

    __slots__ = (
        "amount",
        "entries",
        "groups",
        "is_picky",
        "is_single",
        "least",
        "least_gpu_milli",
        "verdict",
    )

    def __init__(self, groups: tuple[GroupNeed, ...]) -> None:
        self.groups = groups
        self.is_single = all(group.count == 1 for group, _ in groups)
        self.is_picky = any(need.is_picky for _, need in groups)
        self.amount = _amount(groups)
        # The least that any job of this shape holds, wherever it lands.
        self.least = _least(groups)
        self.least_gpu_milli = self.least.gpu_milli
        # The jobs of this shape that wait.
        self.entries: dict[JobId, WaitingJob] = {}
        self.verdict = Verdict(
            NoRoom(group=groups[0].group.name, placed=0, wanted=1, nodes=0), plan=NEVER
        )


class EquivalenceClass:
    """Jobs of one shape, queue, class, level and time limit: what keeps one keeps them all."""

    __slots__ = ("verdict",)

    def __init__(self, shape: Shape) -> None:
        self.verdict = Verdict(shape.verdict.why, plan=NEVER, state=NEVER)


class Lane:
    """One user's waiting jobs in one queue; `share` is what their final ranks count with."""

    __slots__ = ("entries", "has_new", "leaf", "queue", "rows", "share", "user")

    def __init__(self, queue: QueuePath, user: UserName, leaf: Branch) -> None:
        self.queue = queue
        self.user = user
        self.leaf = leaf
        self.rows: SortedRows[LaneRow] = SortedRows()
        # Those of the rows, as they were when the roster was last settled.
        self.entries: list[WaitingJob] = []
        self.share = 0
        self.has_new = True


class WaitingJob:
    """One waiting job, with what its place in the order depends on."""

    __slots__ = (
        "brevity",
        "equivalents",
        "final_rank",
        "id",
        "is_capped",
        "is_gated",
        "is_watched",
        "job",
        "job_class",
        "lane",
        "level",
        "limit_ms",
        "may_preempt",
        "merit",
        "points",
        "problem",
        "rank",
        "shape",
    )

    def __init__(self, job: Job, shape: Shape, job_class: JobClass, lane: Lane) -> None:
        self.id = job.id
        self.job = job
        self.shape = shape
        self.job_class = job_class
        self.lane = lane
        self.limit_ms = WITHOUT_END if job.spec.time_limit is None else job.spec.time_limit
        self.merit = NO_MERIT
        self.points = 0
        self.brevity = 0
        self.rank: tuple[int, Instant, JobId] = (0, job.submitted_at, job.id)
        # With the share that holds at the end of a plan.
        self.final_rank: tuple[int, Instant, JobId] = self.rank
        self.problem: WaitReason | None = None
        self.is_gated = _is_gated(job)
        self.is_capped = job_class.per_user != UNCAPPED or job_class.per_queue != UNCAPPED
        # These are always looked at: they wait for something else than room, or hold some already.
        self.is_watched = self.is_gated
        self.may_preempt = bool(job_class.preempts)
        self.level = 0
        self.equivalents: EquivalenceClass | None = None

    @property
    def bounded_array(self) -> JobId | None:
        """Its array, if only so many of that may run at once."""
        part = self.job.spec.array
        return None if part is None or part.at_once is None else part.array


LaneRow = tuple[int, Instant, JobId, WaitingJob]
"""A waiting job behind its rank."""

WaitRow = tuple[Instant, JobId, WaitingJob]
"""A waiting job behind the instant since which it waits."""

MOST_CLASSES = 10_000
"""So many of them are remembered at once."""

EquivalenceKey = tuple[Shape, QueuePath, ClassName, int, tuple[Duration | None, int], JobId | None]

Barred = tuple[PoolName, ...]

ShapeKey = tuple[
    tuple[TaskGroup, ...],
    tuple[tuple[PoolName, ...], tuple[ClusterName, ...], str | None, tuple[Ability, ...]],
    Spot,
    Barred,
]


class Brevity:
    """How short those who wait in each queue are expected to be, so that no queue gains by it.

    Within a queue short jobs go first. Between queues weights decide: one whose jobs are all short
    does not go before the others for that. So it counts how much shorter a job is than is usual in
    its queue. That is meant by time alone: a job that asks for less is as short as it was.

    Jobs that may have to wait for something else than room say what is usual only where all do:
    else a queue would lose by short jobs that follow its long ones, or gain by long ones for later.
    """

    def __init__(self) -> None:
        self._free: dict[QueuePath, _Counted] = {}
        self._kept: dict[QueuePath, _Counted] = {}

    def add(self, entry: WaitingJob) -> None:
        """It waits."""
        self._count(entry, entry.brevity, jobs=1)

    def remove(self, entry: WaitingJob) -> None:
        """It waits no more."""
        self._count(entry, -entry.brevity, jobs=-1)

    def evened(self) -> dict[QueuePath, int]:
        """The points that jobs get for their queue: by so much others are usually shorter.

        That is beside the queue with the shortest; where there is only one, nothing.
        """
        usual = {path: each.points // each.jobs for path, each in (self._kept | self._free).items()}
        shortest = max(usual.values(), default=0)
        return {path: shortest - each for path, each in usual.items()}

    def _count(self, entry: WaitingJob, points: int, *, jobs: int) -> None:
        is_kept = entry.is_gated or entry.bounded_array is not None
        counted, queue = self._kept if is_kept else self._free, entry.lane.queue
        before = counted.get(queue, _NONE_COUNTED)
        counted[queue] = _Counted(before.points + points, before.jobs + jobs)
        if not counted[queue].jobs:
            del counted[queue]


class _Counted(NamedTuple):
    """Jobs, and what they bring together."""

    points: int
    jobs: int


_NONE_COUNTED = _Counted(0, 0)


class _Rules(NamedTuple):
    """What of a snapshot decides how jobs wait."""

    queues: Mapping[QueuePath, Queue]
    classes: Mapping[ClassName, JobClass]
    guarded: list[Pool]
    bursts: BurstRules
    levels: Levels | None
    default_ms: int
    merits: Merits

    @classmethod
    def of(cls, snapshot: Snapshot, policy: Policy) -> "_Rules":
        """Those of this snapshot."""
        return cls(
            queues=snapshot.queues,
            classes=snapshot.classes,
            guarded=[pool for _, pool in sorted(snapshot.pools.items()) if not pool.is_open],
            bursts=BurstRules(snapshot, policy),
            levels=snapshot.levels if policy.has_levels else None,
            default_ms=_shortest_default(snapshot, policy),
            merits=Merits(snapshot.queues, snapshot.classes, policy.order),
        )

    @property
    def for_all(self) -> tuple[object, ...]:
        """What concerns every job."""
        return (self.guarded, self.bursts.key, self.levels, self.default_ms, self.merits.tops)


class Roster:
    """All waiting jobs that are not held."""

    def __init__(self, snapshot: Snapshot, policy: Policy, needs: Needs) -> None:
        self._policy = policy
        self._rules = _Rules.of(snapshot, policy)
        self._needs = needs
        self._shapes: dict[ShapeKey, Shape] = {}
        self._classes_met: dict[EquivalenceKey, EquivalenceClass] = {}
        self.entries: dict[JobId, WaitingJob] = {}
        self._line: list[WaitingJob] = []
        self._fresh: list[WaitingJob] = []
        self.lanes: dict[tuple[QueuePath, UserName], Lane] = {}
        self._unsettled: set[Lane] = set()
        self._by_wait: SortedRows[WaitRow] = SortedRows()
        self.brevity = Brevity()

    def follow(self, snapshot: Snapshot) -> list[Job]:
        """Go by the rules of this snapshot. The jobs that wait otherwise, and must be added again.

        Where what all jobs are measured by changed, these are all jobs.
        """
        old, self._rules = self._rules, _Rules.of(snapshot, self._policy)
        new = self._rules
        if old.for_all != new.for_all:
            return [entry.job for entry in self.entries.values()]
        queues = {
            path
            for path in old.queues.keys() | new.queues.keys()
            if _priority(old.queues.get(path)) != _priority(new.queues.get(path))
        }
        classes = {
            name
            for name in old.classes.keys() | new.classes.keys()
            if old.classes.get(name) != new.classes.get(name)
        }
        specs = ((entry.job, entry.job.spec) for entry in self.entries.values())
        return [job for job, spec in specs if spec.queue in queues or spec.job_class in classes]

    def follow_shares(self, shares: Shares) -> None:
        """Users have other branches in the tree of shares."""
        for lane in self.lanes.values():
            lane.leaf = shares.leaf(lane.queue, lane.user)

    def add(self, job: Job, shares: Shares) -> None:
        """A job waits."""
        lane = self._lane(job.spec.queue, job.spec.user, shares)
        entry = self.entry(job, lane)
        lane.rows.add((*entry.rank, entry))
        lane.has_new = True
        self._unsettled.add(lane)
        entry.shape.entries[job.id] = entry
        self.entries[job.id] = entry
        self._by_wait.add((waited_since(job), job.id, entry))
        self._fresh.append(entry)
        self.brevity.add(entry)

    def entry(self, job: Job, lane: Lane) -> WaitingJob:
        """A job with what its place in the order depends on."""
        spec = job.spec
        job_class = self._rules.classes.get(spec.job_class)
        shape = self._shape(job, job_class or _UNKNOWN)
        entry = WaitingJob(job, shape, job_class or _UNKNOWN, lane)
        if job_class is None:
            entry.problem = NoSuchClass(job_class=spec.job_class)
        if spec.queue not in self._rules.queues:
            entry.problem = NoSuchQueue(queue=spec.queue)
        entry.is_watched = entry.is_gated or entry.problem is not None
        if spec.time_limit is None:
            entry.limit_ms = self._least_ms(job)
        if self._rules.levels is not None:
            entry.level = self._rules.levels.level(spec, job.ran)
            entry.may_preempt |= self._policy.preempt.by_service
        entry.merit = self._rules.merits.of(job, shape.amount.gpu_milli, entry.level)
        entry.points = sum(entry.merit)
        entry.brevity = self._rules.merits.brevity(job)
        entry.rank = (-entry.points, job.submitted_at, job.id)
        if not (entry.is_watched or entry.is_capped or shape.is_picky):
            times = (spec.time_limit, entry.limit_ms)
            array = entry.bounded_array
            entry.equivalents = self._equivalents(
                (shape, spec.queue, spec.job_class, entry.level, times, array)
            )
        return entry

    def remove(self, job_id: JobId) -> None:
        """A job waits no more."""
        entry = self.entries.pop(job_id, None)
        if entry is None:
            return
        del entry.shape.entries[job_id]
        self._by_wait.remove((waited_since(entry.job), job_id))
        self.brevity.remove(entry)
        lane = entry.lane
        lane.rows.remove(entry.rank)
        self._unsettled.add(lane)

    def settle(self) -> None:
        """Put lanes in order to which jobs came or from which they went."""
        for lane in self._unsettled:
            lane.entries = [entry for _, _, _, entry in lane.rows.read()]
            if not lane.entries:
                del self.lanes[lane.queue, lane.user]
        self._unsettled.clear()

    def shapes(self) -> Iterable[Shape]:
        """Those of the jobs that wait."""
        return [shape for shape in self._shapes.values() if shape.entries]

    def line(self) -> list[WaitingJob]:
        """All jobs, roughly as they stood last time, so that putting them in order is quick."""
        known = self.entries
        self._line = [entry for entry in self._line if known.get(entry.id) is entry]
        self._line += [entry for entry in self._fresh if known.get(entry.id) is entry]
        self._fresh = []
        return self._line

    def waiting_since(self, at: Instant) -> Iterator[WaitingJob]:
        """The jobs that have waited since then or longer, the longest wait first."""
        for since, _, entry in self._by_wait.read():
            if since > at:
                return
            yield entry

    def _lane(self, queue: QueuePath, user: UserName, shares: Shares) -> Lane:
        lane = self.lanes.get((queue, user))
        if lane is None:
            lane = self.lanes[queue, user] = Lane(queue, user, shares.leaf(queue, user))
        return lane

    def _shape(self, job: Job, job_class: JobClass) -> Shape:
        spec = job.spec
        spot = Spot.ONLY if job_class.spot_only else spec.spot
        barred = self._barred(spec) if self._rules.guarded else ()
        barred += self._rules.bursts.barred(job)
        where = (spec.pools, spec.clusters, spec.reservation, spec.takes)
        key = (spec.groups, where, spot, barred)
        shape = self._shapes.get(key)
        if shape is None:
            of = self._needs.of
            groups = (GroupNeed(each, of(each, spec, spot, barred)) for each in spec.groups)
            shape = self._shapes[key] = Shape(tuple(groups))
        return shape

    def _barred(self, spec: JobSpec) -> Barred:
        """The pools that do not let this job in."""
        return tuple(
            pool.name
            for pool in self._rules.guarded
            if not pool.lets_in(spec.user, spec.queue, spec.job_class)
        )

    def _least_ms(self, job: Job) -> int:
        """The least time that a job without a limit may be taken to run, whichever pool it gets."""
        if job.expected is None:
            return self._rules.default_ms
        return min(self._rules.default_ms, job.expected)

    def _equivalents(self, key: EquivalenceKey) -> EquivalenceClass:
        equivalents = self._classes_met.get(key)
        if equivalents is None:
            if len(self._classes_met) >= MOST_CLASSES:
                # Those who wait keep theirs; newcomers only do not share it with them.
                self._classes_met.clear()
            equivalents = self._classes_met[key] = EquivalenceClass(key[0])
        return equivalents


def _priority(queue: Queue | None) -> int | None:
    return None if queue is None else queue.priority


def is_sociable(spec: JobSpec) -> bool:
    """Does the job have rules about its neighbours?"""
    return any(group.where.near or group.where.apart for group in spec.groups)


def is_elastic(spec: JobSpec) -> bool:
    """May the job run with fewer tasks than it would like?"""
    return any(group.fewest < group.count for group in spec.groups)


_UNKNOWN = JobClass(name=ClassName(""))


def _shortest_default(snapshot: Snapshot, policy: Policy) -> int:
    """The least time that a job without a limit may come to have, whichever pool it gets."""
    defaults = (pool.default_time for pool in snapshot.pools.values())
    given = [policy.default_time if each is None else each for each in defaults]
    return min((WITHOUT_END if each is None else each for each in given), default=WITHOUT_END)


def _amount(groups: tuple[GroupNeed, ...]) -> Resources:
    total = NOTHING
    for group, need in groups:
        total += need.each.amount(None) * group.count
    return total


def _least(groups: tuple[GroupNeed, ...]) -> Resources:
    total = NOTHING
    for group, need in groups:
        each = Resources(
            cpu_milli=need.cpu_milli, memory_mib=need.memory_mib, gpu_milli=need.gpu_milli
        )
        total += each * group.fewest
    return total


def _is_gated(job: Job) -> bool:
    """Is there anything but room and quota that may keep the job?"""
    spec = job.spec
    has_time = job.begin_at is not None or spec.deadline is not None
    is_known = spec.after == () and job.claim is None
    return has_time or not is_known or job.state is JobState.SUSPENDED
