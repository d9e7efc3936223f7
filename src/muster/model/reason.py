"""Why a job waits.

A reason is one class: what it tells, its row of facts, and its sentence. Screens, estimates,
blockers and suggestions read these, so that they know a new reason as soon as it is written.
"""

from typing import ClassVar

from muster.model.facts import Facts, Mover, Remedy
from muster.model.job import DependencyKind, HeldBy, JobSpec
from muster.model.queue import CeilingMeter, Meter, Scope, Side, is_within
from muster.model.value import (
    ClassName,
    Duration,
    Instant,
    JobId,
    NodeId,
    QueuePath,
    Value,
)
from muster.model.words import (
    NO_LABELS,
    Labels,
    counted,
    jobs_listed,
    metered,
    placed,
    span,
    tasks_in_words,
    when,
)

ANYTHING_ELSE = frozenset(Remedy)
LESS_OR_ELSEWHERE = frozenset({Remedy.SMALLER, Remedy.OTHER_POOL, Remedy.OTHER_QUEUE})


class NoRoom(Value, tag="no_room"):
    """The group does not fit now: `placed` of its `wanted` tasks would, on `nodes` usable nodes."""

    facts: ClassVar = Facts(slurm="Resources", mover=Mover.LINE, remedies=ANYTHING_ELSE)

    group: str
    placed: int
    wanted: int
    nodes: int

    def sentence(self, spec: JobSpec, _now: Instant) -> str:
        needed = f"Needs {tasks_in_words(self.group, self.wanted, spec)}"
        if not self.nodes:
            return f"{needed}; no node that it may use is up."
        if self.wanted > 1:
            fit, nodes = self.placed or "none", counted(self.nodes, "usable node")
            return f"{needed}; there is room for {fit} of them now on {nodes}."
        if self.nodes == 1:
            return f"{needed}; the only usable node does not have that free."
        return f"{needed}; none of {self.nodes} usable nodes has that free."


class NeverFits(Value, tag="never_fits"):
    """No node, even empty, could take a task of the group: the request must change."""

    facts: ClassVar = Facts(slurm="BadConstraints", mover=Mover.USER, remedies=ANYTHING_ELSE)

    group: str
    wanted: int
    at_most: int

    def sentence(self, spec: JobSpec, _now: Instant) -> str:
        needed = f"Needs {tasks_in_words(self.group, self.wanted, spec)}"
        if not self.at_most:
            return f"{needed}; no node that it may use has that much, even empty."
        return f"{needed}; the nodes that it may use have room for {self.at_most}, even empty."


def _over_quota(mover: Mover) -> dict[Meter, Facts]:
    """The rows of a reason about a queue's quota: Slurm's word names what is counted."""
    words = {
        Meter.GPU: "AssocGrpGRES",
        Meter.MIG: "AssocGrpGRES",
        Meter.CPU: "AssocGrpCpuLimit",
        Meter.MEMORY: "AssocGrpMemLimit",
    }
    return {
        meter: Facts(slurm=word, mover=mover, remedies=LESS_OR_ELSEWHERE)
        for meter, word in words.items()
    }


_QUOTA_ALLOWS_LESS = _over_quota(Mover.USER)
_QUOTA_IS_USED = _over_quota(Mover.LIMIT)
_QUOTA_IS_LENT = _over_quota(Mover.LINE)


class OverLimit(Value, tag="over_limit"):
    """The queue, or one above the job's, may not hold that much of something at once."""

    queue: QueuePath
    scope: Scope
    limit: int
    used: int
    asked: int

    @property
    def facts(self) -> Facts:
        rows = _QUOTA_ALLOWS_LESS if self.asked > self.limit else _QUOTA_IS_USED
        return rows[self.scope.meter]

    def counts(self, spec: JobSpec) -> bool:
        return is_within(spec.queue, self.queue)

    @property
    def missing(self) -> int:
        return self.used + self.asked - self.limit

    def sentence(self, _spec: JobSpec, _now: Instant) -> str:
        most = metered(self.scope, self.limit) + placed(self.scope)
        used, asked = metered(self.scope, self.used), metered(self.scope, self.asked)
        return (
            f"Queue {self.queue} may hold {most} at once; "
            f"it holds {used}, and this job asks for {asked}."
        )


