"""What to change about a job, as people write it."""

from collections.abc import Callable
from typing import Any

from muster.api.jobs import UpdateDocument
from muster.doors.request.bad import BadRequestError, bounded
from muster.doors.request.parse import MOST_PRIORITY, instant_of, mail_wanted, time_limit_of
from muster.model.job import JobSpec
from muster.model.mail import Mail
from muster.model.value import ClassName, Instant, PoolName, QueuePath, replace


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
    mail = _mail(document)
    if not others and mail is None:
        raise BadRequestError(
            "", "nothing to change is named; see `UpdateDocument` for what can be"
        )
    if document.priority is not None:
        bounded("priority", document.priority, -MOST_PRIORITY, MOST_PRIORITY)

    def changed(spec: JobSpec) -> JobSpec:
        return replace(spec, **others, mail=spec.mail if mail is None else mail(spec.mail))

    return changed


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
