"""Accounts: queues that are made, changed and removed by sacctmgr's words. Pure."""

from collections.abc import Callable, Sequence

from muster.controller.messages import JobQuery
from muster.doors.slurm.accounting.associations import ROOT, account_named
from muster.doors.slurm.managing.edit import (
    NO_CONDITIONS,
    NOTHING_DELETED,
    NOTHING_MODIFIED,
    NOTHING_NEW,
    Edit,
    EditFacts,
    Editing,
    demand_every_qos,
    demand_idle,
    demand_sound,
    name_of,
    refuse,
    warned,
)
from muster.doors.slurm.managing.limits import amounts, with_limits
from muster.doors.slurm.managing.members import without_accounts
from muster.doors.slurm.managing.words import Assignment, Words, meant, number, whole, word_of
from muster.doors.slurm.words.errors import SlurmError
from muster.model.queue import Queue, is_within
from muster.model.site import Site
from muster.model.value import ClassName, QueuePath, Value, replace

NAMES = ("Names", "Accounts", "Acct")
NOT_KEPT = ("Description", "Organization")
REFUSED = (
    "GrpCPUMins GrpCPURunMins GrpJobsAccrue GrpNodes GrpTRESMins GrpTRESRunMins GrpWall "
    "MaxCPUMinsPerJob MaxCPUsPerJob MaxJobs MaxJobsAccrue MaxNodesPerJob "
    "MaxTRESMinsPerJob MaxTRESPerJob MaxTRESPerNode MaxTRES MaxWallDurationPerJob "
    "MinPrioThreshold RawUsage"
).split()
HINTS = {
    "MaxJobs": "give a QOS MaxJobsPerUser, or the account GrpJobs",
    "MaxTRES": "give a QOS MaxTRESPerUser, or the account GrpTRES",
    "MaxWallDurationPerJob": "give a QOS MaxWall",
}


class AccountChange(Value):
    """Which accounts, below which, and what they are to be like."""

    names: tuple[str, ...] = ()
    parent: str = ROOT
    settings: tuple[Assignment, ...] = ()

    def demand_possible(self, site: Site) -> None:
        """Refuse what depends on the rules as a whole."""
        for word in self.settings:
            if _option(word) in QOS:
                demand_every_qos(site, word)


def adding(words: Words, around: EditFacts) -> Editing:
    """`add account nlp,vision parent=science fairshare=3`."""
    wish = _wish(words.what)
    if not wish.names:
        raise SlurmError(" Need name of account to add.")

    def edit(site: Site) -> Edit:
        wish.demand_possible(site)
        above = _parent(site, wish.parent, around)
        paths = [_path(above, name) for name in wish.names]
        new = [path for path in paths if path not in site.queues]
        if not new:
            return Edit(site=site, printed=(NOTHING_NEW,), code=1)
        made = {path: _set(Queue(path=path), wish.settings, around) for path in new}
        after = replace(site, queues={**site.queues, **made})
        demand_sound(after)
        notes = [" Adding Account(s)", *(f"  {path}" for path in new), *_described(wish)]
        notes += [" Associations"]
        notes += [f"  A = {path:<10} C = {around.cluster:<10}" for path in new]
        kept = [word for word in wish.settings if _option(word) in SETTERS]
        shown = [f"  {_option(word):<13} = {word.value}" for word in kept]
        if shown or wish.parent != ROOT:
            shown.append(f"  Parent        = {wish.parent}")
        notes += [" Settings", *shown] if shown else []
        return Edit(site=after, printed=tuple(notes), warned=_not_kept(wish))

    return edit


def modifying(words: Words, around: EditFacts) -> Editing:
    """`modify account science set fairshare=3`."""
    chosen, wish = _wish(words.where), _wish(words.what)
    if any(_option(word) == "Parent" for word in words.what):
        refuse("an account that exists", "Parent", "delete it and add it below its new parent")
    if not (wish.settings or _not_kept(wish)):
        raise SlurmError(" You didn't give me anything to set")

    def edit(site: Site) -> Edit:
        wish.demand_possible(site)
        found = [account_named(site, name) for name in chosen.names]
        paths = sorted({path for path in found if path is not None})
        if not paths:
            return Edit(site=site, printed=(NOTHING_MODIFIED,), code=1)
        made = {path: _set(site.queues[path], wish.settings, around) for path in paths}
        after = replace(site, queues={**site.queues, **made})
        demand_sound(after)
        notes = [" Modified account associations..."]
        notes += [f"  C = {around.cluster:<10} A = {path} of {_above(path)}" for path in paths]
        return Edit(site=after, printed=tuple(notes), warned=_not_kept(wish))

    return edit


def deleting(words: Words, around: EditFacts) -> Editing:
    """`delete account science`: with all accounts below it."""
    chosen = _wish(words.where)
    if not chosen.names:
        raise SlurmError(NO_CONDITIONS)
    if ROOT in chosen.names:
        raise SlurmError(
            " You are not allowed to remove the root account.", " Use remove cluster instead."
        )

    def edit(site: Site) -> Edit:
        found = [account_named(site, name) for name in chosen.names]
        named = sorted({path for path in found if path is not None})
        if not named:
            return Edit(site=site, printed=(NOTHING_DELETED,), code=1)
        gone = [path for path in sorted(site.queues) if any(is_within(path, top) for top in named)]
        demand_idle([job for job in around.jobs(JobQuery()) if job.spec.queue in gone], around)
        if site.default_queue in gone:
            text = f"sacctmgr: error: {site.default_queue} is where jobs go that name no account"
            raise SlurmError(f"{text}; name another default_queue first, with: muster apply")
        left = {path: queue for path, queue in site.queues.items() if path not in gone}
        after = without_accounts(replace(site, queues=left), frozenset(gone))
        demand_sound(after)
        return Edit(site=after, printed=(" Deleting accounts...", *(f"  {path}" for path in gone)))

    return edit


