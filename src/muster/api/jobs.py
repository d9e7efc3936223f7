"""Documents about jobs. Instants are RFC 3339 text, durations whole seconds, unless said.

What people write may be loose (`"16G"`, `"2h"`); what the server writes is always exact.
"""

from collections.abc import Mapping

from muster.model.explanation import Change
from muster.model.value import Value


class ReasonDocument(Value, gc=False):
    """Why a job is where it is: `kind` for programs (`no_room`, `exited`), `text` for people."""

    kind: str
    text: str


class ShareDocument(Value):
    """A GPU or a part of one. enforced: `hardware`, `driver` or `none`."""

    device: str
    slice: str | None
    enforced: str


class TaskDocument(Value):
    """Where one task is."""

    group: str
    index: int
    node: str
    pool: str
    cpus: float
    memory_mib: int
    gpus: float
    devices: tuple[ShareDocument, ...] = ()


class AttemptDocument(Value):
    """An attempt that is over."""

    number: int
    nodes: tuple[str, ...]
    started_at: str | None
    ended_at: str
    reason: ReasonDocument | None
    gpu_seconds: float
    lost_gpu_seconds: float
    checkpointed_at: str | None = None
    cpu_seconds: float | None = None
    max_memory_mib: int | None = None


class StartDocument(Value):
    """When a waiting job is expected to start: of ten such ranges, `of_ten` hold.

    middle: it is as likely to start before as after.
    after: jobs that must end first; some of them.
    newcomers: so many jobs that are not submitted yet may start before it.
    passing: jobs that wait as well, came later, and may start before it; some of them.
    """

    early: str
    middle: str
    late: str
    of_ten: int
    after: tuple[int, ...] = ()
    newcomers: int = 0
    passing: tuple[int, ...] = ()


class JobDocument(Value, gc=False):
    """A job, live or over.

    expected_start: when it should start, if it waits and that can be said.
    start: the same as a range, as soon as it was forecast.
    exit_code, signal: how its last attempt ended, if it ended by itself.
    gpu_seconds: what all its attempts have held so far.
    tasks, attempts, launch: only where one job was asked for; launch only for its owner.
    """

    id: int
    name: str
    user: str
    queue: str
    job_class: str
    state: str
    reason: ReasonDocument | None
    submitted_at: str
    started_at: str | None = None
    ended_at: str | None = None
    expected_start: str | None = None
    start: StartDocument | None = None
    time_limit: int | None = None
    attempt: int = 0
    exit_code: int | None = None
    signal: int | None = None
    task_count: int = 1
    cpus: float = 0
    memory_mib: int = 0
    gpus: float = 0
    nodes: tuple[str, ...] = ()
    cluster: str | None = None
    pretend: bool = False
    priority: int = 0
    array: int | None = None
    array_index: int | None = None
    labels: Mapping[str, str] = {}
    mail_on: tuple[str, ...] = ()
    mail_to: str | None = None
    checkpointed_at: str | None = None
    gpu_seconds: float = 0
    lost_gpu_seconds: float = 0
    tasks: tuple[TaskDocument, ...] = ()
    attempts: tuple[AttemptDocument, ...] = ()
    launch: "LaunchDocument | None" = None


class LaunchDocument(Value):
    """What the job runs, for its owner; who looks after its queue sees where it runs, not what."""

    command: tuple[str, ...]
    script: str | None
    image: str | None
    env: Mapping[str, str]
    workdir: str | None
    stdout: str | None
    stderr: str | None
    submit_line: str | None = None


class JobPage(Value):
    """Some jobs, and where the next page begins, if there is one."""

    jobs: tuple[JobDocument, ...]
    next: str | None = None


class JobLine(Value, array_like=True, gc=False):
    """A live job in one short line, for long lists: an array in this order.

    since: when it started or, before that, was submitted. where: its nodes, or why it has none.
    """

    id: int
    array: int | None
    array_index: int | None
    name: str
    user: str
    queue: str
    state: str
    since: str
    gpus: float
    where: str


class LinePage(Value):
    """Some lines, and where the next page begins, if there is one."""

    lines: tuple[JobLine, ...]
    next: str | None = None


class UpdateDocument(Value):
    """What to change about a job; the rest stays.

    Of a running job only its name, time, labels and mail change. mail_on: replaces all occasions.
    gpus, cpus, memory, tasks: of a job that has one group of tasks; the first three for each task.
    alternative: the `change` of one of those that an explanation names.
    """

    name: str | None = None
    queue: str | None = None
    job_class: str | None = None
    priority: int | None = None
    time: int | str | None = None
    begin: str | None = None
    deadline: str | None = None
    pools: tuple[str, ...] | None = None
    labels: Mapping[str, str] | None = None
    mail_on: tuple[str, ...] | None = None
    mail_to: str | None = None
    tasks: int | None = None
    gpus: int | None = None
    cpus: float | None = None
    memory: int | str | None = None
    alternative: Change | None = None


class ManyDocument(Value):
    """What became of each job that a request named: done, or why not."""

    done: tuple[int, ...] = ()
    failed: Mapping[str, str] = {}


class AlternativeDocument(Value):
    """What would help. change: what to send as `alternative` of an update, to have it so.

    A job that was only rehearsed is submitted with that change instead.
    """

    text: str
    starts_now: bool
    expected_start: str | None
    change: Change | None = None


class TurnDocument(Value):
    """What the turn of a waiting job is made of; of two jobs the one with more points goes first.

    own_first: its queue is within its guarantee, and goes before all that are not.
    """

    points: int
    own_first: bool
    job_class: int
    fair_share: int
    age: int
    queue: int
    size: int
    short: int
    service: int
    priority: int


class KnownTimeDocument(Value):
    """What is known of how long a waiting job will take, and what that decides.

    expected_s: as long as similar jobs did, which decides its place in line; nine of ten of them
    took no longer than `high_s`. samples: how many ended; like: which they are.
    limit_s: what it takes at most, by which room is promised; without one, what is expected counts.
    first_from: from then on it goes before all others.
    """

    text: str
    expected_s: int
    high_s: int
    samples: int
    like: str
    limit_s: int | None = None
    first_from: str | None = None


class ExplanationDocument(Value):
    """Why a job waits or where it goes, who is in its way, and what would help.

    turn: None for a job that does not wait for one.
    start: `expected_start` as a range, as soon as it was forecast.
    time: only for a job that waits, and for those who may see its name.
    """

    job: int
    state: str
    kind: str
    text: str
    blockers: tuple[int, ...]
    expected_start: str | None
    no_estimate: str | None
    alternatives: tuple[AlternativeDocument, ...]
    turn: TurnDocument | None = None
    start: StartDocument | None = None
    time: KnownTimeDocument | None = None
