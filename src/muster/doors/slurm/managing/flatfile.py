"""Slurm's flat file of accounts and users, written; `conf.association_file` reads it. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from muster.doors.slurm.accounting.associations import (
    ROOT,
    admin_level,
    coordinated,
    known_users,
    named_accounts,
)
from muster.doors.slurm.managing.limits import limits_text
from muster.model.cluster import Node
from muster.model.queue import Queue
from muster.model.site import Site
from muster.model.value import NodeId, QueuePath, UserName

HEAD = """\
# A line for the cluster comes first:
# Cluster - 'name'
# Then accounts, each below a parent that was made before it; root is there already:
# Parent - 'root'
# Account - 'cs':Fairshare=399:GrpTRES=cpu=64,gres/gpu=8:GrpJobs=4:Description='cs'
# Parent - 'cs'
# Account - 'test':Fairshare=1
# Then the users of the parent that was named last:
# User - 'lipari':DefaultAccount='cs'
"""


def dumped(site: Site, cluster: str, nodes: Mapping[NodeId, Node]) -> list[str]:
    """The lines of the file, without its head."""
    return list(_Writing(site, cluster, nodes).lines())


def account_name(site: Site, path: QueuePath) -> str:
    """The last part of a queue's path, where that is enough to know it by."""
    last = path.rpartition("/")[2]
    alike = [each for each in site.queues if each.rpartition("/")[2] == last]
    return last if len(alike) == 1 and last != ROOT else path


NOWHERE = QueuePath("")


class _Place(NamedTuple):
    path: QueuePath | None
    name: str


class _Writing:
    def __init__(self, site: Site, cluster: str, nodes: Mapping[NodeId, Node]) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._site = site
        self._members: dict[QueuePath, list[UserName]] = {}
        for user in known_users(self._site):
            # Those who belong nowhere are listed with the whole, so that they are not forgotten.
            for account in named_accounts(self._site, user) or (NOWHERE,):
                self._members.setdefault(account, []).append(user)

    def lines(self) -> Iterator[str]:
        classes = ",".join(sorted(self._site.classes))
        yield f"Cluster - '{self._cluster}':Fairshare=1:QOS='{classes}'"
        yield from self._below(_Place(None, ROOT))

    def _below(self, place: _Place) -> Iterator[str]:
        queues = [
            queue
            for path, queue in sorted(self._site.queues.items())
            if path.rpartition("/")[0] == (place.path or "")
        ]
        users = self._members.get(place.path or NOWHERE, [])
        if queues or users:
            yield f"Parent - '{place.name}'"
        yield from (self._user(user) for user in users)
        yield from (self._account(queue) for queue in queues)
        for queue in queues:
            yield from self._below(_Place(queue.path, self._name(queue.path)))

    def _name(self, path: QueuePath) -> str:
        return account_name(self._site, path)

    def _account(self, queue: Queue) -> str:
        above = QueuePath(queue.path.rpartition("/")[0])
        name = self._name(queue.path)
        limits = limits_text(queue.quotas, self._nodes, convert=False)
        settings = (
            ("Description", f"'{name}'"),
            ("Organization", f"'{self._name(above) if above else name}'"),
            ("DefaultQOS", f"'{queue.default_class}'" if queue.default_class else None),
            ("Fairshare", queue.weight),
            ("GrpTRES", _quoted(limits) or None),
            ("GrpJobs", queue.max_jobs),
            ("GrpSubmitJobs", queue.max_submitted),
            ("MaxSubmitJobs", queue.max_submitted_per_user),
            ("Priority", queue.priority or None),
        )
        return f"Account - '{name}'{_joined(settings)}"

    def _user(self, user: UserName) -> str:
        level = admin_level(self._site, user)
        coordinates = ",".join(self._name(path) for path in coordinated(self._site, user))
        known = self._site.users.get(user)
        theirs = None if known is None else known.default_queue
        default = theirs or next(iter(named_accounts(self._site, user)), None)
        settings = (
            ("DefaultAccount", f"'{self._name(default)}'" if default else None),
            ("AdminLevel", f"'{level}'" if level != "None" else None),
            ("Coordinator", f"'{coordinates}'" if coordinates else None),
            ("Fairshare", 1),
            ("MaxSubmitJobs", None if known is None else known.max_submitted),
        )
        return f"User - '{user}'{_joined(settings)}"


def _quoted(text: str) -> str:
    return f"'{text}'" if ":" in text else text


def _joined(settings: Sequence[tuple[str, object]]) -> str:
    return "".join(f":{key}={value}" for key, value in settings if value is not None)
