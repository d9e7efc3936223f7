"""Victims: who stops for whom, and whether they can."""

from collections import Counter
from collections.abc import Iterator

from muster.model.job import Job, JobState
from muster.model.value import Duration
from muster.schedule.verify.case import Case
from muster.schedule.verify.moments import mode_of
from muster.schedule.verify.violation import Violation


def preemptions_belong_to_clears(case: Case) -> Iterator[Violation]:
    """Each victim of a Clear has one Preempt for that job, each Preempt belongs to a Clear.

    Nobody is preempted twice.
    """
    if not case.preempts and not case.clears:
        return
    pairs = {(preempt.job, preempt.for_job) for preempt in case.preempts}
    named = {(victim, clear.job) for clear in case.clears for victim in clear.victims}
    for victim, job_id in sorted(named - pairs):
        text = f"It is a victim of job {job_id} and the plan does not preempt it."
        yield Violation(rule="preempt", subject=f"job {victim}", text=text)
    for victim, job_id in sorted(pairs - named):
        text = f"The plan preempts it for job {job_id}, which does not clear it away."
        yield Violation(rule="preempt", subject=f"job {victim}", text=text)
    for victim, times in sorted(Counter(preempt.job for preempt in case.preempts).items()):
        if times > 1:
            text = f"It is preempted {times} times."
            yield Violation(rule="preempt", subject=f"job {victim}", text=text)


def victims_make_room(case: Case) -> Iterator[Violation]:
    """Each victim has a placement on a node that the Clear uses."""
    allocations = case.snapshot.allocations
    for clear in case.clears:
        nodes = {placement.node for placement in clear.placements}
        for victim in clear.victims:
            allocation = allocations.get(victim)
            placements = () if allocation is None else allocation.placements
            if all(placement.node not in nodes for placement in placements):
                text = f"It is on none of the {len(nodes)} nodes that are cleared for {clear.job}."
                yield Violation(rule="victim", subject=f"job {victim}", text=text)


def victims_are_ready(case: Case) -> Iterator[Violation]:
    """A victim is STARTING or RUNNING, preemptible, has had its time, and stops in its own way."""
    for preempt in case.preempts:
        subject = f"job {preempt.job}"
        job = case.snapshot.jobs.get(preempt.job)
        if job is None:
            yield Violation(rule="victim", subject=subject, text="It does not exist.")
            continue
        for text in _reasons_to_stay(case, job):
            yield Violation(rule="victim", subject=subject, text=text)
        mode = mode_of(case.snapshot, job)
        if preempt.mode is not mode:
            text = f"It is to {preempt.mode}, and should {mode}."
            yield Violation(rule="mode", subject=subject, text=text)


def _reasons_to_stay(case: Case, job: Job) -> Iterator[str]:
    if job.state is not JobState.STARTING and job.state is not JobState.RUNNING:
        yield f"It is {job.state}, and cannot be stopped."
    if not job.spec.preemptible:
        yield "It asks not to be preempted."
    job_class = case.snapshot.classes.get(job.spec.job_class)
    if job_class is None:
        yield f"Its class {job.spec.job_class} does not exist."
        return
    if not job_class.preemptible:
        yield f"Its class {job_class.name} is not preemptible."
    min_run = max(job_class.min_run, case.plan.policy.preempt.min_run)
    ran = _ran(case, job)
    if ran < min_run:
        yield f"It has run for {ran} ms, of at least {min_run}."


def _ran(case: Case, job: Job) -> Duration:
    allocation = case.snapshot.allocations.get(job.id)
    if allocation is None or allocation.started_at is None:
        return Duration(0)
    return Duration(case.snapshot.now - allocation.started_at)
