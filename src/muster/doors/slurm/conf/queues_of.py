"""Accounts as queues, users as users, QOS as job classes. Pure."""

import re
from collections.abc import Iterable, Mapping

from muster.doors.slurm.conf.association_file import FlatFileEntry
from muster.doors.slurm.conf.found import Notes
from muster.doors.slurm.conf.policy_of import mode_of, span
from muster.doors.slurm.words import sizes
from muster.model.queue import Ceiling, JobClass, Meter, Queue, Quota, Scope
from muster.model.site import Grant, Role, User
from muster.model.value import ClassName, Duration, QueuePath, UserName, Value, replace

ROOT = "root"
NORMAL = ClassName("normal")
MILLI = 1_000

_ROLES = {"administrator": Role.ADMIN, "operator": Role.QUEUE_ADMIN, "admin": Role.ADMIN}
_OF_ACCOUNTS = frozenset(
    "fairshare grptres grpjobs grpsubmitjobs grpsubmit maxsubmitjobs maxsubmit description "
    "organization qos defaultqos defaultaccount adminlevel coordinator priority".split()
)
_SAID_OTHERWISE = {
    "maxwalldurationperjob": "a class's max_time bounds the time of a job",
    "maxwall": "a class's max_time bounds the time of a job",
    "grpwall": "the time of all jobs together is not bounded",
    "maxjobs": "jobs of one user are bounded by a class: per_user",
    "maxtresperjob": "what one job may ask is bounded by its queue's quota",
    "maxtres": "what one job may ask is bounded by its queue's quota",
    "grptresmins": "past use is not bounded, but counts for fair share",
}


class Accounts(Value):
    """The tree of queues, the users, and the names of classes that were spoken of."""

    queues: Mapping[QueuePath, Queue]
    users: Mapping[UserName, User]
    by_account: Mapping[str, QueuePath]
    classes: frozenset[str]


def accounts_of(entries: Iterable[FlatFileEntry], notes: Notes) -> Accounts:
    """What a dump says. Accounts below `root` are at the top."""
    given = tuple(entries)
    paths = _paths(given)
    queues = {
        paths[each.name]: _queue(each, paths[each.name], given, notes)
        for each in given
        if each.kind == "account" and each.name in paths
    }
    users = [each for each in given if each.kind == "user"]
    named = {word for each in given for word in _words(each.options.get("qos", ""))}
    return Accounts(
        queues=queues,
        users={
            UserName(name): _user(name, [each for each in users if each.name == name], paths, notes)
            for name in dict.fromkeys(each.name for each in users)
        },
        by_account=paths,
        classes=frozenset(named),
    )


def class_of(row: Mapping[str, str], usual: JobClass, notes: Notes) -> JobClass:
    """A row of `sacctmgr -P show qos`; names are in lower case."""
    name = row["name"]
    for field, value in row.items():
        if field not in _OF_QOS and value not in {"", "0", "1.000000"}:
            notes(f"QOS {name}", f"{field}={value} has no counterpart")
    return replace(
        usual,
        name=ClassName(name),
        priority=_number(row.get("priority")) or 0,
        preempts=tuple(map(ClassName, _words(row.get("preempt", "")))),
        preempt_mode=mode_of(row.get("preemptmode", "")) or usual.preempt_mode,
        grace=_time(row, "gracetime") or usual.grace,
        min_run=_time(row, "preemptexempttime") or Duration(0),
        max_time=_time(row, "maxwall"),
        per_user=_ceiling(row.get("maxtrespu", ""), row.get("maxjobspu"), name, notes),
        per_queue=_ceiling(row.get("maxtrespa", ""), row.get("maxjobspa"), name, notes),
    )


def rows_of(text: str) -> tuple[Mapping[str, str], ...]:
    """A table with `|` between its columns, as `sacctmgr -P` prints it."""
    head, *rest = [line for line in text.splitlines() if line.strip()]
    names = [name.strip().lower() for name in head.split("|")]
    return tuple(
        {name: cell.strip() for name, cell in zip(names, line.split("|"), strict=False) if name}
        for line in rest
    )


_OF_QOS = frozenset(
    "name priority gracetime preempt preemptmode preemptexempttime maxwall maxtrespu maxjobspu "
    "maxtrespa maxjobspa".split()
)


