"""`sacctmgr load`: the rules as a flat file has them. Pure."""

from collections.abc import Iterable

from muster.controller.messages import JobQuery
from muster.doors.config.diff import changes
from muster.doors.slurm.accounting.associations import (
    ROOT,
    account_named,
    known_users,
    named_accounts,
)
from muster.doors.slurm.conf.association_file import FlatFileEntry, entries_of
from muster.doors.slurm.managing.accounts import SETTERS, place_of, settings_of
from muster.doors.slurm.managing.edit import (
    NOTHING_NEW,
    Edit,
    EditFacts,
    Editing,
    demand_idle,
    demand_sound,
    user_named,
)
from muster.doors.slurm.managing.members import forgotten, joined, with_grants, without_accounts
from muster.doors.slurm.managing.users import (
    coordinator_of,
    level_named,
    levelled,
    with_most_submitted,
)
from muster.doors.slurm.managing.words import EQUALS, Assignment, meant
from muster.doors.slurm.words.errors import SlurmError
from muster.model.queue import Queue
from muster.model.site import Site
from muster.model.value import QueuePath, UserName, replace

CLUSTER, ACCOUNT, USER = "cluster", "account", "user"

SILENT = ("Description", "Organization", "Fairshare", "QOS", "DefaultWCKey")
"""What every dump has; that it is as everywhere needs no words."""

OF_USERS = ("DefaultAccount", "AdminLevel", "Coordinator", "MaxSubmitJobs")


def loading(text: str, around: EditFacts, *, clean: bool) -> Editing:
    """Add and change what the file has; with `clean`, what it has not is removed."""
    lines = tuple(entries_of(text))
    if not lines or lines[0].kind != CLUSTER:
        raise SlurmError(" You need to specify a cluster name first in your file.")

    def edit(site: Site) -> Edit:
        after = _loaded(site, lines, around)
        if clean:
            after = _cleaned(after, _kept(after, lines), around)
        demand_sound(after)
        head = f"For cluster {around.cluster}"
        if after == site:
            return Edit(site=site, printed=(head, NOTHING_NEW), code=0)
        given = (head, *changes(site, after))
        return Edit(site=after, printed=given, warned=tuple(_lost(lines)))

    return edit


def _loaded(site: Site, lines: Iterable[FlatFileEntry], around: EditFacts) -> Site:
    for line in lines:
        if line.kind == ACCOUNT and line.name != ROOT:
            path = place_of(site, line.parent, line.name, around)
            queue = settings_of(_words(line), site.queues.get(path, Queue(path=path)), around)
            site = replace(site, queues={**site.queues, path: queue})
    for line in lines:
        if line.kind == USER and line.name != ROOT:
            site = _with_user(site, line)
    return site


def _with_user(site: Site, line: FlatFileEntry) -> Site:
    user = UserName(user_named(line.name))
    account = account_named(site, line.parent)
    if account is not None and account not in named_accounts(site, user):
        site = joined(site, user, account)
    if account is None and user not in known_users(site):
        site = with_grants(site, user, lambda grants: grants)
    for word in _words(line):
        site = _with_setting(site, user, word)
    return site


def _with_setting(site: Site, user: UserName, word: Assignment) -> Site:
    option = meant(word.name, OF_USERS)
    if option == "MaxSubmitJobs":
        return with_most_submitted(site, user, word)
    if option == "AdminLevel":
        return levelled(site, user, level_named(word.value))
    if option == "Coordinator":
        for name in word.values:
            path = account_named(site, name)
            site = site if path is None else coordinator_of(site, user, path)
        return site
    path = account_named(site, word.value) if option == "DefaultAccount" else None
    known = site.users.get(user)
    if path is None or known is None:
        return site
    return replace(site, users={**site.users, user: replace(known, default_queue=path)})


def _kept(site: Site, lines: Iterable[FlatFileEntry]) -> tuple[set[QueuePath], set[str]]:
    paths: set[QueuePath] = set()
    for line in lines:
        if line.kind != ACCOUNT:
            continue
        path = account_named(site, f"{line.parent}/{line.name}") or account_named(site, line.name)
        paths |= set() if path is None else {path}
    return paths, {line.name for line in lines if line.kind == USER}


def _cleaned(site: Site, kept: tuple[set[QueuePath], set[str]], around: EditFacts) -> Site:
    paths, users = kept
    gone = frozenset(site.queues) - paths
    if site.default_queue in gone:
        text = f"sacctmgr: error: the file has no account {site.default_queue}"
        raise SlurmError(f"{text}, where jobs go that name none; add it, or load without clean")
    demand_idle([job for job in around.jobs(JobQuery()) if job.spec.queue in gone], around)
    left = {path: queue for path, queue in site.queues.items() if path not in gone}
    site = without_accounts(replace(site, queues=left), gone)
    for user in [each for each in known_users(site) if each not in users]:
        site = forgotten(site, user)
    return site


def _lost(lines: Iterable[FlatFileEntry]) -> Iterable[str]:
    """What a line says and Muster cannot keep."""
    for line in lines:
        kept = OF_USERS if line.kind == USER else tuple(SETTERS)
        for word in _words(line):
            is_known = meant(word.name, (*kept, *SILENT)) is not None
            is_share = line.kind == USER and meant(word.name, ("Fairshare",)) is not None
            if line.kind == CLUSTER or (is_known and not (is_share and word.value != "1")):
                continue
            what = f"{word.name} of {line.kind} {line.name}"
            yield f"sacctmgr: warning: {what} is not kept by Muster"


def _words(line: FlatFileEntry) -> tuple[Assignment, ...]:
    return tuple(
        Assignment(name=name, sign=EQUALS, value=text) for name, text in line.options.items()
    )
