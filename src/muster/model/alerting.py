"""Who is told of alerts, and which alerts nobody is told of for a while."""

from collections.abc import Mapping
from enum import StrEnum

from muster.model.value import HOUR, MINUTE, SECOND, Duration, Instant, QueuePath, UserName, Value


class ReceiverKind(StrEnum):
    """What a receiver understands."""

    WEBHOOK = "webhook"
    ALERTMANAGER = "alertmanager"
    SLACK = "slack"
    TEAMS = "teams"
    MAIL = "mail"
    COMMAND = "command"


OWNER = "owner"
"""The receiver that is the user of a job, by mail; no other may be called so."""


class Receiver(Value):
    """Somebody who is told.

    url_file: a file whose only line is the URL: it is a secret, and is never shown.
    to: whom mail goes to. command: a program with its arguments; it is given the JSON of a webhook.
    """

    name: str
    kind: ReceiverKind
    url_file: str = ""
    to: str = ""
    command: tuple[str, ...] = ()


class Severity(StrEnum):
    """How soon somebody must act: now, in these days, or only if they care."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class Route(Value):
    """Which alerts go to which receivers; what is empty fits every alert.

    queue: it and those below it. owner: the user of the alert's job is told by mail as well.
    """

    receivers: tuple[str, ...] = ()
    severities: tuple[Severity, ...] = ()
    alerts: tuple[str, ...] = ()
    queue: QueuePath | None = None
    owner: bool = False


class JobNews(StrEnum):
    """What happens to a job that somebody may want to be told of.

    FAILED: it ended, and neither well nor because somebody cancelled it. REQUEUED: its attempt is
    over, for another reason than that it made room, and it waits for the next.
    WAITS_LONG: it has waited for as long as the route says, and nobody holds it.
    """

    STARTED = "started"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PREEMPTED = "preempted"
    REQUEUED = "requeued"
    WAITS_LONG = "waits_long"
    MISSES_DEADLINE = "misses_deadline"


class JobRoute(Value):
    """What of which jobs is told to which receivers.

    users: only jobs of these; if empty, of all. queue: it and those below it.
    owner: the user of the job is told by mail as well. waits: for WAITS_LONG alone.
    """

    receivers: tuple[str, ...] = ()
    on: tuple[JobNews, ...] = (JobNews.FAILED,)
    queue: QueuePath | None = None
    users: tuple[UserName, ...] = ()
    owner: bool = False
    waits: Duration = Duration(4 * HOUR)


class Alerting(Value):
    """How alerts are told, and what happens to jobs.

    wait: how long a new group waits for others like it. changes: how soon a group that was told of
    is told of again when it changed. repeat: when it is told again although nothing changed.
    pretend: whether anybody is told of pretend devices.
    """

    receivers: Mapping[str, Receiver] = {}
    routes: tuple[Route, ...] = ()
    jobs: tuple[JobRoute, ...] = ()
    wait: Duration = Duration(30 * SECOND)
    changes: Duration = Duration(5 * MINUTE)
    repeat: Duration = Duration(4 * HOUR)
    rules: bool = True
    pretend: bool = False


class LabelTest(Value, gc=False):
    """`queue=acme`, `alertname=~Gpu.*`. operator: one of = != =~ !~."""

    name: str
    operator: str
    value: str


class Silence(Value):
    """Nobody is told of alerts that fulfil all of these tests, until it ends.

    queue: only those of this queue and below, where whoever made it may speak for no more.
    """

    id: str
    tests: tuple[LabelTest, ...]
    begins_at: Instant
    ends_at: Instant
    by: UserName
    comment: str
    queue: QueuePath | None = None

    def is_active(self, now: Instant) -> bool:
        return self.begins_at <= now < self.ends_at