class BorrowedOut(Value, tag="borrowed_out"):
    """The queue may have `available` more, of its guarantee or borrowed; never over `at_most`.

    It may not borrow more, or the rest is kept by queues that do not lend it.
    """

    queue: QueuePath
    scope: Scope
    available: int
    asked: int
    at_most: int

    @property
    def facts(self) -> Facts:
        rows = _QUOTA_ALLOWS_LESS if self.asked > self.at_most else _QUOTA_IS_LENT
        return rows[self.scope.meter]

    def counts(self, spec: JobSpec) -> bool:
        return is_within(spec.queue, self.queue)

    @property
    def missing(self) -> int:
        return self.asked - self.available

    def sentence(self, _spec: JobSpec, _now: Instant) -> str:
        left = metered(self.scope, self.available) + placed(self.scope)
        asked = metered(self.scope, self.asked)
        return f"Queue {self.queue} may use or borrow {left} more; this job asks for {asked}."


class OverClassLimit(Value, tag="over_class_limit"):
    """Jobs of this class may not hold that much at once for one user, or for one queue."""

    job_class: ClassName
    side: Side
    whose: str
    meter: CeilingMeter
    limit: int
    used: int
    asked: int

    @property
    def facts(self) -> Facts:
        mover = Mover.USER if self.asked > self.limit else Mover.LIMIT
        return Facts(slurm=self._slurm, mover=mover, remedies=LESS_OR_ELSEWHERE)

    @property
    def _slurm(self) -> str:
        """Slurm's word: it does not name the QOS where the limit is one of an account."""
        match self.side, self.meter:
            case Side.USER, CeilingMeter.GPU:
                return "QOSMaxGRESPerUser"
            case Side.USER, CeilingMeter.CPU:
                return "QOSMaxCpuPerUserLimit"
            case Side.USER, CeilingMeter.MEMORY:
                return "QOSMaxMemoryPerUser"
            case Side.USER, CeilingMeter.JOBS:
                return "QOSMaxJobsPerUserLimit"
            case Side.QUEUE, CeilingMeter.GPU:
                return "MaxGRESPerAccount"
            case Side.QUEUE, CeilingMeter.CPU:
                return "MaxCpuPerAccount"
            case Side.QUEUE, CeilingMeter.MEMORY:
                return "MaxMemoryPerAccount"
            case Side.QUEUE, CeilingMeter.JOBS:
                return "MaxJobsPerAccount"

    def counts(self, spec: JobSpec) -> bool:
        whose = spec.user if self.side is Side.USER else spec.queue
        return spec.job_class == self.job_class and whose == self.whose

    @property
    def scope(self) -> Scope | None:
        return self.meter.scope

    @property
    def missing(self) -> int:
        return self.used + self.asked - self.limit

    def sentence(self, _spec: JobSpec, _now: Instant) -> str:
        most, used, asked = map(self._metered, (self.limit, self.used, self.asked))
        return (
            f"Jobs of class {self.job_class} may hold {most} at once for {self.whose}; "
            f"they hold {used}, and this one asks for {asked}."
        )

    def _metered(self, amount: int) -> str:
        scope = self.scope
        return counted(amount, "job") if scope is None else metered(scope, amount)


class TooManyJobs(Value, tag="too_many_jobs", gc=False):
    """The queue already runs as many jobs as it may."""

    facts: ClassVar = Facts(
        slurm="AssocGrpJobsLimit", mover=Mover.LIMIT, remedies=frozenset({Remedy.OTHER_QUEUE})
    )
    scope: ClassVar = None
    missing: ClassVar = 1

    queue: QueuePath
    limit: int

    def counts(self, spec: JobSpec) -> bool:
        return is_within(spec.queue, self.queue)

    def sentence(self, _spec: JobSpec, _now: Instant) -> str:
        return f"Queue {self.queue} may run {counted(self.limit, 'job')} at once, and does."


class ArrayFull(Value, tag="array_full", gc=False):
    """As many of the array run as may run at once."""

    facts: ClassVar = Facts(slurm="JobArrayTaskLimit", mover=Mover.LIMIT, eligible=False)
    scope: ClassVar = None
    missing: ClassVar = 1

    array: JobId
    at_once: int

    def counts(self, spec: JobSpec) -> bool:
        return spec.array is not None and spec.array.array == self.array

    def sentence(self, _spec: JobSpec, _now: Instant) -> str:
        return f"Array {self.array} may run {counted(self.at_once, 'job')} at once, and does."


Limit = OverLimit | BorrowedOut | OverClassLimit | TooManyJobs | ArrayFull
"""What is held is too much.

counts: does what this job holds count against it?
scope: what of it counts; None where each job counts as one.
missing: how much less must be held before the job can start.
"""


