"""Jobs: what was asked for, where a job stands, and why it ended."""

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar

from muster.model.cluster import Ability
from muster.model.facts import EndFacts, Facts, Mover
from muster.model.gpu import WHOLE_GPU_MILLI, GpuAsk, Mig, MpsShare, TimeShare
from muster.model.launch import NO_LAUNCH, Launch
from muster.model.mail import NO_MAIL, Mail
from muster.model.mig import mig_milli
from muster.model.placement import Claim
from muster.model.queue import PreemptMode
from muster.model.resources import Resources
from muster.model.value import (
    ClassName,
    ClusterName,
    Duration,
    GpuModel,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    Value,
)


class Ask(Value, cache_hash=True, omit_defaults=True):
    """What one task needs on the node where it lands."""

    cpu_milli: int = 0
    memory_mib: int = 0
    gpus: GpuAsk | None = None

    def amount(self, model: GpuModel | None) -> Resources:
        """The ask as amounts, on nodes with GPUs of this model (a MIG profile's part differs)."""
        return Resources(
            cpu_milli=self.cpu_milli,
            memory_mib=self.memory_mib,
            gpu_milli=gpu_milli(self.gpus, model),
        )


def gpu_milli(gpus: GpuAsk | None, model: GpuModel | None) -> int:
    """How much GPU is asked for, in thousandths, if it lands on this model."""
    if gpus is None:
        return 0
    match gpus.slice:
        case None:
            return gpus.count * WHOLE_GPU_MILLI
        case Mig(profile=profile):
            return gpus.count * mig_milli(model, profile)
        case MpsShare(milli=milli):
            return gpus.count * milli
        case TimeShare(replicas=replicas):
            return gpus.count * (WHOLE_GPU_MILLI // replicas)


class Together(Value, gc=False):
    """Tasks of the group belong in one domain of this topology level: must, or would rather."""

    level: str
    required: bool = True


class Operator(StrEnum):
    """How a label rule compares."""

    IN = "in"
    NOT_IN = "not_in"
    EXISTS = "exists"
    ABSENT = "absent"


class LabelRule(Value):
    """A rule about one node label."""

    key: str
    operator: Operator = Operator.IN
    values: tuple[str, ...] = ()

    def accepts(self, labels: Mapping[str, str]) -> bool:
        """Do these labels satisfy the rule?"""
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value in self.values
            case Operator.NOT_IN:
                return value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.ABSENT:
                return value is None


class Toleration(Value, gc=False):
    """Accepts taints with this key (any key when None) and value (any value when None)."""

    key: str | None = None
    value: str | None = None


NODE_LEVEL = "node"
"""The level below every topology level: one node."""


class JobRule(Value, gc=False):
    """Jobs that carry this label, and how near counts: the same node, rack, zone ..."""

    key: str
    value: str
    level: str = NODE_LEVEL


class Where(Value, cache_hash=True, omit_defaults=True):
    """Which nodes a group's tasks may and would rather land on."""

    require: tuple[LabelRule, ...] = ()
    prefer: tuple[LabelRule, ...] = ()
    tolerate: tuple[Toleration, ...] = ()
    nodes: tuple[NodeId, ...] = ()
    not_nodes: tuple[NodeId, ...] = ()
    near: tuple[JobRule, ...] = ()
    apart: tuple[JobRule, ...] = ()
    exclusive: bool = False
    max_per_node: int | None = None


ANYWHERE = Where()


class TaskGroup(Value, cache_hash=True, omit_defaults=True):
    """Identical tasks. Every one of `count` starts or, when elastic, at least `min_count` do.

    All tasks of a group land in one pool, on one GPU model.
    """

    name: str = "main"
    count: int = 1
    min_count: int | None = None
    each: Ask = Ask()
    together: Together | None = None
    where: Where = ANYWHERE

    @property
    def fewest(self) -> int:
        """How many tasks must start for the group to start."""
        return self.count if self.min_count is None else self.min_count


class DependencyKind(StrEnum):
    """What must have happened to the other job, in Slurm's words."""

    AFTER = "after"
    AFTER_OK = "afterok"
    AFTER_NOT_OK = "afternotok"
    AFTER_ANY = "afterany"
    SINGLETON = "singleton"


class Dependency(Value, gc=False):
    """A condition on another job; a singleton waits for the user's earlier jobs of its name.

    All conditions of one way must be met; where there are several ways, one of them is enough.
    part: of an array, only the part of this index has the condition.
    """

    kind: DependencyKind
    job: JobId | None = None
    delay: Duration = Duration(0)
    way: int = 0
    part: int | None = None


def ways(after: tuple[Dependency, ...]) -> tuple[tuple[Dependency, ...], ...]:
    """The conditions of each way, in the order in which they were written."""
    if len(after) < 2:
        return (after,) if after else ()
    found: dict[int, list[Dependency]] = {}
    for each in after:
        found.setdefault(each.way, []).append(each)
    return tuple(map(tuple, found.values()))


class ArrayPart(Value, gc=False):
    """This job is one of an array; at most `at_once` of the array run at the same time."""

    array: JobId
    index: int
    at_once: int | None = None


class Spot(StrEnum):
    """May the job run where capacity can be taken away?"""

    NEVER = "never"
    ALLOWED = "allowed"
    ONLY = "only"


class RetryPolicy(Value, gc=False):
    """How a job is tried again: after a pause of `base`, then `factor` times longer, up to `cap`.

    requeue: does it wait again after preemption or a lost node, which are not its own failures?
    """

    base: Duration = Duration(10_000)
    factor: int = 2
    cap: Duration = Duration(300_000)
    requeue: bool = True


class JobSpec(Value, omit_defaults=True):
    """One request, the same whichever door it came through.

    pools and clusters are in order of preference; empty means any.
    cancel_if_hopeless: it does not wait when what it depends on can no longer come true.
    reservation: it runs only in the reservation of this name, while that is open.
    restart_cost is what starting over takes beside the work lost since the last checkpoint.
    max_attempts counts the attempts that may fail by the job's own doing.
    takes: what its cluster must be able to do; it follows from `launch`, which is kept elsewhere.
    """

    name: str
    user: UserName
    queue: QueuePath
    groups: tuple[TaskGroup, ...]
    job_class: ClassName = ClassName("normal")
    pools: tuple[PoolName, ...] = ()
    clusters: tuple[ClusterName, ...] = ()
    spot: Spot = Spot.NEVER
    priority: int = 0
    time_limit: Duration | None = None
    begin_at: Instant | None = None
    deadline: Instant | None = None
    reservation: str | None = None
    after: tuple[Dependency, ...] = ()
    cancel_if_hopeless: bool = False
    array: ArrayPart | None = None
    preemptible: bool = True
    preempt_mode: PreemptMode | None = None
    restart_cost: Duration = Duration(0)
    max_attempts: int = 1
    retry: RetryPolicy = RetryPolicy()
    labels: Mapping[str, str] = {}
    mail: Mail = NO_MAIL
    takes: tuple[Ability, ...] = ()
    launch: Launch = NO_LAUNCH


class JobState(StrEnum):
    """Where a job stands; the moves between states are in `lifecycle.step`."""

    HELD = "held"
    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    SUSPENDED = "suspended"
    STOPPING = "stopping"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


WAITING = frozenset({JobState.HELD, JobState.PENDING, JobState.SUSPENDED})
"""States in which a job gets a decision in every plan."""

HOLDING = frozenset({JobState.STARTING, JobState.RUNNING, JobState.STOPPING})
"""States in which a job holds all that its allocation names."""

FINAL = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})


