"""Hears everything that is committed, and keeps what a report is made of."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from muster.controller.world.transaction import Change
from muster.model.cluster import Node, NodeState
from muster.model.event import Event, JobPreempted, JobStarted
from muster.model.history import Attempt, Ended
from muster.model.job import (
    HOLDING,
    Cancelled,
    DeadlinePassed,
    EndReason,
    Exited,
    Job,
    JobState,
    LaunchFailed,
    NodeFailed,
    OutOfMemory,
    Preempted,
    Requeued,
    Signaled,
    TaskGroup,
    TimedOut,
)
from muster.model.placement import Allocation
from muster.model.queue import lineage
from muster.model.resources import NOTHING, Resources
from muster.model.site import Site
from muster.model.snapshot import UsualAsk
from muster.model.value import Instant, JobId, NodeId, PoolName, QueuePath, UserName
from muster.simulator.curve import Curve
from muster.simulator.fragments import Fragments
from muster.stores.base import Batch

WANTING = HOLDING | {JobState.PENDING, JobState.SUSPENDED}
"""States of jobs that want to run, or do."""


class FinishedJob(NamedTuple):
    """How one job that is over went. work_ms: what it ran, without what was lost."""

    job: JobId
    queue: QueuePath
    user: UserName
    state: JobState
    gpu_milli: int
    submitted_at: Instant
    started_at: Instant | None
    ended_at: Instant
    work_ms: int


class QueueCurves:
    """One queue, with everything below it: what it holds and what it wants, in thousandths."""

    __slots__ = ("used", "wanted")

    def __init__(self, begin: Instant) -> None:
        self.used = Curve(begin)
        self.wanted = Curve(begin)


class Measures:
    """What happened so far. `hear` is a listener of the journal."""

    def __init__(self, site: Site, usual: tuple[UsualAsk, ...], begin: Instant) -> None:
        self.site = site
        self.begin = self.now = begin
        self.fragments = Fragments(usual)
        self.gpu_used, self.gpu_there = Curve(begin), Curve(begin)
        self.cpu_used, self.cpu_there = Curve(begin), Curve(begin)
        self.gpu_wanted, self.fragment = Curve(begin), Curve(begin)
        self.running, self.waiting = Curve(begin), Curve(begin)
        self.queues = {path: QueueCurves(begin) for path in site.queues}
        self.courses: list[FinishedJob] = []
        self.submitted = 0
        self.attempts = self.restarts = 0
        self.preemptions = 0
        self.ends: Counter[str] = Counter()
        self.lost_gpu_ms = 0
        self.gpu_milli_ms: Counter[PoolName] = Counter()
        self.micros = 0.0
        self._started: dict[JobId, Instant] = {}
        self._work: dict[JobId, int] = {}
        self._sizes: dict[tuple[TaskGroup, ...], int] = {}
        self._nodes: dict[NodeId, Node] = {}
        self._later: list[tuple[Instant, Node]] = []

    def hear(self, batch: Batch, changes: tuple[Change, ...]) -> None:
        """Something was committed."""
        if not batch.events:
            return
        now = max(self.now, batch.events[-1].at)
        self._later.extend((now, node) for node in batch.nodes)
        if not changes and self.submitted == len(self.courses):
            # After the last job nothing counts, and whether this was the last is not known yet.
            return
        self.now = now
        self._see_all()
        self._note(batch.events)
        for attempt in batch.attempts:
            self._count(attempt)
        for change in changes:
            self._follow(change, now)
        for ended in batch.ended:
            self._end(ended)
        self.fragment.set(now, self.fragments.milli)

    @property
    def gpu_milli(self) -> int:
        """All GPUs, also those that are down just now."""
        return sum(node.capacity.gpu_milli for node in self._nodes.values())

    def close(self, now: Instant) -> None:
        """Nothing more happens up to this instant."""
        self.now = max(self.now, now)
        self._later = [each for each in self._later if each[0] <= self.now]
        self._see_all()
        curves = [self.gpu_used, self.gpu_there, self.cpu_used, self.cpu_there]
        curves += [self.gpu_wanted, self.fragment, self.running, self.waiting]
        for each in self.queues.values():
            curves += [each.used, each.wanted]
        for curve in curves:
            curve.reach(self.now)

    def _note(self, events: tuple[Event, ...]) -> None:
        for event in events:
            if isinstance(event, JobStarted):
                self._started.setdefault(event.job, event.at)
            elif isinstance(event, JobPreempted):
                self.preemptions += 1

    def see(self, node: Node) -> None:
        """A node is there."""
        self._see(node, self.now)

    def _see_all(self) -> None:
        for at, node in self._later:
            self._see(node, at)
        self._later.clear()

    def _see(self, node: Node, now: Instant) -> None:
        before, after = _offered(self._nodes.get(node.id)), _offered(node)
        self._nodes[node.id] = node
        self.gpu_there.add(now, after.gpu_milli - before.gpu_milli)
        self.cpu_there.add(now, after.cpu_milli - before.cpu_milli)
        self.fragments.see(node)

    def _follow(self, change: Change, now: Instant) -> None:
        before, after = change.before, change.after
        if before is None:
            self.submitted += 1
        held = change.held if before is not None and before.state in HOLDING else None
        holds = change.holds if after.state in HOLDING else None
        if held is not holds and (held is None or holds is None or _differ(held, holds)):
            self._hold(after, held, holds, now)
        did_want = before is not None and before.state in WANTING
        wants = after.state in WANTING
        if did_want != wants:
            self._want(after, 1 if wants else -1, now)
        did_wait = before is not None and before.state is JobState.PENDING
        waits = after.state is JobState.PENDING
        if did_wait != waits:
            self.waiting.add(now, 1 if waits else -1)

    def _hold(
        self, job: Job, held: Allocation | None, holds: Allocation | None, now: Instant
    ) -> None:
        gpu_milli = cpu_milli = 0
        for allocation, sign in ((held, -1), (holds, 1)):
            if allocation is None:
                continue
            for placed in allocation.placements:
                gpu_milli += sign * placed.amount.gpu_milli
                cpu_milli += sign * placed.amount.cpu_milli
        if held is not None:
            self.fragments.give_back(held.placements)
        if holds is not None:
            self.fragments.take(holds.placements)
        self.running.add(now, (holds is not None) - (held is not None))
        self.cpu_used.add(now, cpu_milli)
        self.gpu_used.add(now, gpu_milli)
        for path in lineage(job.spec.queue):
            if path in self.queues:
                self.queues[path].used.add(now, gpu_milli)

    def _want(self, job: Job, sign: int, now: Instant) -> None:
        milli = sign * self._size(job)
        if not milli:
            return
        self.gpu_wanted.add(now, milli)
        for path in lineage(job.spec.queue):
            if path in self.queues:
                self.queues[path].wanted.add(now, milli)

    def _size(self, job: Job) -> int:
        groups = job.spec.groups
        size = self._sizes.get(groups)
        if size is None:
            size = sum(each.each.amount(None).gpu_milli * each.count for each in groups)
            self._sizes[groups] = size
        return size

    def _count(self, attempt: Attempt) -> None:
        self.attempts += 1
        self.restarts += attempt.number > 1
        self.ends[_ending(attempt.why)] += 1
        began = attempt.started_at
        lasted = 0 if began is None else attempt.ended_at - began
        held = attempt.ended_at - attempt.placed_at
        milli = attempt.amount.gpu_milli
        self.lost_gpu_ms += attempt.lost_gpu_ms
        lost = 1_000 * attempt.lost_gpu_ms // milli if milli else 0
        self._work[attempt.job] = self._work.get(attempt.job, 0) + max(0, lasted - lost)
        # An attempt in several pools is counted as if it held the same in each.
        for pool in attempt.pools:
            part = held * milli // len(attempt.pools)
            self.gpu_milli_ms[pool] += part
            self.micros += part * _price(self.site, pool) / (1_000 * 3_600_000)

    def _end(self, ended: Ended) -> None:
        job = ended.job
        self.courses.append(
            FinishedJob(
                job=job.id,
                queue=job.spec.queue,
                user=job.spec.user,
                state=job.state,
                gpu_milli=self._size(job),
                submitted_at=job.submitted_at,
                started_at=self._started.pop(job.id, None),
                ended_at=ended.ended_at,
                work_ms=self._work.pop(job.id, 0),
            )
        )


def _offered(node: Node | None) -> Resources:
    """What a node has to give; one that drains still serves those who are there."""
    if node is None or node.state is NodeState.DOWN:
        return NOTHING
    return node.capacity


def _differ(held: Allocation, holds: Allocation) -> bool:
    return held.placements is not holds.placements and held.placements != holds.placements


def _ending(why: EndReason | None) -> str:
    match why:
        case Preempted():
            return "preempted"
        case NodeFailed():
            return "node_failed"
        case Exited() | Signaled() | TimedOut() | OutOfMemory() | LaunchFailed():
            return "other"
        case Cancelled() | Requeued() | DeadlinePassed() | None:
            return "other"


def _price(site: Site, pool: PoolName) -> int:
    known: Mapping[PoolName, object] = site.pools
    return site.pools[pool].gpu_hour_micros if pool in known else 0