class TooLong(Value, tag="too_long", gc=False):
    """The time limit is longer than the class, or every pool that fits, allows.

    asked: None where the job has no time limit.
    """

    facts: ClassVar = Facts(
        slurm="PartitionTimeLimit",
        mover=Mover.USER,
        remedies=frozenset({Remedy.OTHER_POOL}),
    )

    asked: Duration | None
    allowed: Duration

    def longest(self, _now: Instant) -> int:
        return self.allowed

    def sentence(self, _spec: JobSpec, _now: Instant) -> str:
        wants = "Has no time limit" if self.asked is None else f"Asks for {span(self.asked)}"
        return f"{wants}; its class and the pools that suit it allow {span(self.allowed)}."


class Behind(Value, tag="behind", gc=False):
    """It fits now but would still run when the room is due to a job that goes first."""

    facts: ClassVar = Facts(slurm="Priority", mover=Mover.LINE, remedies=ANYTHING_ELSE, dated=True)

    job: JobId
    starts_at: Instant

    @property
    def names(self) -> tuple[JobId, ...]:
        return (self.job,)

    def longest(self, now: Instant) -> int:
        return self.starts_at - now

    def sentence(self, _spec: JobSpec, now: Instant, labels: Labels = NO_LABELS) -> str:
        due, first = when(self.starts_at, now), jobs_listed(self.names, labels)
        return f"Fits now, but would still run when the room is due to {first}, {due}."


class ReservationClosed(Value, tag="reservation_closed", gc=False):
    """The reservation that it asks for has not begun, is over, or is not for it."""

    facts: ClassVar = Facts(slurm="Reservation", mover=Mover.CLOCK, dated=True)

    reservation: str
    begins_at: Instant
    ends_at: Instant

    @property
    def due(self) -> Instant:
        return self.begins_at

    def sentence(self, _spec: JobSpec, now: Instant) -> str:
        if self.begins_at > now:
            return f"Its reservation {self.reservation} begins {when(self.begins_at, now)}."
        state = "is over" if self.ends_at <= now else "is not for it"
        return (
            f"Its reservation {self.reservation} {state}: "
            "the job must ask for another, or for none."
        )


class Reserved(Value, tag="reserved", gc=False):
    """It would still run when a reservation begins, on the nodes that are not full."""

    facts: ClassVar = Facts(
        slurm="ReqNodeNotAvail", mover=Mover.CLOCK, remedies=ANYTHING_ELSE, dated=True
    )

    reservation: str
    begins_at: Instant

    def longest(self, now: Instant) -> int:
        return self.begins_at - now

    def sentence(self, _spec: JobSpec, now: Instant) -> str:
        name, at = self.reservation, self.begins_at
        if at > now:
            return (
                f"The nodes that it could have are full, or due to reservation {name}, which "
                f"begins {when(at, now)}, while this job would still run."
            )
        return f"The nodes that it could have are full, or kept by reservation {name}."


_HOPES = Facts(slurm="Dependency", mover=Mover.OTHER_JOB, eligible=False)
_HOPELESS = Facts(slurm="DependencyNeverSatisfied", mover=Mover.USER, eligible=False)


class DependsOn(Value, tag="depends_on", gc=False):
    """Another job must come to something first; `never` when that can no longer happen.

    It is one of so many ways, of which each would be enough; `never` is said of all of them.
    """

    job: JobId | None
    kind: DependencyKind
    never: bool = False
    ways: int = 1

    @property
    def facts(self) -> Facts:
        return _HOPELESS if self.never else _HOPES

    @property
    def names(self) -> tuple[JobId, ...]:
        return () if self.job is None else (self.job,)

    def sentence(self, _spec: JobSpec, _now: Instant, labels: Labels = NO_LABELS) -> str:
        other = jobs_listed(self.names, labels) if self.names else "another job"
        match self.kind:
            case DependencyKind.AFTER:
                event = "has started"
            case DependencyKind.AFTER_OK:
                event = "has completed"
            case DependencyKind.AFTER_NOT_OK:
                event = "has failed or was cancelled"
            case DependencyKind.AFTER_ANY:
                event = "has ended"
            case DependencyKind.SINGLETON:
                event = "of the same name has ended"
        else_ = f" or another of its {self.ways} conditions is met" if self.ways > 1 else ""
        never = ", which can no longer happen" if self.never else ""
        return f"Waits until {other} {event}{else_}{never}."