def settings_of(words: Sequence[Assignment], queue: Queue, around: EditFacts) -> Queue:
    """The queue, changed by the settings of a line in a file; what has no counterpart is left."""
    kept = tuple(word for word in words if meant(word.name, OPTIONS) in SETTERS)
    return _set(queue, kept, around)


def place_of(site: Site, parent: str, name: str, around: EditFacts) -> QueuePath:
    """The path of an account below its parent, which must be there."""
    return _path(_parent(site, parent, around), name)


def _wish(words: Sequence[Assignment]) -> AccountChange:
    names: list[str] = []
    parent, settings = ROOT, list[Assignment]()
    for word in words:
        option = _option(word)
        if not word.sign:
            names += [each for each in word.name.split(",") if each]
        elif option in NAMES:
            names += word.values
        elif option == "Parent":
            parent = word.value
        elif option != "Clusters":
            settings.append(word)
    return AccountChange(names=tuple(dict.fromkeys(names)), parent=parent, settings=tuple(settings))


def _option(word: Assignment) -> str:
    if not word.sign:
        return ""
    found = meant(word.name, OPTIONS)
    if found is None:
        raise SlurmError(
            f" Unknown option: {word.text}", " Use keyword 'where' to modify condition"
        )
    return found


def _set(queue: Queue, settings: tuple[Assignment, ...], around: EditFacts) -> Queue:
    for word in settings:
        option = _option(word)
        if option in REFUSED:
            refuse("an account", option, HINTS.get(option, ""))
        if option in SETTERS:
            queue = SETTERS[option](queue, word, around)
    return queue


def _parent(site: Site, name: str, around: EditFacts) -> QueuePath | None:
    if name.lower() == ROOT:
        return None
    path = account_named(site, name)
    if path is None:
        raise SlurmError(
            f" Parent account '{name}' doesn't exist on cluster {around.cluster}",
            "        Contact your admin to add this account.",
            " No associations created.",
        )
    return path


def _path(above: QueuePath | None, name: str) -> QueuePath:
    """A name may be a path already, of an account below its parent."""
    parts = [name_of(part) for part in name.strip("/").split("/")]
    path = QueuePath("/".join(parts))
    if above is None or is_within(path, above):
        return path
    return QueuePath(f"{above}/{path}")


def _above(path: QueuePath) -> str:
    return path.rpartition("/")[0] or ROOT


def _described(wish: AccountChange) -> list[str]:
    """As Slurm says it, although it is not kept."""
    given = {_option(word): word.value for word in wish.settings}
    return [
        " Settings",
        f"  Description     = {given.get('Description', 'Account Name')}",
        f"  Organization    = {given.get('Organization', 'Parent/Account Name')}",
    ]


def _not_kept(wish: AccountChange) -> tuple[str, ...]:
    return warned(option for word in wish.settings if (option := _option(word)) in NOT_KEPT)


def _fairshare(queue: Queue, word: Assignment, _: EditFacts) -> Queue:
    weight = number(word, "Fairshare") if word.value.lower() != "parent" else None
    if not weight:
        refuse("an account", f"Fairshare={word.value}", "a share is a number of 1 or more")
    return replace(queue, weight=weight)


def _priority(queue: Queue, word: Assignment, _: EditFacts) -> Queue:
    return replace(queue, priority=whole(word, "Priority"))


def _grp_jobs(queue: Queue, word: Assignment, _: EditFacts) -> Queue:
    return replace(queue, max_jobs=number(word, "GrpJobs"))


def _grp_submit(queue: Queue, word: Assignment, _: EditFacts) -> Queue:
    return replace(queue, max_submitted=number(word, "GrpSubmitJobs"))


def _max_submit(queue: Queue, word: Assignment, _: EditFacts) -> Queue:
    return replace(queue, max_submitted_per_user=number(word, "MaxSubmitJobs"))


def _grp_tres(queue: Queue, word: Assignment, around: EditFacts) -> Queue:
    notes = amounts(word, around.models)
    return replace(queue, quotas=with_limits(queue.quotas, notes, around.nodes))


def _grp_old(tres: str) -> "Setter":
    """The older spelling of one kind of TRES."""

    def set_it(queue: Queue, word: Assignment, around: EditFacts) -> Queue:
        return _grp_tres(queue, word_of(f"GrpTRES={tres}={word.value}"), around)

    return set_it


def _default_qos(queue: Queue, word: Assignment, _: EditFacts) -> Queue:
    name = None if word.value in {"", "-1"} else ClassName(word.value)
    return replace(queue, default_class=name)


Setter = Callable[[Queue, Assignment, EditFacts], Queue]
SETTERS: dict[str, Setter] = {
    "Fairshare": _fairshare,
    "Shares": _fairshare,
    "Priority": _priority,
    "GrpJobs": _grp_jobs,
    "GrpSubmitJobs": _grp_submit,
    "GrpTRES": _grp_tres,
    "MaxSubmitJobs": _max_submit,
    "GrpCPUs": _grp_old("cpu"),
    "GrpMemory": _grp_old("mem"),
    "DefaultQOS": _default_qos,
}
QOS = ("QosLevel", "QOS")
OPTIONS = (*NAMES, "Clusters", "Parent", *SETTERS, *QOS, *NOT_KEPT, *REFUSED)
