"""A cluster in pretend time: attempts last as their behaviour says, and nothing really runs."""

from collections import Counter
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import count

from muster.backends.base import (
    Action,
    Continue,
    Cut,
    Forget,
    Limit,
    Mend,
    Run,
    Signal,
    Stop,
    Supply,
    Suspend,
)
from muster.backends.simulated.attempt import (
    BehaviourOf,
    Milestone,
    SimulatedAttempt,
    simulated_attempt,
)
from muster.backends.simulated.sharing import Pace, Sharing
from muster.model.cluster import Cluster, Node, NodeState
from muster.model.event import (
    ClusterSeen,
    Event,
    JobCheckpointed,
    JobEnded,
    JobStarted,
    JobSuspended,
    NodeSeen,
)
from muster.model.job import Cancelled, EndReason, Exited, Job, JobState, NodeFailed, TimedOut
from muster.model.placement import Allocation
from muster.model.value import HOUR, Duration, Instant, JobId, NodeId, Value, replace

Key = tuple[JobId, int]
"""A job and its attempt."""


class Outage(Value, gc=False):
    """A node goes down, or is sound again."""

    node: NodeId
    is_over: bool


class OutageNotice(Value, gc=False):
    """A node will be taken away: nothing new goes there, and who can saves what it has."""

    node: NodeId
    time_left: Duration


class CheckpointDue(Value):
    """An attempt writes a checkpoint that holds so much work."""

    key: Key
    work: int


DONE = Exited(code=0)
EPOCH = Instant(0)
NO_NOTICE = Duration(0)


Due = SimulatedAttempt | Outage | OutageNotice | CheckpointDue


