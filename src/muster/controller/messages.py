"""What doors send to the controller, and what it answers."""

from collections.abc import Mapping

from muster.lifecycle.refusal import Caution
from muster.model.cluster import Cluster, Node, Pool, Reservation
from muster.model.dates import Moved, StartDate
from muster.model.explanation import Alternative
from muster.model.forbidden import NotYourJob
from muster.model.history import Attempt
from muster.model.job import Job, JobState
from muster.model.launch import Launch
from muster.model.placement import Allocation, Placement
from muster.model.plan import NoEstimate, Wait
from muster.model.queue import Queue, Quota
from muster.model.site import Site, Token
from muster.model.value import (
    ClassName,
    ClusterName,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    Value,
)
from muster.model.words import NO_LABELS, Labels


class Caller(Value):
    """Who asks, and through which door. A token can take rights away, never add any.

    root: the machine's own administrator, who may do everything.
    """

    user: UserName
    door: str
    token: Token | None = None
    root: bool = False


class Receipt(Value):
    """The jobs that were made, in order, and what their user should know."""

    jobs: tuple[JobId, ...]
    cautions: tuple[Caution, ...] = ()


class JobGone(Value, tag="job_gone", gc=False):
    """There is nothing to act on."""

    job: JobId

    @property
    def sentence(self) -> str:
        return f"there is no job {self.job}, or it has ended"


class WrongState(Value, tag="wrong_state"):
    """The action is possible only in other states."""

    job: str
    state: JobState
    action: str
    works_in: tuple[JobState, ...]

    @property
    def sentence(self) -> str:
        states = " or ".join(self.works_in)
        return f"job {self.job} is {self.state}; {self.action} works only while a job is {states}"


class HeldByAdmin(Value, tag="held_by_admin", gc=False):
    """What an administrator holds, only administrators release."""

    job: str

    @property
    def sentence(self) -> str:
        return f"job {self.job} is held by an administrator, who can release it"


class HasInstances(Value, tag="has_instances", gc=False):
    """MIG instances cannot be kept for a job that is suspended."""

    job: str

    @property
    def sentence(self) -> str:
        return f"job {self.job} has MIG instances, which a standing job cannot keep; requeue it"


NotDoneReason = JobGone | NotYourJob | WrongState | HeldByAdmin | HasInstances
"""Why an action was not done to a job."""


class Outcome(Value):
    """The result for each job that was named: done, or the reason why not."""

    done: tuple[JobId, ...] = ()
    failed: Mapping[JobId, NotDoneReason] = {}


class JobView(Value, gc=False):
    """A job as people see it: what it is, holds, waits for, and what is known of its end.

    labels: what jobs are called that stand in its way, or for which it made room.
    """

    job: Job
    allocation: Allocation | None = None
    wait: Wait | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None
    pretend: bool = False
    labels: Labels = NO_LABELS


class Fleet(Value):
    """What there is and who holds it at one moment, without those who wait."""

    clusters: Mapping[ClusterName, Cluster]
    pools: Mapping[PoolName, Pool]
    nodes: Mapping[NodeId, Node]
    allocations: Mapping[JobId, Allocation]
    reservations: tuple[Reservation, ...] = ()


class QuotaUse(Value):
    """One line of a quota: what is used, guaranteed, and allowed at most if that is limited."""

    quota: Quota
    used: int
    guaranteed: int
    limit: int | None = None


class QueueUse(Value):
    """A queue with what it uses, everything below counted in.

    share: its part of everything, by weights. used_share: its part of all use lately.
    is_private: it is, or one above it.
    """

    queue: Queue
    is_private: bool
    running: int
    waiting: int
    gpu_milli: int
    share: float
    used_share: float
    quotas: tuple[QuotaUse, ...] = ()


class Share(Value):
    """A queue's or a user's place in the tree of shares.

    share, effective: its part by weights, and of all use, in billionths. used: milli-GPU-ms lately.
    factor: from 1,000 for no use, through 500 for just its share, towards 0.
    """

    weight: int
    share: int
    used: int
    effective: int
    factor: int


class ShareTree(Value):
    """Fair shares: of everybody together, of queues, and of users in queues."""

    root: Share
    queues: Mapping[QueuePath, Share]
    users: Mapping[tuple[QueuePath, UserName], Share]


class JobDetail(Value):
    """One job with its past attempts; launch only for those who may see it."""

    view: JobView
    attempts: tuple[Attempt, ...] = ()
    launch: Launch | None = None


class JobQuery(Value):
    """Which live jobs. Everything that is given must hold; a queue stands for its subtree."""

    jobs: tuple[JobId, ...] = ()
    arrays: tuple[JobId, ...] = ()
    users: tuple[UserName, ...] = ()
    queues: tuple[QueuePath, ...] = ()
    nodes: tuple[NodeId, ...] = ()
    states: tuple[JobState, ...] = ()
    name: str | None = None
    reservation: str | None = None
    after: JobId | None = None
    limit: int = 1_000


class JobsPage(Value):
    """Some jobs, in the order of their ids, and the id after which the next page begins."""

    jobs: tuple[JobView, ...]
    next: JobId | None = None


class LogQuery(Value):
    """A part of what a job wrote, of its last attempt unless one is named.

    offset: from the end, if below zero. container: of a pod, whose log it is, with its times.
    previous: of the run before the last one.
    """

    job: JobId
    attempt: int | None = None
    container: str = ""
    previous: bool = False
    stderr: bool = False
    task: int = 0
    offset: int = 0
    limit: int = 65_536


class SiteDiff(Value):
    """A change of rules: before, after, and what to think of."""

    before: Site
    after: Site
    cautions: tuple[str, ...] = ()


class Rehearsal(Value):
    """What would be different now: the planner was asked, nothing was done.

    job: the id that a rehearsed submission got in the rehearsal.
    placements: where it would start, now or when it is expected to, as far as that is known.
    date: what is forecast for it, if it would wait; moved: who would start at another time.
    alternatives: what it could ask for to start sooner, if it would wait.
    """

    starts: tuple[JobId, ...] = ()
    waits: tuple[JobId, ...] = ()
    preempted: tuple[JobId, ...] = ()
    job: JobId | None = None
    wait: Wait | None = None
    expected: Instant | NoEstimate | None = None
    placements: tuple[Placement, ...] = ()
    date: StartDate | None = None
    moved: tuple[Moved, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    text: str = ""


class DatesHeldIn(Value, gc=False):
    """The same, of the jobs of one class in one queue."""

    queue: QueuePath
    job_class: ClassName
    held: int
    told: int


class DatesHeld(Value, gc=False):
    """Of the dates that jobs were told which started in the last week: so many held.

    groups: the same by queue and class, those with the most dates first.
    """

    held: int = 0
    told: int = 0
    groups: tuple[DatesHeldIn, ...] = ()


class Health(Value):
    """How the installation is."""

    leading: bool
    store: str
    last_event: int
    plan_ms: int
    planned_at: Instant | None
    dates: DatesHeld = DatesHeld()
    problems: tuple[str, ...] = ()
