"""Lists as the server gives them, and the small documents that say what a request is about.

A list is always inside a document, so that it can say where its next page begins.
"""

from muster.api.requests import SubmitDocument
from muster.api.site import (
    AuditDocument,
    ClassDocument,
    EventDocument,
    NodeDocument,
    QueueDocument,
    QuotaAsked,
    TokenDocument,
    UserDocument,
)
from muster.model.value import Value


class JobFilter(Value):
    """Which jobs to list. Everything that is given must hold; a queue stands for its subtree.

    ended: look among the jobs that are over as well, those that ended last first.
    ended_from, ended_to: RFC 3339, or `now`. after: the `next` of the page before.
    """

    users: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()
    arrays: tuple[int, ...] = ()
    name: str | None = None
    ended: bool = False
    ended_from: str | None = None
    ended_to: str | None = None
    limit: int = 1_000
    after: str | None = None


class ActionDocument(Value):
    """The same for many jobs.

    action: `cancel`, `hold`, `release`, `requeue`, `suspend`, `resume` or `signal`.
    signal: which one to send, by name or number, where that is the action.
    """

    action: str
    ids: tuple[int, ...]
    signal: str | None = None


class SignalDocument(Value):
    """A signal by name or number: `USR1`, `SIGTERM`, `10`."""

    signal: str


class DrainDocument(Value):
    """Why a node shall take no new work."""

    reason: str = ""


class RehearsalAsked(Value):
    """What to suppose: exactly one of a submission, a whole configuration, a quota."""

    submit: SubmitDocument | None = None
    site: str | None = None
    quota: QuotaAsked | None = None


class NodePage(Value):
    """Some nodes, in the order of their names."""

    nodes: tuple[NodeDocument, ...]
    next: str | None = None


class QueuePage(Value):
    """All queues, in the order of their paths."""

    queues: tuple[QueueDocument, ...]


class ClassPage(Value):
    """All job classes, the highest priority first."""

    classes: tuple[ClassDocument, ...]


class UserPage(Value):
    """All users who are listed by name. everyone: the role of all others on this machine."""

    users: tuple[UserDocument, ...]
    everyone: str


class TokenPage(Value):
    """Tokens: your own, or all of them for administrators."""

    tokens: tuple[TokenDocument, ...]


class AuditPage(Value):
    """Who changed what, the newest first."""

    entries: tuple[AuditDocument, ...]
    next: str | None = None


class EventPage(Value):
    """Events in the order of the log. next: ask `after` this for those that follow."""

    events: tuple[EventDocument, ...]
    next: int
