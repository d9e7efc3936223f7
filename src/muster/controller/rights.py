"""Who may do what. Pure: a caller, the site's rules, and what it is about.

Three rights are kept apart: to see a job, to change it (`may_change`), and to be its user
(`owns`). Who looks after a queue sees and changes its jobs. What lets one act as their user takes
that user, or the machine's administrator: terminals, steps, scripts and variables.
"""

from collections.abc import Mapping

from muster.controller.messages import Caller
from muster.model.errors import ForbiddenError
from muster.model.forbidden import (
    CannotDeclinePreemption,
    CannotRaisePriority,
    CannotSubmit,
    CannotUseClass,
    LabelIsOurs,
    NeedsRole,
    NoRole,
    NotYourJob,
)
from muster.model.job import Job, JobSpec
from muster.model.queue import UNNAMED, is_private, is_within, lineage, usual_class
from muster.model.site import Grant, Role, Site
from muster.model.value import QueuePath, UserName

ORDER = (Role.VIEWER, Role.USER, Role.QUEUE_ADMIN, Role.ADMIN)

ANOTHER = UserName("another user")

OURS = "kubernetes/"
"""Labels that begin so are Muster's own."""


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
    return any(
        _rank(grant.role) >= _rank(role)
        and (grant.queue is None or (queue is not None and is_within(queue, grant.queue)))
        for grant in grants_of(caller, site)
    )


def demand_anywhere(caller: Caller, site: Site, role: Role) -> None:
    """Raise ForbiddenError unless the caller has the role in some queue: a first, quick look."""
    token = caller.token
    grants = grants_of(caller, site)
    is_less = token is not None and _rank(token.role) < _rank(role)
    if is_less or not any(_rank(grant.role) >= _rank(role) for grant in grants):
        raise ForbiddenError(NeedsRole(user=caller.user, role=role, queue=None, to="do this"))


def demand_viewer(caller: Caller, site: Site) -> None:
    """Raise ForbiddenError unless the caller may look at jobs, whoever they belong to."""
    # A token for one queue may look at everything that its user may look at.
    role = caller.token.role if caller.token is not None else Role.VIEWER
    if not grants_of(caller, site) or role not in Role:
        raise ForbiddenError(NoRole(user=caller.user))


def owns(caller: Caller, site: Site, job: Job) -> bool:
    """May the caller be this job's user: is it their own, within what a token allows?"""
    if caller.user != job.spec.user or caller.root:
        return caller.root
    return has_role(caller, site, Role.USER, job.spec.queue)


def may_change(caller: Caller, site: Site, job: Job) -> bool:
    return owns(caller, site, job) or has_role(caller, site, Role.QUEUE_ADMIN, job.spec.queue)


def sees_names(caller: Caller, site: Site, queue: QueuePath) -> bool:
    """Does the caller see whose the jobs of this queue are, and what they are called?

    In a private queue, what everyone is given does not count: only who is named there, by a role
    or among those who may submit.
    """
    if caller.root or not is_private(site.queues, queue):
        return True
    token = caller.token
    if token is not None and token.queue is not None and not is_within(queue, token.queue):
        return False
    members = _members(site, queue)
    user = site.users.get(caller.user)
    grants = () if user is None else user.grants
    return (
        caller.user in members
        or any(each.queue is None or is_within(queue, each.queue) for each in grants)
        or has_role(caller, site, Role.QUEUE_ADMIN, queue)
    )


def is_let_in(caller: Caller, site: Site, queue: QueuePath) -> bool:
    """Is the queue open to the caller: are they named there, or is everyone?

    Where a queue names who may submit, or hides its jobs, what everyone is given does not count.
    """
    user = site.users.get(caller.user)
    if caller.root or (user is not None and user.grants):
        return True
    members = _members(site, queue)
    return caller.user in members if members else not is_private(site.queues, queue)


def _members(site: Site, queue: QueuePath) -> tuple[UserName, ...]:
    """Those whom the queue, or the nearest above it that names any, names as its submitters."""
    above = (site.queues[path] for path in lineage(queue) if path in site.queues)
    return next((each.may_submit for each in above if each.may_submit), ())


