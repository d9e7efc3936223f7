"""What accounting shows: every attempt of a job as a record of its own, and its steps below it."""

from collections.abc import Iterable, Sequence
from enum import IntEnum

from muster.controller.messages import JobView
from muster.doors.slurm.call import Door
from muster.doors.slurm.lists import jobs
from muster.doors.slurm.lists.components import parts, steps_in
from muster.doors.slurm.lists.filters import Launches
from muster.doors.slurm.lists.jobs import JobRow
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.words.states import LIVE, State
from muster.model.history import Attempt, Used
from muster.model.job import (
    FINAL,
    OOM_SIGNAL,
    Cancelled,
    EndReason,
    Job,
    JobState,
    exit_of,
)
from muster.model.steps import Step
from muster.model.value import Duration, Instant, JobId, replace

TERMINATED = 15
KILLED = 9


class RecordKind(IntEnum):
    """What a row is about."""

    JOB = 0
    BATCH = 1
    STEP = 2


class AcctJob:
    """One attempt of a job, or the job as it waits. `row` is the job as it was then.

    component: which part of a job that has several kinds of nodes; None for all others.
    cut: between which times it is shown, if not whole.
    """

    __slots__ = ("component", "cut", "row", "steps", "submitted_at")

    def __init__(self, row: JobRow, submitted_at: Instant, component: int | None = None) -> None:
        self.row = row
        self.submitted_at = submitted_at
        self.component = component
        self.steps: Sequence[Step] = ()
        self.cut: tuple[Instant, Instant] | None = None

    @property
    def job(self) -> Job:
        return self.row.job

    @property
    def eligible_at(self) -> Instant | None:
        """Since when it could have started; None while that is unknown."""
        state, wait = self.job.state, self.row.view.wait
        is_kept = state is JobState.PENDING and wait is not None and not wait.why.facts.eligible
        if is_kept or state is JobState.HELD:
            return None
        return max(self.submitted_at, self.job.begin_at or self.submitted_at)

    @property
    def started_at(self) -> Instant | None:
        return jobs.started_at(self.row)

    @property
    def ended_at(self) -> Instant | None:
        return self.row.view.ended_at

    @property
    def suspended(self) -> Duration:
        return jobs.suspended(self.row)

    @property
    def has_script(self) -> bool:
        """Is there a batch step? Jobs of srun and salloc have numbered steps alone."""
        is_first = not self.component
        return is_first and self.row.label("by") is None


class AcctRow:
    """A record, its script or one of its steps; the times may be cut to what was asked for."""

    __slots__ = ("ended_at", "kind", "record", "row", "started_at", "step")

    def __init__(self, record: AcctJob, kind: RecordKind, step: Step | None = None) -> None:
        self.record = record
        self.row = record.row
        self.kind = kind
        self.step = step
        self.started_at = record.started_at if step is None else step.began_at
        self.ended_at = record.ended_at if step is None else step.ended_at
        if record.cut is not None and self.started_at is not None:
            since, until = record.cut
            self.started_at = max(since, self.started_at)
            self.ended_at = min(until, self.ended_at or until)

    @property
    def name(self) -> str:
        """What stands behind the dot: `batch`, `0`; nothing for the job itself."""
        if self.kind is RecordKind.BATCH:
            return "batch"
        if self.step is None:
            return ""
        if self.record.component is None and self.step.parts:
            # In a job of one component, a step that has several is numbered itself.
            return f"{self.step.number}+{self.step.parts[0].component}"
        return str(self.step.number)

    @property
    def elapsed(self) -> Duration:
        if self.started_at is None:
            return Duration(0)
        until = self.ended_at or self.row.listing.now
        stood = 0 if self.step is not None else self.record.suspended
        return Duration(max(0, until - self.started_at - stood))

    @property
    def used(self) -> Used | None:
        """What its processes used, once it is over."""
        if self.step is not None:
            return self.step.used
        attempt = self.row.attempt
        return None if attempt is None else attempt.used


