"""Transactions: what the audit log holds of changed rules, in Slurm's words. Pure."""

import shlex
from collections.abc import Callable, Iterator

from muster.doors.slurm.managing.words import Assignment, meant, split
from muster.model.history import AuditEntry
from muster.model.value import Instant, Value

APPLY = "apply"
"""The action under which a change of the rules is noted, whatever door it came through."""

MOST = 1_000
_PAGE = 1_000
_MOST_PAGES = 50
_VERBS = {
    "add": "Add",
    "create": "Add",
    "modify": "Modify",
    "update": "Modify",
    "delete": "Remove",
    "remove": "Remove",
}
_ENTITIES = ("Accounts", "Coordinators", "QOS", "Users")
_ACTIONS = {
    "Add Coordinators": "Add Account Coord",
    "Remove Coordinators": "Remove Account Coords",
}

Page = Callable[[Instant | None, int], tuple[AuditEntry, ...]]


class Transaction(Value):
    """What was done to what."""

    at: Instant
    user: str
    action: str
    where: str
    detail: str


def transactions(page: Page) -> list[Transaction]:
    """The newest, oldest first. page: what is older than an instant, the newest first."""
    found = [_shown(entry) for entry in _changes(page)]
    return found[::-1]


def is_meant(action: str, wanted: str) -> bool:
    """`Add Accounts`, `addaccount`: with or without blanks, in any letters."""
    return _plain(action).startswith(_plain(wanted).rstrip("s"))


def _changes(page: Page) -> Iterator[AuditEntry]:
    """As many as are shown; most of the log is about jobs, so that it is read in pages."""
    left = MOST
    before: Instant | None = None
    for _ in range(_MOST_PAGES):
        entries = page(before, _PAGE)
        changes = [entry for entry in entries if entry.action == APPLY][:left]
        yield from changes
        left -= len(changes)
        if len(entries) < _PAGE or not left:
            return
        before = entries[-1].at


def _shown(entry: AuditEntry) -> Transaction:
    """By what was typed, where that was sacctmgr."""
    command, *words = _words(entry.detail) or [""]
    verb = _VERBS.get(words[0].lower()) if words else None
    entity = meant(words[1], _ENTITIES) if len(words) > 1 else None
    if command != "sacctmgr" or verb is None or entity is None:
        return _transaction(entry, "Modify Site", entry.subject, entry.detail)
    asked = split(words[2:])
    named = asked.where or asked.what
    where = [each.value or each.name for each in named if _is_name(each)]
    what = [each.text for each in named if not _is_name(each)]
    if verb == "Modify":
        what = [each.text for each in asked.what]
    action = f"{verb} {entity}"
    return _transaction(entry, _ACTIONS.get(action, action), " ".join(where), " ".join(what))


def _words(detail: str) -> list[str]:
    try:
        return shlex.split(detail)
    except ValueError:
        return detail.split()


def _transaction(entry: AuditEntry, action: str, where: str, detail: str) -> Transaction:
    return Transaction(at=entry.at, user=entry.user, action=action, where=where, detail=detail)


def _is_name(word: Assignment) -> bool:
    return not word.sign or meant(word.name, ("Names",)) is not None


def _plain(text: str) -> str:
    return text.replace(" ", "").lower()
