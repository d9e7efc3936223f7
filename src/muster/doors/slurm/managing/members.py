"""Putting people into accounts and taking them out: grants, defaults, who may submit. Pure."""

from collections.abc import Callable

from muster.doors.slurm.words.errors import SlurmError
from muster.model.queue import Queue, lineage
from muster.model.site import Grant, Role, Site, User
from muster.model.value import QueuePath, UserName, replace

KEPT_OUT = Grant(role=Role.VIEWER)
"""Of a user whose last account was removed: without a grant they would have everyone's rights."""


def joined(site: Site, name: UserName, account: QueuePath) -> Site:
    """The site in which a user belongs to an account; the first one is the default."""
    user = site.users.get(name, User(name=name))
    grant = Grant(role=Role.USER, queue=account)
    grants = tuple(each for each in user.grants if each != KEPT_OUT)
    if grant not in grants:
        grants = (*grants, grant)
    user = replace(user, grants=grants, default_queue=user.default_queue or account)
    return _let_in(replace(site, users={**site.users, name: user}), name, account)


def left(site: Site, name: UserName, account: QueuePath) -> Site:
    """The site in which a user does not belong to the account any more."""
    site = _shut_out(site, name, account)
    user = site.users.get(name)
    if user is None:
        return site
    grants = tuple(each for each in user.grants if each.queue != account)
    default = None if user.default_queue == account else user.default_queue
    kept = replace(user, grants=grants or (KEPT_OUT,), default_queue=default)
    return replace(site, users={**site.users, name: kept})


def forgotten(site: Site, name: UserName) -> Site:
    """The site that does not list the user."""
    for account in [path for path, queue in site.queues.items() if name in queue.may_submit]:
        site = _shut_out(site, name, account)
    others = {each: user for each, user in site.users.items() if each != name}
    return replace(site, users=others)


def without_accounts(site: Site, gone: frozenset[QueuePath]) -> Site:
    """The site in which no user belongs to these accounts."""
    users: dict[UserName, User] = {}
    for name, user in site.users.items():
        grants = tuple(each for each in user.grants if each.queue not in gone)
        if user.grants and not grants:
            grants = (KEPT_OUT,)
        default = None if user.default_queue in gone else user.default_queue
        users[name] = replace(user, grants=grants, default_queue=default)
    return replace(site, users=users)


def with_grants(
    site: Site, name: UserName, change: Callable[[tuple[Grant, ...]], tuple[Grant, ...]]
) -> Site:
    """The site in which a user has other grants."""
    user = site.users.get(name, User(name=name))
    return replace(site, users={**site.users, name: replace(user, grants=change(user.grants))})


def _let_in(site: Site, name: UserName, account: QueuePath) -> Site:
    """Where there is a list of who may submit, the name comes onto it."""
    above = (site.queues[path] for path in lineage(account) if path in site.queues)
    allowed = next((queue.may_submit for queue in above if queue.may_submit), ())
    if not allowed or name in allowed:
        return site
    return _with_list(site, site.queues[account], (*allowed, name))


def _shut_out(site: Site, name: UserName, account: QueuePath) -> Site:
    queue = site.queues.get(account)
    if queue is None or name not in queue.may_submit:
        return site
    others = tuple(each for each in queue.may_submit if each != name)
    if not others:
        text = f"sacctmgr: error: {name} is the only one who may submit to {account}"
        raise SlurmError(f"{text}; without {name} it would be open to more. Delete the account.")
    return _with_list(site, queue, others)


def _with_list(site: Site, queue: Queue, names: tuple[UserName, ...]) -> Site:
    changed = replace(queue, may_submit=names)
    return replace(site, queues={**site.queues, queue.path: changed})