def _paths(entries: tuple[FlatFileEntry, ...]) -> dict[str, QueuePath]:
    """Each account's way down from the top."""
    parents = {
        each.name: each.parent for each in entries if each.kind == "account" and each.name != ROOT
    }
    return {name: QueuePath("/".join(_way(name, parents))) for name in parents}


def _way(name: str, parents: Mapping[str, str]) -> list[str]:
    way = [name]
    while (above := parents.get(way[0], ROOT)) != ROOT and above not in way:
        way.insert(0, above)
    return way


def _queue(
    entry: FlatFileEntry, path: QueuePath, entries: tuple[FlatFileEntry, ...], notes: Notes
) -> Queue:
    about = f"Account {entry.name}"
    options = entry.options
    _note_the_rest(about, options, notes)
    members = [each.name for each in entries if each.kind == "user" and each.parent == entry.name]
    allowed = _words(options.get("defaultqos", ""))
    return Queue(
        path=path,
        quotas=_quotas(options.get("grptres", ""), about, notes),
        weight=max(1, _number(options.get("fairshare")) or 1),
        max_jobs=_number(options.get("grpjobs")),
        max_submitted=_number(options.get("grpsubmitjobs") or options.get("grpsubmit")),
        max_submitted_per_user=_most_submitted(options),
        may_submit=tuple(map(UserName, dict.fromkeys(members))),
        default_class=ClassName(allowed[0]) if allowed else None,
    )


def _user(
    name: str, entries: list[FlatFileEntry], paths: Mapping[str, QueuePath], notes: Notes
) -> User:
    home = next((each.options["defaultaccount"] for each in entries if _has_home(each)), None)
    grants: list[Grant] = []
    for each in entries:
        _note_the_rest(f"User {name} in {each.parent}", each.options, notes)
        role = _ROLES.get(each.options.get("adminlevel", "none").lower())
        if role is not None:
            grants.append(Grant(role=role))
        led = [name for name in _words(each.options.get("coordinator", "")) if name in paths]
        grants.extend(Grant(role=Role.QUEUE_ADMIN, queue=paths[name]) for name in led)
    if not grants:
        grants.append(Grant(role=Role.USER))
    return User(
        name=UserName(name),
        grants=tuple(dict.fromkeys(grants)),
        default_queue=paths.get(home or "", None),
        max_submitted=next(filter(None, (_most_submitted(each.options) for each in entries)), None),
    )


def _most_submitted(options: Mapping[str, str]) -> int | None:
    return _number(options.get("maxsubmitjobs") or options.get("maxsubmit"))


def _has_home(entry: FlatFileEntry) -> bool:
    return bool(entry.options.get("defaultaccount"))


def _quotas(text: str, about: str, notes: Notes) -> tuple[Quota, ...]:
    """Slurm's group limits are ceilings: nothing is guaranteed by them."""
    found: list[Quota] = []
    for name, value in _tres(text, about, notes).items():
        found.append(Quota(scope=Scope(meter=Meter(name)), limit=value))
    return tuple(found)


def _ceiling(tres: str, jobs: str | None, about: str, notes: Notes) -> Ceiling:
    found = _tres(tres, f"QOS {about}", notes)
    return Ceiling(
        gpu_milli=found.get("gpu"),
        cpu_milli=found.get("cpu"),
        memory_mib=found.get("memory"),
        jobs=_number(jobs),
    )


def _tres(text: str, about: str, notes: Notes) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in _words(text):
        name, _, value = word.partition("=")
        if name == "mem" and (mib := sizes.memory_mib(value)) is not None:
            found["memory"] = mib
        elif name in {"cpu", "gres/gpu"} and value.isdecimal():
            found["cpu" if name == "cpu" else "gpu"] = int(value) * MILLI
        else:
            notes(about, f"{word} is not counted here")
    return found


def _time(row: Mapping[str, str], name: str) -> Duration | None:
    return span(row, name, Duration(0)) or None if row.get(name) else None


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"[0-9]{1,9}", text) else None


def _words(text: str) -> list[str]:
    return [word.lstrip("+-") for word in text.split(",") if word.strip("+- ")]


def _note_the_rest(about: str, options: Mapping[str, str], notes: Notes) -> None:
    if options.get("fairshare", "").lower() == "parent":
        notes(about, "Fairshare=parent: it has a share of its own, of 1")
    for name in sorted(options.keys() - _OF_ACCOUNTS):
        if options[name] not in {"", "-1"}:
            notes(about, f"{name}={options[name]}: {_SAID_OTHERWISE.get(name, 'no counterpart')}")
