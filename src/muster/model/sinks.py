"""Where logs, the output of jobs and metrics are sent besides being kept here."""

from enum import StrEnum

from muster.model.value import QueuePath, Value


class SinkKind(StrEnum):
    """What a sink understands."""

    LOKI = "loki"
    OTLP = "otlp"
    DOGSTATSD = "dogstatsd"


class Sent(StrEnum):
    """What a sink is sent: Muster's own log, what jobs write, or metrics."""

    LOG = "log"
    OUTPUT = "output"
    METRICS = "metrics"


class Sink(Value):
    """A server of others that takes what we send.

    headers_file: a file with lines of HTTP headers (`Authorization: Bearer ...`): a secret, which
    is never shown. queue: only of this queue and those below it; None is all but the output of jobs
    of private queues. metrics: which ones, by name; if empty, a usual choice of the kind.
    """

    name: str
    kind: SinkKind
    url: str = ""
    sends: tuple[Sent, ...] = (Sent.LOG,)
    headers_file: str = ""
    queue: QueuePath | None = None
    metrics: tuple[str, ...] = ()


UNDERSTOOD = {
    SinkKind.LOKI: frozenset({Sent.LOG, Sent.OUTPUT}),
    SinkKind.OTLP: frozenset(Sent),
    SinkKind.DOGSTATSD: frozenset({Sent.METRICS}),
}
"""What can be sent to each kind."""