_EXITED_WELL = EndFacts(slurm_state="COMPLETED")
_EXITED_BADLY = EndFacts(slurm_state="FAILED", slurm="NonZeroExitCode")


class Exited(Value, tag="exited", gc=False):
    """The job's processes ended by themselves."""

    code: int

    @property
    def facts(self) -> EndFacts:
        return _EXITED_BADLY if self.code else _EXITED_WELL


class Signaled(Value, tag="signaled", gc=False):
    """A signal that Muster did not send ended the job."""

    facts: ClassVar = EndFacts(slurm_state="FAILED", slurm="JobLaunchFailure")

    signal: int


class TimedOut(Value, tag="timed_out", gc=False):
    """The job ran to its time limit."""

    facts: ClassVar = EndFacts(slurm_state="TIMEOUT", slurm="TimeLimit")

    limit: Duration


class OutOfMemory(Value, tag="out_of_memory", gc=False):
    """The job asked for more memory than it had."""

    facts: ClassVar = EndFacts(slurm_state="OUT_OF_MEMORY", slurm="OutOfMemory")

    node: NodeId


class NodeFailed(Value, tag="node_failed", gc=False):
    """A node was lost under the job."""

    facts: ClassVar = EndFacts(slurm_state="NODE_FAIL", slurm="NodeDown")

    node: NodeId