def acct_jobs(door: Door, listing: Listing, views: Sequence[JobView]) -> list[AcctJob]:
    """All records of these jobs, by job and attempt."""
    ids = tuple([view.job.id for view in views if view.job.attempt])
    attempts: dict[JobId, list[Attempt]] = {}
    for attempt in door.queries.history.attempts(door.caller, ids) if ids else ():
        attempts.setdefault(attempt.job, []).append(attempt)
    steps: dict[tuple[JobId, int], list[Step]] = {}
    for step in door.queries.history.steps(door.caller, ids) if ids else ():
        steps.setdefault((step.job, step.attempt), []).append(step)
    launch_of = Launches(door, [view.job for view in views]).of
    found: list[AcctJob] = []
    for view in views:
        for record in _of_job(view, listing, attempts.get(view.job.id, [])):
            record.row.launch_of = launch_of
            if steps:
                record.steps = steps.get((view.job.id, record.job.attempt), ())
            found += apart(record)
    return found


def apart(record: AcctJob) -> list[AcctJob]:
    """A record for each component, where a job has several."""
    rows = parts(record.row)
    if len(rows) == 1:
        record.steps = steps_in(record.steps, None)
        return [record]
    return [_of_component(record, row) for row in rows]


def rows_of_job(record: AcctJob) -> list[AcctRow]:
    """The record, its script, and its steps."""
    found = [AcctRow(record, RecordKind.JOB)]
    if record.started_at is not None and record.has_script:
        found.append(AcctRow(record, RecordKind.BATCH))
    found += [AcctRow(record, RecordKind.STEP, step) for step in record.steps]
    return found


def state_of_row(acct: AcctRow) -> State:
    """Where a row stands; whatever a signal ended was cancelled, says Slurm."""
    state = acct.row.state
    if acct.kind is RecordKind.JOB or (acct.ended_at is None and state in LIVE):
        return _LIVE_AS.get(state, state)
    code, signal = exit_of_row(acct)
    if signal == OOM_SIGNAL:
        return State.OUT_OF_MEMORY
    if signal:
        return State.CANCELLED
    return State.FAILED if code else State.COMPLETED


def exit_of_row(acct: AcctRow) -> tuple[int, int]:
    """The exit code, and the signal that ended it."""
    if acct.step is not None:
        return acct.step.code, acct.step.signal
    job = acct.row.job
    if job.state not in FINAL:
        return 0, 0
    return exit_of(job.why) or (0, TERMINATED if acct.kind is RecordKind.BATCH else 0)


def derived_exit(record: AcctJob) -> tuple[int, int]:
    """The worst that a step came to by itself: what was ended on request does not count."""
    ends = [
        (step.code, step.signal)
        for step in record.steps
        if step.ended_at is not None and step.signal not in {TERMINATED, KILLED}
    ]
    return max(ends, default=(0, 0))


def cancelled_by(record: AcctJob) -> str | None:
    """The user who ended it, if one did."""
    why = record.job.why
    return why.by if isinstance(why, Cancelled) and record.job.state in FINAL else None


def last_of_each(records: Iterable[AcctJob]) -> list[AcctJob]:
    """Of each job, or component of one, only its newest record."""
    newest: dict[tuple[JobId, int], AcctJob] = {}
    for record in records:
        newest[record.job.id, record.component or 0] = record
    return list(newest.values())


_LIVE_AS = {State.COMPLETING: State.RUNNING, State.CONFIGURING: State.PENDING}


def _of_job(view: JobView, listing: Listing, attempts: list[Attempt]) -> list[AcctJob]:
    """What happened to the job so far: each time it was requeued it was submitted again."""
    job = view.job
    submitted_at = job.submitted_at
    last: Attempt | None = None
    if view.ended_at is not None and attempts and attempts[-1].number == job.attempt:
        last = attempts[-1]
        attempts = attempts[:-1]
    found: list[AcctJob] = []
    for attempt in attempts:
        found.append(AcctJob(JobRow(_then(job, attempt), listing, attempt), submitted_at))
        submitted_at = attempt.ended_at
    found.append(AcctJob(JobRow(view, listing, last), submitted_at))
    return found


def _then(job: Job, attempt: Attempt) -> JobView:
    """The job as it was when this attempt ended."""
    why: EndReason | None = attempt.why
    was = replace(
        job, state=JobState.CANCELLED, why=why, attempt=attempt.number, not_before=None, claim=None
    )
    started_at = attempt.started_at or attempt.placed_at
    return JobView(job=was, started_at=started_at, ended_at=attempt.ended_at)


def _of_component(record: AcctJob, row: JobRow) -> AcctJob:
    made = AcctJob(row, record.submitted_at, row.component)
    made.steps = steps_in(record.steps, row.component)
    return made
