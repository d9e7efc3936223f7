"""How one pretended attempt goes: what it has computed, what is saved, and what comes next."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from muster.model.event import JobCheckpointed, JobEnded, JobEvent, JobStarted, JobSuspended
from muster.model.job import EndReason, Exited, Job
from muster.model.placement import Allocation
from muster.model.value import DeviceId, Duration, Instant, JobId, NodeId, Value

FULL_PACE = 1_000


class Behaviour(Value, gc=False):
    """How an attempt goes if it is left alone, and what it does when it is stopped.

    work: what the job computes in all; what an earlier attempt saved is not done again.
    start_delay: from Run until it runs.
    checkpoint_every: so much work lies between its checkpoints; None: it writes none of its own.
    restart_overhead: what every attempt but the first computes before its work goes on.
    saves_in: how long a checkpoint takes that it is asked for; None: it cannot.
    stops_in: how long it takes to obey; what the grace is too short for is cut off.
    """

    work: Duration
    end: EndReason = Exited(code=0)
    start_delay: Duration = Duration(0)
    checkpoint_every: Duration | None = None
    restart_overhead: Duration = Duration(0)
    saves_in: Duration | None = None
    stops_in: Duration = Duration(0)


BehaviourOf = Callable[[Job, Allocation], Behaviour]
"""Says how an attempt will go when it begins."""


class Milestone(Enum):
    """What can come next."""

    BEGIN = auto()
    SAVE = auto()
    LIMIT = auto()
    END = auto()
    LEAVE = auto()


@dataclass(slots=True, eq=False, kw_only=True)
class SimulatedAttempt:
    """One attempt on its way.

    Work counts from the job's beginning, computing from the attempt's: `computed` until `since`,
    and on from there, at `pace` thousandths of its full speed.
    `since` is None while it does not compute. `stood` is how long it did not.
    saved is the work that a checkpoint holds, written by this attempt or an earlier one.
    leaves: why it must stop; it does so at `leaves_at`, and may have saved at `saves_at`.
    number counts its plans: what was put down for an earlier one does not come true.
    """

    job: JobId
    attempt: int
    nodes: tuple[NodeId, ...]
    devices: tuple[DeviceId, ...]
    behaviour: Behaviour
    limit: Duration | None
    begins_at: Instant
    begun_with: int
    saved: int
    saved_at: Instant | None = None
    overhead: int = 0
    started_at: Instant | None = None
    ends_by: Instant | None = None
    since: Instant | None = None
    computed: int = 0
    pace: int = FULL_PACE
    paused_at: Instant | None = None
    stood: int = 0
    is_asleep: bool = False
    leaves: EndReason | None = None
    leaves_at: Instant | None = None
    saves_at: Instant | None = None
    end: JobEnded | None = None
    milestone: Milestone = Milestone.BEGIN
    number: int = 0

    @property
    def time_given(self) -> Duration:
        """How long it may run in all, by the instant at which it must end."""
        if self.ends_by is None or self.started_at is None:
            return Duration(0)
        return Duration(max(0, self.ends_by - self.started_at - self.stood))

    def start(self, at: Instant) -> None:
        """It runs from now on."""
        self.started_at = at
        if self.limit is not None:
            self.ends_by = Instant(at + self.limit)
        if self.is_asleep:
            self.paused_at = at
        else:
            self.since = at

    def carry_on(self, allocation: Allocation) -> None:
        """It began before, and goes on as it is: it computes, or stands still."""
        began = allocation.started_at or self.begins_at
        self.start(began)
        self.stood = allocation.stood
        self.computed = -allocation.stood
        if self.ends_by is not None:
            self.ends_by = Instant(self.ends_by + allocation.stood)
        if allocation.stands_since is not None:
            self.is_asleep = True
            self.pause(allocation.stands_since)

    def pause(self, at: Instant) -> None:
        """It computes nothing from now on."""
        self.computed = self.computed_by(at)
        self.since = None
        self.paused_at = at

    def go_on(self, at: Instant) -> None:
        """It computes again; the time that it stood still does not count against its limit."""
        stood = at - (at if self.paused_at is None else self.paused_at)
        self.stood += stood
        self.since = at
        if self.ends_by is not None:
            self.ends_by = Instant(self.ends_by + stood)

    def keep_pace(self, pace: int, at: Instant) -> None:
        """It computes at another pace from now on."""
        self.computed = self.computed_by(at)
        self.pace = pace
        if self.since is not None:
            self.since = at

    def leave(self, why: EndReason, at: Instant, grace: Duration, *, saving: bool) -> None:
        """It must stop. Asked again, it goes on stopping, but within the shorter grace."""
        if self.leaves_at is None:
            self.leaves = why
            saves_in = self.behaviour.saves_in if saving else None
            can_save = saves_in is not None and saves_in <= grace
            self.saves_at = Instant(at + (saves_in or 0)) if can_save else None
            needs = self.behaviour.stops_in + (saves_in or 0 if can_save else 0)
            self.leaves_at = Instant(at + needs)
            self.pause(at)
        self.leaves_at = min(self.leaves_at, Instant(at + grace))

    def computed_by(self, now: Instant) -> int:
        """How long it has computed in all."""
        if self.since is None:
            return self.computed
        return self.computed + (now - self.since) * self.pace // FULL_PACE

    def worked_by(self, now: Instant) -> int:
        """How much of the job's work is done, saved or not."""
        return self.begun_with + max(0, self.computed_by(now) - self.overhead)

    def next_milestone(self, tells_every: Duration) -> tuple[Instant, Milestone] | None:
        """What comes next, and when; None while nothing will without another action."""
        if self.leaves_at is not None:
            return self.leaves_at, Milestone.LEAVE
        if self.started_at is None:
            return self.begins_at, Milestone.BEGIN
        ends_by, since = self.ends_by, self.since
        if since is None:
            return None
        needed = self.overhead + max(0, self.behaviour.work - self.begun_with)
        at, milestone = self._computes_at(since, needed), Milestone.END
        # Who is ready in the last moment was ready in time.
        if ends_by is not None and ends_by < at:
            at, milestone = ends_by, Milestone.LIMIT
        if self.behaviour.checkpoint_every:
            saves_at = self._reported_at(since, self.behaviour.checkpoint_every, tells_every)
            at, milestone = min(
                (at, milestone), (saves_at, Milestone.SAVE), key=lambda each: each[0]
            )
        return Instant(at), milestone

    def newest_checkpoint(self, now: Instant) -> tuple[int, Instant] | None:
        """The newest checkpoint not reported yet: the work in it, and when it was made."""
        if self.saves_at is not None and self.saves_at <= now:
            return self.worked_by(now), self.saves_at
        every = self.behaviour.checkpoint_every
        if not every or self.since is None:
            return None
        work = (self.computed_by(now) - self.overhead) // every * every
        if work <= 0 or self.begun_with + work <= self.saved:
            return None
        return self.begun_with + work, self._computes_at(self.since, self.overhead + work)

    def story(self) -> Iterator[JobEvent]:
        """Everything that happened to it, for a controller that may have missed it."""
        if self.started_at is not None:
            yield JobStarted(at=self.started_at, job=self.job, attempt=self.attempt)
        if self.saved_at is not None:
            yield JobCheckpointed(at=self.saved_at, job=self.job, attempt=self.attempt)
        if self.end is not None:
            yield self.end
        elif self.is_asleep and self.paused_at is not None:
            yield JobSuspended(at=self.paused_at, job=self.job, attempt=self.attempt)

    def _computes_at(self, since: Instant, amount: int) -> Instant:
        """When it will have computed so much, at its pace."""
        return Instant(since - (self.computed - amount) * FULL_PACE // self.pace)

    def _reported_at(self, since: Instant, every: int, tells_every: int) -> int:
        """When to tell of a checkpoint next: of one every so often, in the moment it is written."""
        step = -(-tells_every // every) * every
        worked = max(0, self.computed - self.overhead)
        reported = max(worked, self.saved - self.begun_with)
        return self._computes_at(since, self.overhead + (reported // step + 1) * step)


def simulated_attempt(
    job: Job, allocation: Allocation, behaviour: Behaviour, begins_at: Instant, saved: int
) -> SimulatedAttempt:
    """An attempt that begins then, with so much work saved by earlier ones."""
    return SimulatedAttempt(
        job=job.id,
        attempt=allocation.attempt,
        nodes=tuple({each.node: None for each in allocation.placements}),
        devices=tuple(
            {share.device: None for each in allocation.placements for share in each.devices}
        ),
        behaviour=behaviour,
        limit=job.spec.time_limit,
        begins_at=begins_at,
        begun_with=saved,
        saved=saved,
        overhead=behaviour.restart_overhead if allocation.attempt > 1 else 0,
    )
