"""One decision for each waiting job, of the right kind."""

from collections import Counter
from collections.abc import Iterator

from muster.model.job import WAITING, HeldBy, Job, JobState
from muster.model.placement import Claim
from muster.model.plan import Clear
from muster.model.value import JobId
from muster.schedule.verify.additions import Addition, Kind
from muster.schedule.verify.case import Case
from muster.schedule.verify.violation import Violation


def names_the_snapshot(case: Case) -> Iterator[Violation]:
    """The plan names the snapshot's version."""
    made_for, version = case.plan.snapshot_version, case.snapshot.version
    if made_for != version:
        text = f"The plan was made for version {made_for}, and this is version {version}."
        yield Violation(rule="version", subject="plan", text=text)


def every_waiting_job_has_one_decision(case: Case) -> Iterator[Violation]:
    """Each waiting job (HELD, PENDING, SUSPENDED) has exactly one decision; no other has one."""
    jobs, waits = case.snapshot.jobs, case.plan.waits
    moves = Counter([move.job for move in case.plan.moves])
    asked = case.suspects
    if asked is None:
        asked = jobs.keys() | waits.keys() | moves.keys()
    for job_id in sorted(asked):
        job, wait = jobs.get(job_id), waits.get(job_id)
        is_waiting = job is not None and job.state in WAITING
        text = _miscounted(moves[job_id] + (wait is not None), is_waiting=is_waiting)
        if wait is not None and wait.job != job_id:
            text = f"The decision noted for it is about job {wait.job}."
        if text is not None:
            yield Violation(rule="one decision", subject=f"job {job_id}", text=text)


def decisions_suit_the_state(case: Case) -> Iterator[Violation]:
    """Start and Clear are for PENDING jobs, Resume for SUSPENDED ones that are not held."""
    for addition in case.additions:
        job = addition.job
        if _suits(addition):
            continue
        text = f"A {addition.kind} does not suit a job that is {_standing(job)}."
        yield Violation(rule="state", subject=f"job {job.id}", text=text)


def attempts_are_current(case: Case) -> Iterator[Violation]:
    """A Start's attempt is the next one; that of Resume and Resize is the job's."""
    for addition in case.additions:
        act, expected = addition.act, addition.job.attempt + (addition.kind is Kind.START)
        if not isinstance(act, Clear) and act.attempt != expected:
            text = f"It names attempt {act.attempt} instead of {expected}."
            yield Violation(rule="attempt", subject=f"job {act.job}", text=text)


def preempts_name_the_attempt(case: Case) -> Iterator[Violation]:
    """A Preempt's attempt is the job's."""
    for preempt in case.preempts:
        job = case.snapshot.jobs.get(preempt.job)
        if job is not None and preempt.attempt != job.attempt:
            text = f"It names attempt {preempt.attempt} instead of {job.attempt}."
            yield Violation(rule="attempt", subject=f"job {preempt.job}", text=text)


def claims_are_clear_before_the_start(case: Case) -> Iterator[Violation]:
    """A job does not start while a victim is stopping on a node that its claim uses."""
    for addition in case.additions:
        claim = addition.job.claim
        if addition.kind is not Kind.START or claim is None or claim.until <= case.snapshot.now:
            continue
        for victim in _still_stopping(case, claim):
            text = f"It starts while its victim, job {victim}, is still stopping."
            yield Violation(rule="claim", subject=f"job {addition.job.id}", text=text)


def queue_and_class_exist(case: Case) -> Iterator[Violation]:
    """The queue and the class of a job that starts or claims room exist."""
    queues, classes = case.snapshot.queues, case.snapshot.classes
    for addition in case.fresh:
        spec = addition.job.spec
        if spec.queue not in queues:
            text = f"Its queue {spec.queue} does not exist."
            yield Violation(rule="queue", subject=f"job {addition.job.id}", text=text)
        if spec.job_class not in classes:
            text = f"Its class {spec.job_class} does not exist."
            yield Violation(rule="class", subject=f"job {addition.job.id}", text=text)


def _miscounted(decisions: int, *, is_waiting: bool) -> str | None:
    if decisions > 1:
        return f"It has {decisions} decisions."
    if is_waiting and not decisions:
        return "It waits, and has no decision."
    if decisions and not is_waiting:
        return "It has a decision, and does not wait."
    return None


def _suits(addition: Addition) -> bool:
    job = addition.job
    match addition.kind:
        case Kind.START | Kind.CLEAR:
            return job.state is JobState.PENDING
        case Kind.RESUME:
            return job.state is JobState.SUSPENDED and not isinstance(job.why, HeldBy)
        case Kind.RESIZE:
            return job.state is JobState.RUNNING


def _standing(job: Job) -> str:
    return f"{job.state} and held by {job.why.user}" if isinstance(job.why, HeldBy) else job.state


def _still_stopping(case: Case, claim: Claim) -> Iterator[JobId]:
    """A victim that was requeued and runs again, or stops elsewhere, is no longer in the way."""
    jobs, allocations = case.snapshot.jobs, case.snapshot.allocations
    nodes = {placement.node for placement in claim.placements}
    for victim in claim.victims:
        job, allocation = jobs.get(victim), allocations.get(victim)
        if job is None or allocation is None or job.state is not JobState.STOPPING:
            continue
        if any(placement.node in nodes for placement in allocation.placements):
            yield victim