class SimulatedBackend:
    """Keeps the port's promises without a thread, a process or a clock.

    What is done happens at its present: the latest instant that it was asked to observe, or that
    a Run was placed at. Events come in the order in which they are reported; checkpoints are
    reported when an attempt is disturbed, and otherwise one every `tells_every`, with the instant
    of their writing.
    While an attempt is suspended, its time limit stands still. Pretended processes heed no signal.
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        cluster: Cluster,
        behaviour_of: BehaviourOf,
        *,
        now: Instant = EPOCH,
        tells_every: Duration = HOUR,
    ) -> None:
        self._cluster = cluster
        self._nodes = {node.id: node for node in nodes}
        self._behaviour_of = behaviour_of
        self._present = now
        self._tells_every = tells_every
        self._due: list[tuple[Instant, int, Due, int]] = []
        self._order = count()
        self._going: dict[Key, SimulatedAttempt] = {}
        self._over: dict[Key, SimulatedAttempt] = {}
        self._on: dict[NodeId, dict[Key, SimulatedAttempt]] = {node: {} for node in self._nodes}
        self._outages: Counter[NodeId] = Counter()
        self._sharing = Sharing()
        self._warned: set[NodeId] = set()
        self._saved: dict[JobId, int] = {}
        self._news: list[Event] = self._sights()

    @property
    def cluster(self) -> Cluster:
        return self._cluster

    @property
    def going(self) -> tuple[Key, ...]:
        """The attempts that are not over: job and attempt, in the order they were run."""
        return tuple(self._going)

    def next_at(self) -> Instant | None:
        """When there is something to observe next; None: not before the next action."""
        if self._news:
            return self._present
        due = self._due
        while due and _is_stale(due[0]):
            heappop(due)
        return max(due[0][0], self._present) if due else None

    def share_by(self, pace: Pace) -> None:
        """From the beginning, those who compute on one device are this fast."""
        self._sharing.pace = pace

    def fail_node(
        self,
        node: NodeId,
        at: Instant,
        back_at: Instant | None = None,
        notice: Duration = NO_NOTICE,
    ) -> None:
        """The node will go down with all that runs on it, and come back then or never.

        With notice, it drains so long before, and attempts that can write a checkpoint do.
        """
        if notice:
            self._put(Instant(max(0, at - notice)), OutageNotice(node=node, time_left=notice), 0)
        self._put(at, Outage(node=node, is_over=False), 0)
        if back_at is not None:
            self._put(max(at, back_at), Outage(node=node, is_over=True), 0)

    def carry_on(self, job: Job, allocation: Allocation) -> None:
        """An attempt that began before this backend did, and goes on in it.

        Its behaviour is asked for now, and counts from its beginning.
        """
        behaviour = self._behaviour_of(job, allocation)
        attempt = simulated_attempt(job, allocation, behaviour, self._present, saved=0)
        self._note(attempt)
        if allocation.started_at is not None:
            attempt.carry_on(allocation)
        if job.state is JobState.STOPPING and attempt.started_at is not None:
            why = job.ended_for or Cancelled(by=job.spec.user)
            attempt.leave(why, self._present, Duration(0), saving=False)
        self._plan(attempt, self._present)

    def adopt(self, allocations: tuple[Allocation, ...]) -> None:
        named: dict[Key, Allocation] = {(each.job, each.attempt): each for each in allocations}
        for job, attempt in [key for key in (*self._going, *self._over) if key not in named]:
            self._forget(Forget(job=job, attempt=attempt))
        self._news = self._sights()
        for key, allocation in named.items():
            known = self._going.get(key) or self._over.get(key)
            if known is not None:
                self._news.extend(known.story())
            elif allocation.started_at is not None:
                self._news.append(self._lost(allocation))

    def do(self, action: Action) -> None:
        match action:
            case Run():
                self._run(action)
            case Stop() | Suspend() | Continue() | Limit():
                self._steer(action)
            case Cut():
                self._cut(action)
            case Forget():
                self._forget(action)
            case Signal() | Mend() | Supply():
                return

    def observe(self, now: Instant) -> tuple[Event, ...]:
        self._pass_until(now)
        event, self._news = self._news, []
        return tuple(event)

    def close(self) -> None:
        """Nothing is held that could be let go."""

    def _pass_until(self, now: Instant) -> None:
        due = self._due
        while due and due[0][0] <= now:
            at, _, thing, number = heappop(due)
            self._let_happen(thing, at, number)
        self._present = max(self._present, now)

    def _let_happen(self, thing: Due, at: Instant, number: int) -> None:
        match thing:
            case Outage():
                self._turn_node(thing, at)
            case OutageNotice():
                self._warn(thing, at)
            case CheckpointDue(key=key, work=work):
                self._save_work(key, work, at)
            case SimulatedAttempt():
                if thing.number == number:
                    self._reach(thing, at)

    def _reach(self, attempt: SimulatedAttempt, at: Instant) -> None:
        match attempt.milestone:
            case Milestone.BEGIN:
                self._begin(attempt, at)
            case Milestone.SAVE:
                self._save(attempt, at)
                self._plan(attempt, at)
            case Milestone.END:
                self._end(attempt, attempt.behaviour.end, at)
            case Milestone.LIMIT:
                self._end(attempt, TimedOut(limit=attempt.time_given), at)
            case Milestone.LEAVE:
                self._end(attempt, attempt.leaves or DONE, at)

    def _begin(self, attempt: SimulatedAttempt, at: Instant) -> None:
        attempt.start(at)
        self._news.append(JobStarted(at=at, job=attempt.job, attempt=attempt.attempt))
        if attempt.is_asleep:
            self._news.append(JobSuspended(at=at, job=attempt.job, attempt=attempt.attempt))
        self._plan(attempt, at)

    def _save(self, attempt: SimulatedAttempt, at: Instant) -> None:
        newest = attempt.newest_checkpoint(at)
        if newest is None:
            return
        attempt.saved, attempt.saved_at = newest
        event = JobCheckpointed(at=attempt.saved_at, job=attempt.job, attempt=attempt.attempt)
        self._news.append(event)

    def _end(self, attempt: SimulatedAttempt, why: EndReason, at: Instant) -> None:
        if why != DONE:
            self._save(attempt, at)
        attempt.pause(at)
        self._share(attempt, at)
        attempt.end = JobEnded(at=at, job=attempt.job, attempt=attempt.attempt, why=why)
        self._news.append(attempt.end)
        self._drop(attempt)
        self._over[attempt.job, attempt.attempt] = attempt

    def _drop(self, attempt: SimulatedAttempt) -> None:
        """It does not go on; what it saved is there for the next one."""
        key = (attempt.job, attempt.attempt)
        attempt.number += 1
        del self._going[key]
        for node in attempt.nodes:
            del self._on[node][key]
        if attempt.end is not None and attempt.end.why == DONE:
            self._saved.pop(attempt.job, None)
        elif attempt.saved:
            self._saved[attempt.job] = attempt.saved

    def _plan(self, attempt: SimulatedAttempt, now: Instant) -> None:
        """What comes next for it, and for those beside it, replaces what would have come."""
        self._share(attempt, now)
        self._put_next(attempt, now)

    def _share(self, attempt: SimulatedAttempt, now: Instant) -> None:
        """It may have begun or ceased to compute: those beside it are slower or faster by that."""
        for other, pace in self._sharing.update(attempt):
            other.keep_pace(pace, now)
            if other is not attempt:
                self._put_next(other, now)

    def _put_next(self, attempt: SimulatedAttempt, now: Instant) -> None:
        attempt.number += 1
        coming = attempt.next_milestone(self._tells_every)
        if coming is not None:
            at, attempt.milestone = coming
            self._put(max(at, now), attempt, attempt.number)

    def _put(self, at: Instant, thing: Due, number: int) -> None:
        heappush(self._due, (at, next(self._order), thing, number))

    def _run(self, run: Run) -> None:
        allocation = run.allocation
        key = (run.job.id, allocation.attempt)
        if key in self._going or key in self._over:
            return
        self._pass_until(max(self._present, allocation.placed_at))
        behaviour = self._behaviour_of(run.job, allocation)
        begins_at = Instant(self._present + behaviour.start_delay)
        saved = self._saved.get(run.job.id, 0)
        attempt = simulated_attempt(run.job, allocation, behaviour, begins_at, saved)
        self._note(attempt)
        down = next((node for node in attempt.nodes if self._is_down(node)), None)
        if down is None:
            self._plan(attempt, self._present)
        else:
            self._end(attempt, NodeFailed(node=down), self._present)

    def _note(self, attempt: SimulatedAttempt) -> None:
        """It goes from here on."""
        key = (attempt.job, attempt.attempt)
        self._going[key] = attempt
        for node in attempt.nodes:
            self._on.setdefault(node, {})[key] = attempt

    def _steer(self, action: Stop | Suspend | Continue | Limit) -> None:
        attempt = self._going.get((action.job, action.attempt))
        if attempt is None:
            return
        match action:
            case Stop():
                self._stop(attempt, action)
            case Suspend():
                self._suspend(attempt)
            case Continue():
                self._continue(attempt)
            case Limit(ends_at=ends_at):
                attempt.limit, attempt.ends_by = None, ends_at
                self._plan(attempt, self._present)

    def _stop(self, attempt: SimulatedAttempt, stop: Stop) -> None:
        if attempt.started_at is None:
            self._end(attempt, stop.why, self._present)
            return
        if attempt.leaves is None:
            self._save(attempt, self._present)
        attempt.leave(stop.why, self._present, stop.grace, saving=stop.checkpoint)
        self._plan(attempt, self._present)

    def _suspend(self, attempt: SimulatedAttempt) -> None:
        if attempt.is_asleep or attempt.leaves is not None:
            return
        attempt.is_asleep = True
        if attempt.started_at is None:
            return
        self._save(attempt, self._present)
        attempt.pause(self._present)
        self._news.append(JobSuspended(at=self._present, job=attempt.job, attempt=attempt.attempt))
        self._plan(attempt, self._present)

    def _continue(self, attempt: SimulatedAttempt) -> None:
        if not attempt.is_asleep or attempt.leaves is not None:
            return
        attempt.is_asleep = False
        if attempt.started_at is not None:
            attempt.go_on(self._present)
            self._plan(attempt, self._present)

    def _cut(self, cut: Cut) -> None:
        node = self._nodes[cut.node]
        devices = tuple(
            replace(each, mig=cut.instances) if each.id == cut.device else each
            for each in node.devices
        )
        if devices != node.devices:
            self._nodes[cut.node] = replace(node, devices=devices)
            self._news.append(self._sight(cut.node, self._present))

    def _forget(self, forget: Forget) -> None:
        key = (forget.job, forget.attempt)
        attempt = self._going.get(key)
        if attempt is not None:
            attempt.pause(self._present)
            self._share(attempt, self._present)
            self._drop(attempt)
        self._over.pop(key, None)

    def _warn(self, notice: OutageNotice, at: Instant) -> None:
        if self._is_down(notice.node):
            return
        self._warned.add(notice.node)
        self._news.append(self._sight(notice.node, at))
        for key, attempt in self._on[notice.node].items():
            saves_in = attempt.behaviour.saves_in
            if saves_in is not None and saves_in < notice.time_left:
                saving = CheckpointDue(key=key, work=attempt.worked_by(at))
                self._put(Instant(at + saves_in), saving, 0)

    def _save_work(self, key: Key, work: int, at: Instant) -> None:
        attempt = self._going.get(key)
        if attempt is None or attempt.started_at is None or work <= attempt.saved:
            return
        attempt.saved, attempt.saved_at = work, at
        self._news.append(JobCheckpointed(at=at, job=attempt.job, attempt=attempt.attempt))

    def _turn_node(self, outage: Outage, at: Instant) -> None:
        was_down = self._is_down(outage.node)
        self._outages[outage.node] += -1 if outage.is_over else 1
        self._warned.discard(outage.node)
        if self._is_down(outage.node) == was_down:
            return
        self._news.append(self._sight(outage.node, at))
        if not was_down:
            for attempt in list(self._on[outage.node].values()):
                self._end(attempt, NodeFailed(node=outage.node), at)

    def _is_down(self, node: NodeId) -> bool:
        return self._outages[node] > 0

    def _sights(self) -> list[Event]:
        cluster = ClusterSeen(at=self._present, cluster=self._cluster)
        return [cluster, *(self._sight(node, self._present) for node in self._nodes)]

    def _sight(self, node: NodeId, at: Instant) -> NodeSeen:
        known = self._nodes[node]
        if self._is_down(node):
            known = replace(known, state=NodeState.DOWN, reason="a pretended outage")
        elif node in self._warned:
            known = replace(known, state=NodeState.DRAINING, reason="it will be taken away")
        return NodeSeen(at=at, node=known)

    def _lost(self, allocation: Allocation) -> JobEnded:
        """It ran, and nothing is known of it here; one that never ran will be begun again."""
        return JobEnded(
            at=self._present,
            job=allocation.job,
            attempt=allocation.attempt,
            why=NodeFailed(node=allocation.placements[0].node),
        )


def _is_stale(due: tuple[Instant, int, Due, int]) -> bool:
    _, _, thing, number = due
    return isinstance(thing, SimulatedAttempt) and thing.number != number
