"""Queues: places in one tree that hold jobs and own quota, and the job classes beside them."""

from collections.abc import Iterator, Mapping
from enum import StrEnum

from muster.model.idle import IdleRule
from muster.model.value import (
    ClassName,
    Duration,
    GpuModel,
    PoolName,
    QueuePath,
    UserName,
    Value,
)


def lineage(path: QueuePath) -> Iterator[QueuePath]:
    """The queue and its ancestors, nearest first: `a/b/c`, `a/b`, `a`."""
    while path:
        yield path
        path = QueuePath(path.rpartition("/")[0])


def of_nearest(texts: Mapping[QueuePath, str], path: QueuePath) -> str:
    """What is said for the queue, or for the nearest one above it; empty if nothing is."""
    return next((texts[each] for each in lineage(path) if each in texts), "")


def is_within(path: QueuePath, ancestor: QueuePath) -> bool:
    """Is `path` this queue or one below it?"""
    return path == ancestor or path.startswith(ancestor + "/")


class Percent(Value, tag="percent", gc=False):
    """A part of everything the quota's scope has: its pool, its GPU model, or all clusters."""

    percent: int


Amount = int | Percent


class Meter(StrEnum):
    """What a quota counts: thousandths of a GPU, instances of a MIG profile, CPU milli, MiB."""

    GPU = "gpu"
    MIG = "mig"
    CPU = "cpu"
    MEMORY = "memory"


class Scope(Value, cache_hash=True):
    """What is counted and where: per pool, per GPU model, or overall when neither is named."""

    meter: Meter = Meter.GPU
    profile: str | None = None
    pool: PoolName | None = None
    model: GpuModel | None = None


class Quota(Value):
    """One line of a queue's quota.

    guaranteed: always ours when we need it, lent to others while we do not.
    limit: never more than this, lent or not (a nominal 40 % with a ceiling of 60 %).
    lend_limit: how much of the unused guarantee others may borrow; by default all of it.
    borrow_limit: how far above its guarantee it may go; by default up to its limit.
    """

    scope: Scope = Scope()
    guaranteed: Amount = 0
    limit: Amount | None = None
    lend_limit: Amount | None = None
    borrow_limit: Amount | None = None


class WhenFull(StrEnum):
    """What happens to a job that would exceed its queue's limit right now."""

    WAIT = "wait"
    REFUSE = "refuse"


class Queue(Value):
    """A place in the tree, named by its path; a job's queue and all ancestors must agree.

    max_jobs counts jobs that hold resources, max_submitted all that have not ended.
    max_submitted_per_user: of each user in this very queue; if None, that of the nearest ancestor
    with one counts.
    If `may_submit` is empty, that of the nearest ancestor with a list counts, else everyone may.
    private: people without a role here see neither whose its jobs are nor what they are called;
    this holds for the queues below it as well.
    images_on_host: where no container tool is found, run the commands of its jobs without their
    images; None: as the nearest ancestor that says so, and else as the installation does.
    """

    path: QueuePath
    quotas: tuple[Quota, ...] = ()
    weight: int = 1
    priority: int = 0
    max_jobs: int | None = None
    max_submitted: int | None = None
    max_submitted_per_user: int | None = None
    may_submit: tuple[UserName, ...] = ()
    default_class: ClassName | None = None
    when_full: WhenFull = WhenFull.WAIT
    private: bool = False
    images_on_host: bool | None = None


def is_private(queues: Mapping[QueuePath, Queue], path: QueuePath) -> bool:
    """Is this queue private, or one above it?"""
    return any(queues[each].private for each in lineage(path) if each in queues)


UNNAMED, NORMAL = ClassName(""), ClassName("normal")
"""The class of a request that names none, and what stands in for it where the queue has none."""


def usual_class(queues: Mapping[QueuePath, Queue], path: QueuePath) -> ClassName:
    """The class of jobs in this queue that name none: its own, or that of the nearest above it."""
    known = (queues[each].default_class for each in lineage(path) if each in queues)
    return next((name for name in known if name), NORMAL)


class PreemptMode(StrEnum):
    """What becomes of a job that must make room."""

    REQUEUE = "requeue"
    CHECKPOINT = "checkpoint"
    SUSPEND = "suspend"
    CANCEL = "cancel"


class CeilingMeter(StrEnum):
    """What a ceiling bounds: thousandths of a GPU, CPU milli, MiB, running jobs."""

    GPU = "gpu"
    CPU = "cpu"
    MEMORY = "memory"
    JOBS = "jobs"

    @property
    def scope(self) -> Scope | None:
        """What a quota on the same thing would count; None for jobs, of which each is one."""
        return None if self is CeilingMeter.JOBS else Scope(meter=Meter(self.value))


class Ceiling(Value, gc=False):
    """The most of each thing that may be held at once; None sets no bound.

    submitted: how many unfinished jobs there may be, those that wait included.
    """

    gpu_milli: int | None = None
    cpu_milli: int | None = None
    memory_mib: int | None = None
    jobs: int | None = None
    submitted: int | None = None


class Side(StrEnum):
    """For whom a class bounds what its jobs hold: for each user, or for each queue."""

    USER = "user"
    QUEUE = "queue"


EVERYONE = UserName("everyone")
"""In a list of users: all of them."""


class JobClass(Value):
    """Priority, preemption and time rules (a Slurm QOS, a Kubernetes PriorityClass).

    A class preempts those it names, and only while its own priority is the higher one:
    so that no chain of preemptions can come back to where it began.
    per_user and per_queue bound what jobs of this class hold at once.
    may_use, queues: who may ask for it, and in which queues everyone may (see `lets_use`).
    may_decline: whose jobs may ask not to be preempted, although jobs of the class are.
    on_idle: what becomes of those that do not use their GPUs.
    """

    name: ClassName
    priority: int = 0
    preempts: tuple[ClassName, ...] = ()
    preemptible: bool = True
    preempt_mode: PreemptMode = PreemptMode.REQUEUE
    grace: Duration = Duration(30_000)
    min_run: Duration = Duration(0)
    max_time: Duration | None = None
    spot_only: bool = False
    per_user: Ceiling = Ceiling()
    per_queue: Ceiling = Ceiling()
    may_use: tuple[UserName, ...] = ()
    queues: tuple[QueuePath, ...] = ()
    may_decline: tuple[UserName, ...] = ()
    on_idle: IdleRule = IdleRule()

    def lets_use(self, user: UserName, queue: QueuePath, usual: "JobClass | None") -> bool:
        """Does the class let this user ask for it, in a queue whose usual class is this?

        Where it names nobody, everyone may, unless it has more than its share: it is more urgent
        than the usual one, preempts others, or cannot be preempted.
        """
        if self.may_use or self.queues:
            is_named = user in self.may_use or EVERYONE in self.may_use
            return is_named or any(is_within(queue, each) for each in self.queues)
        if usual is None:
            return False
        return self.preemptible and not self.preempts and self.priority <= usual.priority

    def lets_decline(self, user: UserName) -> bool:
        """May this user's jobs ask not to be preempted?"""
        return user in self.may_decline or EVERYONE in self.may_decline or not self.preemptible

    def ceiling(self, side: Side) -> Ceiling:
        """What one user, or one queue, may hold at once."""
        match side:
            case Side.USER:
                return self.per_user
            case Side.QUEUE:
                return self.per_queue