class NotBefore(Value, tag="not_before", gc=False):
    """The job asked not to begin earlier."""

    facts: ClassVar = Facts(slurm="BeginTime", mover=Mover.CLOCK, dated=True)

    at: Instant

    @property
    def due(self) -> Instant:
        return self.at

    def sentence(self, _spec: JobSpec, now: Instant) -> str:
        return f"May not begin before its time, {when(self.at, now)}."


Scheduled = ReservationClosed | NotBefore
"""The reason knows when the clock ends the wait; a date that has passed ends nothing."""


class MissesDeadline(Value, tag="misses_deadline", gc=False):
    """It could not finish in time any more, even if it started now."""

    facts: ClassVar = Facts(
        slurm="DeadLine",
        mover=Mover.USER,
        remedies=frozenset({Remedy.OTHER_POOL}),
        dated=True,
    )

    deadline: Instant

    def longest(self, now: Instant) -> int:
        return self.deadline - now

    def sentence(self, _spec: JobSpec, now: Instant) -> str:
        due = when(self.deadline, now)
        return f"Could not end by its deadline, {due}, even if it started now."


TooLate = TooLong | Behind | Reserved | MissesDeadline
"""A job that ran for less time would not wait.

longest: for how many milliseconds it could run at most, if it started now.
"""


class NoSuchPool(Value, tag="no_such_pool", gc=False):
    """A pool or cluster that the job names does not exist, is closed, or is unreachable."""

    facts: ClassVar = Facts(
        slurm="PartitionDown", mover=Mover.ADMIN, remedies=frozenset({Remedy.OTHER_POOL})
    )

    name: str

    def sentence(self, _spec: JobSpec, _now: Instant) -> str:
        return (
            f"{self.name}, where it wants to run, does not exist, is closed or cannot be reached."
        )


class NoSuchQueue(Value, tag="no_such_queue", gc=False):
    """The job's queue does not exist any more."""

    facts: ClassVar = Facts(
        slurm="InvalidAccount", mover=Mover.USER, remedies=frozenset({Remedy.OTHER_QUEUE})
    )

    queue: QueuePath

    def sentence(self, _spec: JobSpec, _now: Instant) -> str:
        return f"Queue {self.queue} does not exist any more: the job must go to another."


class NoSuchClass(Value, tag="no_such_class", gc=False):
    """The job's class does not exist any more."""

    facts: ClassVar = Facts(slurm="InvalidQOS", mover=Mover.USER)

    job_class: ClassName

    def sentence(self, _spec: JobSpec, _now: Instant) -> str:
        return f"Class {self.job_class} does not exist any more: the job must have another."


class MakingRoom(Value, tag="making_room"):
    """Other jobs are stopping for this one; the room is held for it."""

    facts: ClassVar = Facts(slurm="Resources", mover=Mover.OTHER_JOB)

    victims: tuple[JobId, ...]

    @property
    def names(self) -> tuple[JobId, ...]:
        return self.victims

    def sentence(self, _spec: JobSpec, _now: Instant, labels: Labels = NO_LABELS) -> str:
        victims = jobs_listed(self.victims, labels)
        return f"Starts when room that is held for it is left by {victims}."


ForOthers = Behind | DependsOn | MakingRoom
"""The reason names the jobs that are in the way."""


class WaitingToResume(Value, tag="waiting_to_resume"):
    """Suspended: the room it left on that node is in use; None if it has none to go back to."""

    facts: ClassVar = Facts(slurm="Resources", mover=Mover.LINE)

    node: NodeId | None

    def sentence(self, _spec: JobSpec, _now: Instant) -> str:
        if self.node is None:
            return "Suspended, and the room that it left is gone."
        return f"Suspended: the room that it left on {self.node} is in use."


WaitReason = (
    NoRoom
    | NeverFits
    | OverLimit
    | BorrowedOut
    | OverClassLimit
    | TooManyJobs
    | TooLong
    | Behind
    | Reserved
    | ReservationClosed
    | DependsOn
    | HeldBy
    | NotBefore
    | MissesDeadline
    | ArrayFull
    | NoSuchPool
    | NoSuchQueue
    | NoSuchClass
    | MakingRoom
    | WaitingToResume
)


def told(why: WaitReason, spec: JobSpec, now: Instant, labels: Labels) -> str:
    """Its sentence, with the jobs that it names called as they are everywhere else."""
    if isinstance(why, ForOthers):
        return why.sentence(spec, now, labels)
    return why.sentence(spec, now)
