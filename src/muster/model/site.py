"""What the administrators decide, as one value: who shares what with whom, and by which rules."""

from collections.abc import Mapping
from enum import StrEnum

from muster.model.alerting import Alerting
from muster.model.cluster import Pool, Reservation
from muster.model.policy import Policy
from muster.model.queue import JobClass, Queue, lineage
from muster.model.sinks import Sink
from muster.model.value import (
    DAY,
    SECOND,
    ClassName,
    ClusterName,
    Duration,
    Instant,
    PoolName,
    QueuePath,
    UserName,
    Value,
)


class Role(StrEnum):
    """What a user may do; each role includes those before it."""

    VIEWER = "viewer"
    USER = "user"
    QUEUE_ADMIN = "queue_admin"
    ADMIN = "admin"


class Grant(Value, gc=False):
    """A role in one queue and those below it; everywhere when no queue is named."""

    role: Role
    queue: QueuePath | None = None


class User(Value):
    """A user who is listed by name.

    max_submitted: how many unfinished jobs they may have; None sets no bound.
    """

    name: UserName
    grants: tuple[Grant, ...] = ()
    default_queue: QueuePath | None = None
    max_submitted: int | None = None


class Token(Value, kw_only=True):
    """A token for use from other machines. Only its hash is stored.

    It can do what its user can, and no more than `role` in `queue` and below.
    made_by: who asked for it. made_with: the token that it was asked for with, without which it
    is good for nothing either.
    """

    id: str
    user: UserName
    hashed: str
    role: Role = Role.USER
    queue: QueuePath | None = None
    made_at: Instant
    expires_at: Instant
    revoked: bool = False
    made_by: UserName | None = None
    made_with: str | None = None


class UserLimits(Value, gc=False):
    """What one user may have of this installation itself; None sets no bound.

    max_jobs: unfinished jobs. max_submit_mib: what they may submit in a day, counted as it is kept.
    """

    max_jobs: int | None = 100_000
    max_submit_mib: int | None = 4_096


class Confinement(Value, gc=False):
    """What keeps every job to itself, besides the limits that it asked for.

    private_tmp: each job has a /tmp, a /dev/shm and IPC of its own, which end with it.
    new_privileges: programs with the set-user-id bit, such as sudo, work in jobs.
    processes: how many a job may have at once, their threads included; None: no limit.
    memory: jobs are kept to the memory that they asked for, and killed above it.
    memory_per_cpu_mib, memory_per_gpu_mib: the limit of jobs that ask for no memory, the larger of
    both; None: the same part of the node's memory as the job has of its CPUs, or of its GPUs.
    """

    private_tmp: bool = True
    new_privileges: bool = False
    processes: int | None = 16_384
    memory: bool = True
    memory_per_cpu_mib: int | None = None
    memory_per_gpu_mib: int | None = None


class MeasuredElsewhere(Value, gc=False):
    """Who measures a cluster already with NVIDIA's dcgm-exporter, and is asked.

    prometheus: one that reads the exporters. match: the selector of what is this cluster's, such as
    `{cluster="a"}`. exporter: the address of each exporter itself, with `{node}` in it.
    """

    cluster: ClusterName
    prometheus: str = ""
    exporter: str = ""
    match: str = ""
    token_file: str = ""


class TelemetryRules(Value):
    """What is measured, and who may see it.

    interval: devices, jobs and machines are looked at so often.
    job_labels: series of devices say which job has them, as `hpc_job`; every job
    then begins new ones.
    metrics_open: who asks from this machine itself sees all metrics, whoever it is.
    clusters: those of which others know how their GPUs are.
    sinks: to whom logs, what jobs write, and metrics are sent.
    """

    interval: Duration = Duration(15 * SECOND)
    job_labels: bool = False
    metrics_open: bool = False
    clusters: Mapping[ClusterName, MeasuredElsewhere] = {}
    sinks: Mapping[str, Sink] = {}


SHARED_TMP = Confinement(private_tmp=False)
"""What an installation keeps that is older than these rules, until rules are applied to it."""


class Site(Value):
    """One installation's rules: what `muster apply -f cluster.yaml` changes.

    everyone: what a user of this machine may do who is not listed under `users`.
    default_pool: where jobs go whose door knows partitions, if they name none; None is anywhere.
    currency: that of prices, as metrics name it.
    keep_history: ended jobs and their events are forgotten after this time; None keeps them.
    images_on_host: where no container tool is found, run the command without its image, in queues
    that do not say otherwise.
    confinement: what keeps every job to itself.
    per_user: how much any one user may ask of the installation, so that all others have it too.
    telemetry: what is measured.
    alerts: who is told of what is wrong.
    """

    queues: Mapping[QueuePath, Queue] = {}
    classes: Mapping[ClassName, JobClass] = {}
    pools: Mapping[PoolName, Pool] = {}
    users: Mapping[UserName, User] = {}
    everyone: Role = Role.USER
    default_queue: QueuePath = QueuePath("default")
    default_pool: PoolName | None = None
    policy: Policy = Policy()
    reservations: tuple[Reservation, ...] = ()
    currency: str = ""
    keep_history: Duration | None = Duration(400 * DAY)
    images_on_host: bool = False
    confinement: Confinement = SHARED_TMP
    per_user: UserLimits = UserLimits()
    telemetry: TelemetryRules = TelemetryRules()
    alerts: Alerting = Alerting()


def runs_images_on_host(site: Site, path: QueuePath) -> bool:
    """Are commands of this queue run without their images where nothing runs images?"""
    said = (site.queues[each].images_on_host for each in lineage(path) if each in site.queues)
    return next((each for each in said if each is not None), site.images_on_host)
