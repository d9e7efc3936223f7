"""Who belongs to which account: queues, users and their grants, as Slurm's associations. Pure."""

from collections.abc import Collection, Iterable

from muster.doors.slurm.words.errors import SlurmError
from muster.model.site import Role, Site
from muster.model.value import QueuePath, UserName, Value

ROOT = "root"
"""Slurm's name for the whole tree; a queue of that name stands for it, and is listed once."""

COORDINATING = frozenset({Role.QUEUE_ADMIN, Role.ADMIN})


class Association(Value):
    """A user in an account."""

    account: QueuePath
    user: UserName


def associations(site: Site) -> tuple[Association, ...]:
    """All users who are listed by name, in every account that names them or that they name."""
    found = [
        Association(account=account, user=user)
        for user in known_users(site)
        for account in accounts_of(site, user)
    ]
    return tuple(sorted(found, key=lambda each: (each.account, each.user)))


def known_users(site: Site) -> tuple[UserName, ...]:
    """Those whom the rules name."""
    listed = {user for queue in site.queues.values() for user in queue.may_submit}
    return tuple(sorted(listed | set(site.users)))


def accounts_of(site: Site, user: UserName) -> tuple[QueuePath, ...]:
    """Where a user belongs; users without an account use the default one."""
    named = named_accounts(site, user)
    if named:
        return named
    default = default_account(site, user)
    return (default,) if default in site.queues and site.everyone is not Role.VIEWER else ()


def named_accounts(site: Site, user: UserName) -> tuple[QueuePath, ...]:
    """By a grant, by a list of who may submit, or as the default."""
    known = site.users.get(user)
    found = {path for path, queue in site.queues.items() if user in queue.may_submit}
    if known is not None:
        granted = (each.queue for each in known.grants if each.role is not Role.VIEWER)
        found |= {path for path in granted if path is not None}
        if known.default_queue is not None:
            found.add(known.default_queue)
    return tuple(sorted(found))


def default_account(site: Site, user: UserName) -> QueuePath:
    known = site.users.get(user)
    theirs = None if known is None else known.default_queue
    return theirs or site.default_queue


def admin_level(site: Site, user: UserName) -> str:
    """`Administrator` for an admin of everything, `Operator` for a queue_admin of everything."""
    known = site.users.get(user)
    grants = known.grants if known is not None else ()
    roles = {each.role for each in grants if each.queue is None}
    if Role.ADMIN in roles or user == ROOT:
        return "Administrator"
    return "Operator" if Role.QUEUE_ADMIN in roles else "None"


def coordinated(site: Site, user: UserName) -> tuple[QueuePath, ...]:
    """The accounts that a user may divide among those below."""
    known = site.users.get(user)
    grants = known.grants if known is not None else ()
    led = {each.queue for each in grants if each.role in COORDINATING}
    return tuple(sorted(path for path in led if path is not None))


def coordinators(site: Site, account: QueuePath) -> tuple[UserName, ...]:
    return tuple(sorted(user for user in site.users if account in coordinated(site, user)))


def account_named(site: Site, name: str) -> QueuePath | None:
    """By its path, in any letters, or by its last part where only one queue has it."""
    return queue_named(site.queues, name)


def queue_named(queues: Collection[QueuePath], name: str) -> QueuePath | None:
    """Which of these is meant; SlurmError if it could be several."""
    exact = QueuePath(name.strip("/"))
    if exact in queues:
        return exact
    wanted = exact.lower()
    for path in sorted(queues):
        if path.lower() == wanted:
            return path
    near = [path for path in sorted(queues) if path.rpartition("/")[2].lower() == wanted]
    if len(near) > 1:
        several = ", ".join(near)
        raise SlurmError(f" Several accounts are called '{name}': {several}. Name one in full.")
    return near[0] if near else None


def accounts_named(site: Site, names: Iterable[str]) -> frozenset[QueuePath]:
    """Those that there are; what is no account is passed over, as Slurm does in its lists."""
    found = (account_named(site, name) for name in names)
    return frozenset(path for path in found if path is not None)
