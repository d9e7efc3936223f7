"""Documents of why jobs are slow, and of what became of GPUs.

Money is in whole micro-units of the currency of the pools' prices; parts of 1 are thousandths.
"""

from collections.abc import Mapping

from muster.model.value import Value


class FixDocument(Value):
    """One thing to change. flag: as it is written at the door that the job came through."""

    text: str
    flag: str = ""
    cause: str | None = None


class FindingDocument(Value):
    """One cause that cost a job something, with what was measured while it held.

    missing: signals that would have told more.
    """

    job: int
    attempt: int
    user: str
    queue: str
    cause: str
    text: str
    confidence: str
    since: str
    until: str
    gpu_seconds: int
    wasted_micros: int
    micros_per_hour: int
    wasted_gpu_milli: int
    devices: tuple[str, ...] = ()
    evidence_milli: Mapping[str, int] = {}
    missing: tuple[str, ...] = ()


class CauseDocument(Value):
    """What one cause took; all of them together are what the attempt held."""

    cause: str
    text: str
    gpu_seconds: int
    wasted_micros: int


class DeviceUseDocument(Value):
    """What one GPU, or the attempt's part of it, did."""

    id: str
    node: str
    gpu_milli: int
    index: int | None = None
    means_milli: Mapping[str, int] = {}
    memory_bytes: int | None = None
    memory_peak_bytes: int | None = None
    energy_mj: int | None = None


class NodeUseDocument(Value):
    """What the attempt's processes on one node used, and what they were granted."""

    node: str
    cpu_granted_milli: int | None = None
    cpu_used_ms: int | None = None
    memory_peak_bytes: int | None = None
    memory_granted_bytes: int | None = None


class EndingDocument(Value):
    """Why an attempt did not end well. line: what it wrote that says so."""

    what: str
    text: str
    line: str = ""


class AmountDocument(Value):
    """One thing of which less would have done, and the flag that asks for that."""

    what: str
    asked: str
    used: str
    flag: str


class InterruptionsDocument(Value):
    """How often a job made room or lost a node, what that cost, and how often it should save."""

    times: int
    by: Mapping[str, int]
    lost_gpu_seconds: int
    recovery_seconds: int | None = None
    saved_every_seconds: int | None = None
    best_every_seconds: int | None = None


class HappenedDocument(Value):
    """Something that happened to a job, in one sentence."""

    at: str
    kind: str
    text: str


class TimelineDocument(Value):
    """One attempt on one axis, in columns: value n is of the n-th step after `start`.

    values: hundredths of a whole, and degrees for `temperature`; null where nothing was measured.
    log: the last lines that it wrote.
    """

    job: int
    attempt: int
    start: str | None
    step_seconds: int
    causes: tuple[str | None, ...] = ()
    values: Mapping[str, tuple[int | None, ...]] = {}
    events: tuple[HappenedDocument, ...] = ()
    log: tuple[str, ...] = ()
    ending: EndingDocument | None = None


class EfficiencyDocument(Value):
    """One attempt: what it held, what became of it, and why.

    cause: what is said of it first; null until a minute is over. request: where less would have
    done. interruptions: of the whole job.
    """

    job: int
    attempt: int
    user: str
    queue: str
    pool: str
    since: str
    until: str
    is_over: bool
    cause: str | None
    text: str
    confidence: str
    gpu_seconds: int
    cost_micros: int
    wasted_micros: int
    means_milli: Mapping[str, int] = {}
    causes: tuple[CauseDocument, ...] = ()
    findings: tuple[FindingDocument, ...] = ()
    devices: tuple[DeviceUseDocument, ...] = ()
    nodes: tuple[NodeUseDocument, ...] = ()
    fixes: tuple[FixDocument, ...] = ()
    ending: EndingDocument | None = None
    request: tuple[AmountDocument, ...] = ()
    interruptions: InterruptionsDocument | None = None


class FindingPage(Value):
    """Findings of jobs that run, the dearest first."""

    findings: tuple[FindingDocument, ...]


class UseDocument(Value):
    """One row of what became of GPUs' time: the columns that it was asked by.

    user: empty where nobody held it, and where the caller may not see whose it was.
    """

    gpu_seconds: int
    cost_micros: int
    pool: str | None = None
    queue: str | None = None
    user: str | None = None
    use: str | None = None
    cause: str | None = None


class ChangeDocument(Value):
    """One of the dearest rows of the fleet, what to change, and what a rehearsal says of that.

    what: why nobody held it, or the cause. wasted_*: what bought nothing. jobs, users, queues:
    those of whom most is. rehearsed: in one sentence, empty where nothing can be rehearsed.
    gained_*: what jobs would have more within a day from now, or less, if below zero.
    sooner_seconds: how much less they would wait, all together.
    """

    pool: str
    use: str
    what: str
    text: str
    wasted_gpu_seconds: int
    wasted_micros: int
    jobs: tuple[int, ...] = ()
    users: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    rehearsed: str = ""
    gained_gpu_seconds: int | None = None
    gained_micros: int | None = None
    sooner_seconds: int | None = None


class FleetDocument(Value):
    """What became of every second of every GPU, and the attempts that wasted most.

    rows sum to all there was, in seconds and in money. changes: for the dearest of them, where it
    was asked for.
    """

    rows: tuple[UseDocument, ...]
    jobs: tuple[EfficiencyDocument, ...] = ()
    changes: tuple[ChangeDocument, ...] = ()
