"""What may still be changed about a job, and by whom."""

from collections.abc import Callable

import msgspec

from muster.controller.messages import Caller
from muster.controller.rights import demand, demand_change, demand_own_labels, demand_priority
from muster.controller.use_cases.audit import audit
from muster.controller.use_cases.submission import NodeKinds, Submission
from muster.controller.world.transaction import Transaction
from muster.lifecycle.form import wrong_address
from muster.lifecycle.sizes import too_large, unprintable
from muster.lifecycle.step import UNSTARTED
from muster.model.errors import ForbiddenError, RefusedError, UnknownError
from muster.model.event import JobUpdated
from muster.model.forbidden import HasStarted
from muster.model.job import Job, JobSpec
from muster.model.site import Role
from muster.model.value import JobId, replace

LONGEST_CHANGE = 200


def updated(
    caller: Caller,
    job_id: JobId,
    change: Callable[[JobSpec], JobSpec],
    at: tuple[NodeKinds, Transaction],
    *,
    patient: bool = False,
) -> Job:
    """The command: the job with its new request. patient: it may wait for other nodes."""
    kinds, transaction = at
    job = transaction.job(job_id)
    if job is None:
        raise UnknownError(f"there is no job {job_id} that could be changed; it may have ended")
    demand_change(caller, transaction.site, job)
    wanted = change(job.spec)
    if job.state in UNSTARTED:
        entry = Submission(
            caller=caller, spec=wanted, kinds=kinds, instead_of=job_id, patient=patient
        )
        wanted = entry.admitted(wanted, transaction).spec
    else:
        _demand_running(caller, job, wanted, transaction)
    transaction.apply(JobUpdated(at=transaction.now, job=job_id, spec=wanted, by=caller.user))
    audit(transaction, caller, "update", f"job {job.label}", _changed(job.spec, wanted))
    return transaction.job(job_id) or job


def _changed(before: JobSpec, after: JobSpec) -> str:
    """Which fields differ, from what to what; of long ones only that they do."""
    texts: list[str] = []
    for name in JobSpec.__struct_fields__:
        was, becomes = getattr(before, name), getattr(after, name)
        if was != becomes:
            text = f"{name}: {_plain(was)} -> {_plain(becomes)}"
            texts.append(text if len(text) <= LONGEST_CHANGE else name)
    return "; ".join(texts)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _demand_running(caller: Caller, job: Job, wanted: JobSpec, transaction: Transaction) -> None:
    """Of a running job only what its attempt does not depend on; more time takes a role."""
    if _without_what_is_open(wanted, job.spec) != job.spec:
        raise ForbiddenError(HasStarted(job=job.label, state=job.state))
    if refusal := wrong_address(wanted.mail) or too_large(wanted) or unprintable(wanted):
        raise RefusedError(refusal.reason, refusal.advice)
    demand_own_labels(wanted, job)
    demand_priority(caller, transaction.site, wanted, job)
    old, new = job.spec.time_limit, wanted.time_limit
    if old is not None and (new is None or new > old):
        demand(
            caller,
            transaction.site,
            Role.QUEUE_ADMIN,
            job.spec.queue,
            to=f"give running job {job.label} more time",
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
