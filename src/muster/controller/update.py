"""What may still be changed about a job, and by whom."""

from collections.abc import Callable

from muster.controller.asked import Caller
from muster.controller.entry import Entry, Kinds
from muster.controller.notes import note
from muster.controller.rights import demand, demand_change, demand_priority
from muster.controller.stage import Stage
from muster.lifecycle.form import wrong_address
from muster.lifecycle.step import UNSTARTED
from muster.model.errors import ForbiddenError, RefusedError, UnknownError
from muster.model.event import JobUpdated
from muster.model.job import Job, JobSpec
from muster.model.site import Role
from muster.model.value import JobId, replace


def updated(
    caller: Caller, job_id: JobId, change: Callable[[JobSpec], JobSpec], at: tuple[Kinds, Stage]
) -> Job:
    """The command: the job with its new request."""
    kinds, stage = at
    job = stage.job(job_id)
    if job is None:
        raise UnknownError(f"there is no job {job_id} that could be changed; it may have ended")
    demand_change(caller, stage.site, job)
    wanted = change(job.spec)
    if job.state in UNSTARTED:
        entry = Entry(caller=caller, spec=wanted, kinds=kinds, instead_of=job_id)
        wanted = entry.admitted(wanted, stage).spec
    else:
        _demand_running(caller, job, wanted, stage)
    stage.tell(JobUpdated(at=stage.now, job=job_id, spec=wanted, by=caller.user))
    note(stage, caller, "update", f"job {job_id}")
    return stage.job(job_id) or job


def _demand_running(caller: Caller, job: Job, wanted: JobSpec, stage: Stage) -> None:
    """Of a running job only what its attempt does not hang on; more time is not one's own."""
    if _without_what_is_open(wanted, job.spec) != job.spec:
        raise ForbiddenError(
            f"job {job.id} is {job.state}: only its name, labels, mail, time limit, priority, "
            "retries and the width of its array can change now; requeue it to change the rest"
        )
    if refusal := wrong_address(wanted.mail):
        raise RefusedError(refusal.reason, refusal.advice)
    demand_priority(caller, stage.site, wanted, job)
    old, new = job.spec.time_limit, wanted.time_limit
    if old is not None and (new is None or new > old):
        demand(
            caller,
            stage.site,
            Role.QUEUE_ADMIN,
            job.spec.queue,
            to=f"give running job {job.id} more time",
        )


def _without_what_is_open(wanted: JobSpec, spec: JobSpec) -> JobSpec:
    """The new request, with what can always be changed as it was."""
    part = wanted.array
    if part is not None and spec.array is not None:
        part = replace(part, at_once=spec.array.at_once)
    return replace(
        wanted,
        name=spec.name,
        labels=spec.labels,
        mail=spec.mail,
        time_limit=spec.time_limit,
        priority=spec.priority,
        retry=spec.retry,
        array=part,
    )