def demand_change(caller: Caller, site: Site, job: Job) -> None:
    if not may_change(caller, site, job):
        raise ForbiddenError(not_yours(caller, site, job, f"change it, {caller.user} cannot"))


def demand_owner(caller: Caller, site: Site, job: Job, to: str) -> None:
    """Raise ForbiddenError unless the caller may act as the job's user."""
    if not owns(caller, site, job):
        rule = f"only they and the machine's administrator can {to}"
        raise ForbiddenError(
            NotYourJob(job=job.label, owner=_owner_seen(caller, site, job), rule=rule)
        )


def not_yours(caller: Caller, site: Site, job: Job, what: str) -> NotYourJob:
    """Who can do this to the job."""
    rule = f"they or a queue_admin of {job.spec.queue} can {what}"
    return NotYourJob(job=job.label, owner=_owner_seen(caller, site, job), rule=rule)


def _owner_seen(caller: Caller, site: Site, job: Job) -> UserName:
    """Whose job it is, for somebody who may know that."""
    is_seen = caller.user == job.spec.user or sees_names(caller, site, job.spec.queue)
    return job.spec.user if is_seen else ANOTHER


def demand_submission(caller: Caller, site: Site, queue: QueuePath) -> None:
    if not has_role(caller, site, Role.USER, queue):
        raise ForbiddenError(CannotSubmit(user=caller.user, queue=queue))


def demand_priority(caller: Caller, site: Site, wanted: JobSpec, before: Job | None) -> None:
    """It counts beside everybody's: one may put one's own jobs back, and not forward.

    What a job has already in its queue needs no right; in another queue it does.
    """
    is_kept = before is not None and before.spec.queue == wanted.queue
    usual = max(0, before.spec.priority) if before is not None and is_kept else 0
    if wanted.priority > usual and not has_role(caller, site, Role.QUEUE_ADMIN, wanted.queue):
        raise ForbiddenError(CannotRaisePriority(user=caller.user, queue=wanted.queue))


def demand_own_labels(wanted: JobSpec, before: Job | None) -> None:
    """Which pod a job is only the door knows that made it: nobody claims another's, or changes it.

    A spec that still has its containers, or its pods, comes from that door.
    """
    was: Mapping[str, str] = {} if before is None else before.spec.labels
    if wanted.launch.pod is not None or wanted.launch.adopts:
        return
    for name in sorted({*wanted.labels, *was}):
        if name.startswith(OURS) and wanted.labels.get(name) != was.get(name):
            raise ForbiddenError(LabelIsOurs(label=name))


def demand_class(caller: Caller, site: Site, wanted: JobSpec, before: Job | None) -> None:
    """A class may be more than one's share: it says who may ask for it, and may decline to leave.

    What a job has already in its queue and class needs no right, nor does what the queue gives to
    those who name nothing. What it had in another queue or class is not taken along.
    """
    usual = usual_class(site.queues, wanted.queue)
    name = usual if wanted.job_class == UNNAMED else wanted.job_class
    job_class = site.classes.get(name)
    if job_class is None or has_role(caller, site, Role.QUEUE_ADMIN, wanted.queue):
        return
    was = None if before is None else before.spec
    is_kept = was is not None and (was.queue, was.job_class) == (wanted.queue, name)
    is_given = name == usual or is_kept
    if not is_given and not job_class.lets_use(caller.user, wanted.queue, site.classes.get(usual)):
        raise ForbiddenError(CannotUseClass(user=caller.user, job_class=name, queue=wanted.queue))
    if wanted.preemptible or job_class.lets_decline(caller.user):
        return
    if was is None or was.preemptible or was.job_class != name:
        raise ForbiddenError(CannotDeclinePreemption(user=caller.user, job_class=name))


def demand(
    caller: Caller, site: Site, role: Role, queue: QueuePath | None = None, *, to: str
) -> None:
    """Raise ForbiddenError unless the caller has the role."""
    if not has_role(caller, site, role, queue):
        raise ForbiddenError(NeedsRole(user=caller.user, role=role, queue=queue, to=to))


def _rank(role: Role) -> int:
    return ORDER.index(role)
