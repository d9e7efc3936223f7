"""Documents about alerts and silences."""

from collections.abc import Mapping

from muster.model.value import Value


class AlertDocument(Value):
    """An alert. state: pending, firing or resolved. muted: why nobody is told, and by what."""

    name: str
    state: str
    severity: str
    since: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    value: float | None
    muted: str | None = None
    muted_by: str | None = None


class AlertPage(Value):
    """All alerts that may be seen. judged_at: None where another process leads and judges."""

    alerts: tuple[AlertDocument, ...]
    judged_at: str | None = None
    problems: tuple[str, ...] = ()


class SilenceDocument(Value):
    """A silence, with its tests as they are written: `alertname=GpuBroken`."""

    id: str
    tests: tuple[str, ...]
    begins_at: str
    ends_at: str
    by: str
    comment: str
    queue: str | None = None


class SilencePage(Value):
    """Silences that have not ended."""

    silences: tuple[SilenceDocument, ...]


class SilenceAsked(Value):
    """A silence that is wanted. lasts: such as `2h`. queue: only what is in it and below."""

    tests: tuple[str, ...]
    lasts: str
    comment: str
    queue: str | None = None