class Preempted(Value, tag="preempted", gc=False):
    """The job made room for another, in this way."""

    facts: ClassVar = EndFacts(slurm_state="PREEMPTED")

    by: JobId
    mode: PreemptMode = PreemptMode.REQUEUE


class Cancelled(Value, tag="cancelled", gc=False):
    """A user cancelled the job."""

    facts: ClassVar = EndFacts(slurm_state="CANCELLED")

    by: UserName


_HELD_BY_USER = Facts(slurm="JobHeldUser", mover=Mover.HOLDER, eligible=False)
_HELD_BY_ADMIN = Facts(slurm="JobHeldAdmin", mover=Mover.HOLDER, eligible=False)


class HeldBy(Value, tag="held_by", gc=False):
    """A user, or a rule, holds the job until it is released.

    as_admin: they did so with the power of an administrator, be it their own job.
    """

    user: UserName
    as_admin: bool = False

    @property
    def facts(self) -> Facts:
        return _HELD_BY_ADMIN if self.as_admin else _HELD_BY_USER

    def sentence(self, _spec: JobSpec, _now: Instant) -> str:
        return f"Held by {self.user} until it is released."


class Requeued(Value, tag="requeued", gc=False):
    """A user requeued the job; held: it starts again only after it is released."""

    facts: ClassVar = EndFacts(slurm_state="REQUEUED")

    by: UserName
    held: HeldBy | None = None


class LaunchFailed(Value, tag="launch_failed", gc=False):
    """The backend could not start the job."""

    facts: ClassVar = EndFacts(slurm_state="FAILED", slurm="JobLaunchFailure")

    text: str


class DeadlinePassed(Value, tag="deadline_passed", gc=False):
    """The job could no longer finish in time and was not started."""

    facts: ClassVar = EndFacts(slurm_state="DEADLINE", slurm="DeadLine")

    deadline: Instant


EndReason = (
    Exited
    | Signaled
    | TimedOut
    | OutOfMemory
    | NodeFailed
    | Preempted
    | Cancelled
    | Requeued
    | LaunchFailed
    | DeadlinePassed
)


OOM_SIGNAL = 125
"""Slurm's number for a job that needed more memory than it had: no signal has it."""


def exit_of(why: EndReason | HeldBy | None) -> tuple[int, int] | None:
    """The exit code and the signal; None where it did not end by itself."""
    match why:
        case Exited(code=code):
            return code, 0
        case Signaled(signal=signal):
            return 0, signal
        case OutOfMemory():
            return 0, OOM_SIGNAL
        case LaunchFailed():
            return 1, 0
        case TimedOut() | NodeFailed() | Preempted() | Cancelled() | Requeued() | DeadlinePassed():
            return None
        case HeldBy() | None:
            return None


class Job(Value, kw_only=True, omit_defaults=True):
    """One request from submission to end. `attempt` counts starts; 0 means never started yet.

    why says who holds it, what it stops or is suspended for, or how its last attempt ended.
    failures counts the attempts that used up one of `spec.max_attempts`.
    not_before ends the pause after a failure.
    checkpoint: the newest checkpoint that was really written, for the next attempt to begin at.
    expected: how long jobs like it take, where the policy asks; nothing is stopped for it.
    ran: how long it has run so far, without the stretch that goes on now.
    """

    id: JobId
    spec: JobSpec
    state: JobState = JobState.PENDING
    why: EndReason | HeldBy | None = None
    submitted_at: Instant
    attempt: int = 0
    claim: Claim | None = None
    failures: int = 0
    not_before: Instant | None = None
    checkpoint: str | None = None
    expected: Duration | None = None
    ran: Duration = Duration(0)

    @property
    def label(self) -> str:
        """What it is called wherever it is shown: `17`, or `12_3` for a part of an array."""
        part = self.spec.array
        return str(self.id) if part is None else f"{part.array}_{part.index}"

    @property
    def ended_for(self) -> EndReason | None:
        """Why its last attempt ended or is being stopped; None for one that is held or runs."""
        return None if isinstance(self.why, HeldBy) else self.why

    @property
    def begin_at(self) -> Instant | None:
        """Not earlier than this, because the user said so or because it failed a moment ago."""
        asked, paused = self.spec.begin_at, self.not_before
        if asked is None or paused is None:
            return paused if asked is None else asked
        return max(asked, paused)
