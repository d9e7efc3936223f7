"""Documents about machines, queues, people and the installation itself."""

from collections.abc import Mapping
from typing import Any

from muster.api.jobs import AlternativeDocument, StartDocument
from muster.model.value import Value


class DeviceDocument(Value):
    """A GPU. used_milli counts thousandths of it that are held; jobs are those that hold them.

    state: how far it is trusted: well, suspect, broken, probation or retired.
    """

    id: str
    index: int
    model: str
    memory_mib: int
    healthy: bool
    reason: str
    mig: tuple[str, ...] | None
    used_milli: int
    jobs: tuple[int, ...]
    state: str = "well"


class NodeDocument(Value):
    """A machine, what it has and what is held."""

    id: str
    cluster: str
    pool: str
    state: str
    reason: str
    pretend: bool
    cpus: float
    cpus_used: float
    memory_mib: int
    memory_used_mib: int
    gpus: int
    gpus_used: float
    gpu_models: tuple[str, ...]
    labels: Mapping[str, str]
    jobs: tuple[int, ...]
    devices: tuple[DeviceDocument, ...]
    where: tuple[str, ...] = ()


class QuotaDocument(Value):
    """One line of a queue's quota, as numbers of its own unit (GPUs, CPUs, MiB, instances)."""

    scope: str
    unit: str
    used: float
    guaranteed: float
    limit: float | None
    borrowed: float


class QueueDocument(Value):
    """A queue with everything below it counted in.

    private: those without a role there do not see whose its jobs are, nor what they are called.
    """

    path: str
    weight: int
    priority: int
    default_class: str | None
    max_jobs: int | None
    running: int
    waiting: int
    gpus_used: float
    share: float
    used_share: float
    quotas: tuple[QuotaDocument, ...]
    may_submit: tuple[str, ...]
    private: bool = False


class ClassDocument(Value):
    """A job class.

    may_use: users who may ask for it, `everyone` for all of them; queues: where everyone may.
    A queue_admin may use every class in their queues.
    may_decline: users whose jobs may ask not to be preempted, although jobs of the class are.
    """

    name: str
    priority: int
    preempts: tuple[str, ...]
    preemptible: bool
    preempt_mode: str
    grace: int
    max_time: int | None
    spot_only: bool
    may_use: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    may_decline: tuple[str, ...] = ()


class UserDocument(Value):
    """A user, with roles like `admin` or `queue_admin:acme/nlp`."""

    name: str
    roles: tuple[str, ...]
    default_queue: str | None = None


class MeDocument(Value):
    """Who the server takes you for."""

    user: str
    door: str
    roles: tuple[str, ...]


class TokenDocument(Value):
    """A token; `secret` is shown once, when it is made."""

    id: str
    user: str
    role: str
    queue: str | None
    made_at: str
    expires_at: str
    revoked: bool
    secret: str | None = None


class TokenAsked(Value):
    """A wish for a key. lifetime: seconds, or text (`30d`)."""

    role: str = "user"
    queue: str | None = None
    user: str | None = None
    lifetime: int | str = "30d"


class KubernetesDocument(Value):
    """How to reach the Kubernetes API. ca: in PEM. token: good until `expires_at`."""

    server: str
    ca: str
    user: str
    token: str
    expires_at: str


class QuotaAsked(Value):
    """Other numbers for one line of a queue's quota. Amounts: `8`, `50%`, `none`."""

    queue: str
    pool: str | None = None
    model: str | None = None
    meter: str = "gpu"
    profile: str | None = None
    guaranteed: str | None = None
    limit: str | None = None
    borrow_limit: str | None = None
    lend_limit: str | None = None
    weight: int | None = None


class SiteText(Value):
    """A configuration file. dry_run: say what would change, and change nothing."""

    text: str
    dry_run: bool = False


class SiteChange(Value):
    """What a new configuration changes, line by line (`+`, `-`, `~`), and what to think of."""

    changes: tuple[str, ...]
    applied: bool
    cautions: tuple[str, ...] = ()


class MovedDocument(Value):
    """A job that waits: when it would start as things are, and after the change."""

    job: int
    before: str
    after: str


class RehearsalDocument(Value):
    """What would become of jobs if something were different: the same planner, nothing done.

    starts: jobs that would start now and do not; waits: jobs that would wait and now start;
    preempted: jobs that would have to make room.
    start: `expected_start` of a job that would wait, as a range.
    moved: jobs that wait and would start at another time.
    alternatives: what a job that would wait could ask for to start sooner.
    """

    text: str
    starts: tuple[int, ...]
    waits: tuple[int, ...]
    preempted: tuple[int, ...]
    explanation: str | None = None
    expected_start: str | None = None
    start: StartDocument | None = None
    moved: tuple[MovedDocument, ...] = ()
    alternatives: tuple[AlternativeDocument, ...] = ()


class DatesHeldDocument(Value):
    """How many dates held that jobs of one class in one queue were told.

    told: how many of those that started in the last week were told one; held: how many of these
    started in its range.
    """

    queue: str
    job_class: str
    told: int
    held: int


class StatusDocument(Value):
    """The installation at a glance. last_event: the newest number in the log of events.

    dates_told, dates_held: of the jobs that started in the last week, how many were told a date
    before, and how many of these started in its range. dates: the same by queue and class, those
    with the most dates first.
    """

    version: str
    leading: bool
    store: str
    last_event: int
    jobs: Mapping[str, int]
    nodes: Mapping[str, int]
    gpus: int
    gpus_used: float
    pretend: bool
    plan_ms: int
    planned_at: str | None
    problems: tuple[str, ...]
    dates_told: int = 0
    dates_held: int = 0
    dates: tuple[DatesHeldDocument, ...] = ()


class AuditDocument(Value):
    """Who changed what."""

    at: str
    user: str
    door: str
    action: str
    subject: str
    detail: str
    token: str | None = None


class EventDocument(Value):
    """A fact, with its place in the log. label: the job as lists show it, `12_3` in an array."""

    number: int
    kind: str
    at: str
    job: int | None
    text: str
    fact: Mapping[str, Any]
    label: str | None = None


class Problem(Value):
    """An error: `kind` is for programs, `text` says what to do, `where` points at the line."""

    kind: str
    text: str
    where: str | None = None
