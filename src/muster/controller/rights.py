"""Who may do what. Pure: a caller, the site's rules, and what it is about."""

from collections.abc import Iterable

from muster.controller.messages import Caller
from muster.model.errors import ForbiddenError
from muster.model.forbidden import CannotRaisePriority, CannotSubmit, NeedsRole, NoRole, NotYourJob
from muster.model.job import Job, JobSpec
from muster.model.queue import is_within
from muster.model.site import Grant, Role, Site
from muster.model.value import QueuePath

ORDER = (Role.VIEWER, Role.USER, Role.QUEUE_ADMIN, Role.ADMIN)


def grants_of(caller: Caller, site: Site) -> tuple[Grant, ...]:
    """Everything that was granted, before a token makes less of it."""
    if caller.root:
        return (Grant(role=Role.ADMIN),)
    user = site.users.get(caller.user)
    if user is None or not user.grants:
        return (Grant(role=site.everyone),)
    return user.grants


def has_role(caller: Caller, site: Site, role: Role, queue: QueuePath | None = None) -> bool:
    """Has the caller this role, or a greater one: in the queue, or everywhere if none is named?"""
    token = caller.token
    if token is not None:
        in_reach = token.queue is None or (queue is not None and is_within(queue, token.queue))
        if _rank(token.role) < _rank(role) or not in_reach:
            return False
    return _granted(grants_of(caller, site), role, queue)


def demand_viewer(caller: Caller, site: Site) -> None:
    """Raise ForbiddenError unless the caller may look at jobs, whoever they belong to."""
    # A token for one queue may look at everything that its user may look at.
    role = caller.token.role if caller.token is not None else Role.VIEWER
    if not grants_of(caller, site) or role not in Role:
        raise ForbiddenError(NoRole(user=caller.user))


def owns(caller: Caller, site: Site, job: Job) -> bool:
    """Is it the caller's own job, within what a token allows?"""
    if caller.user != job.spec.user or caller.root:
        return caller.root
    return has_role(caller, site, Role.USER, job.spec.queue)


def may_change(caller: Caller, site: Site, job: Job) -> bool:
    return owns(caller, site, job) or has_role(caller, site, Role.QUEUE_ADMIN, job.spec.queue)


def demand_change(caller: Caller, site: Site, job: Job) -> None:
    if not may_change(caller, site, job):
        raise ForbiddenError(not_yours(job, f"change it, {caller.user} cannot"))


def not_yours(job: Job, what: str) -> NotYourJob:
    """Who can do this to the job."""
    rule = f"they or a queue_admin of {job.spec.queue} can {what}"
    return NotYourJob(job=job.id, owner=job.spec.user, rule=rule)


def demand_submission(caller: Caller, site: Site, queue: QueuePath) -> None:
    if not has_role(caller, site, Role.USER, queue):
        raise ForbiddenError(CannotSubmit(user=caller.user, queue=queue))


def demand_priority(caller: Caller, site: Site, wanted: JobSpec, before: Job | None) -> None:
    """It counts beside everybody's: one may put one's own jobs back, and not forward."""
    usual = 0 if before is None else max(0, before.spec.priority)
    if wanted.priority > usual and not has_role(caller, site, Role.QUEUE_ADMIN, wanted.queue):
        raise ForbiddenError(CannotRaisePriority(user=caller.user, queue=wanted.queue))


def demand(
    caller: Caller, site: Site, role: Role, queue: QueuePath | None = None, *, to: str
) -> None:
    """Raise ForbiddenError unless the caller has the role."""
    if not has_role(caller, site, role, queue):
        raise ForbiddenError(NeedsRole(user=caller.user, role=role, queue=queue, to=to))


def _granted(grants: Iterable[Grant], role: Role, queue: QueuePath | None) -> bool:
    return any(
        _rank(grant.role) >= _rank(role)
        and (grant.queue is None or (queue is not None and is_within(queue, grant.queue)))
        for grant in grants
    )


def _rank(role: Role) -> int:
    return ORDER.index(role)
