"""What to change about a job, as people write it."""

from collections.abc import Callable
from typing import Any

from muster.api.jobs import UpdateDocument
from muster.api.requests import TaskRequest
from muster.doors.request.bad import BadRequestError, bounded
from muster.doors.request.parse import (
    MOST_PRIORITY,
    group_wanted,
    instant_of,
    mail_wanted,
    time_limit_of,
)
from muster.model.gpu import GpuAsk
from muster.model.job import JobSpec
from muster.model.mail import Mail
from muster.model.value import ClassName, Instant, PoolName, QueuePath, replace
from muster.schedule.explain.alternatives import changed as with_change


def change_of(document: UpdateDocument, now: Instant) -> Callable[[JobSpec], JobSpec]:
    """What the update makes of a spec; read at once, so that a mistake is answered at once."""
    fields: dict[str, Any] = {
        "name": document.name,
        "queue": None if document.queue is None else QueuePath(document.queue),
        "job_class": None if document.job_class is None else ClassName(document.job_class),
        "priority": document.priority,
        "time_limit": time_limit_of(document.time),
        "begin_at": instant_of("begin", document.begin, now),
        "deadline": instant_of("deadline", document.deadline, now),
        "pools": None if document.pools is None else tuple(map(PoolName, document.pools)),
        "labels": document.labels,
    }
    others = {name: value for name, value in fields.items() if value is not None}
    mail, sized, other = _mail(document), _sized(document), document.alternative
    if not others and mail is None and sized is None and other is None:
        raise BadRequestError(
            "", "nothing to change is named; see `UpdateDocument` for what can be"
        )
    if document.priority is not None:
        bounded("priority", document.priority, -MOST_PRIORITY, MOST_PRIORITY)

    def changed(spec: JobSpec) -> JobSpec:
        wanted = spec if other is None else with_change(other, spec)
        wanted = wanted if sized is None else sized(wanted)
        return replace(wanted, **others, mail=spec.mail if mail is None else mail(spec.mail))

    return changed


def _sized(document: UpdateDocument) -> Callable[[JobSpec], JobSpec] | None:
    """Other amounts for the tasks, read as those of a submission are."""
    names = ("tasks", "gpus", "cpus", "memory")
    given = {name: value for name in names if (value := getattr(document, name)) is not None}
    if not given:
        return None
    new = group_wanted(TaskRequest(**given))

    def changed(spec: JobSpec) -> JobSpec:
        if len(spec.groups) != 1:
            raise BadRequestError(next(iter(given)), "the job has several groups; submit it again")
        group, each = spec.groups[0], new.each
        old = group.each
        gpus = old.gpus if "gpus" not in given else _gpus(old.gpus, each.gpus)
        amounts = replace(
            old,
            cpu_milli=each.cpu_milli if "cpus" in given else old.cpu_milli,
            memory_mib=each.memory_mib if "memory" in given else old.memory_mib,
            gpus=gpus,
        )
        count = new.count if "tasks" in given else group.count
        fewest = group.min_count if "tasks" not in given else None
        return replace(spec, groups=(replace(group, count=count, min_count=fewest, each=amounts),))

    return changed


def _gpus(old: GpuAsk | None, new: GpuAsk | None) -> GpuAsk | None:
    """So many of the same kind as before."""
    return new if old is None or new is None else replace(old, count=new.count)


def _mail(document: UpdateDocument) -> Callable[[Mail], Mail] | None:
    """When, whom, or both."""
    on, to = document.mail_on, document.mail_to
    if on is None and to is None:
        return None
    new = mail_wanted(on or (), to)

    def changed(old: Mail) -> Mail:
        kept = old if on is None else new
        return replace(kept, to=old.to if to is None else new.to)

    return changed
