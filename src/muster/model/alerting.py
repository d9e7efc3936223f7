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


class Alerting(Value):
    """How alerts are told.

    wait: how long a new group waits for others like it. changes: how soon a group that was told of
    is told of again when it changed. repeat: when it is told again although nothing changed.
    pretend: whether anybody is told of pretend devices.
    """

    receivers: Mapping[str, Receiver] = {}
    routes: tuple[Route, ...] = ()
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
