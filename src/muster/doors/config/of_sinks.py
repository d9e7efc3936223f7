"""The keys of sinks: who is sent logs and metrics."""

from muster.doors.config.kinds import ENDPOINT, FILE_PATH, NAME, QUEUE_PATH, choice
from muster.doors.config.shapes import Key, Many, Section
from muster.model.sinks import Sent, Sink, SinkKind

SINK = Section(
    title="Where logs and metrics are sent: `telemetry.sinks.*`",
    noun="sink",
    makes=(Sink,),
    blank=Sink(name="", kind=SinkKind.LOKI),
    named="name",
    keys=(
        Key(
            name="kind",
            shape=choice(SinkKind),
            required=True,
            meaning="what it understands",
            example="loki",
        ),
        Key(
            name="url",
            shape=ENDPOINT,
            required=True,
            meaning="where it is: of `loki` without `/loki/api/v1/push`, of `otlp` without "
            "`/v1/logs`, of `dogstatsd` as `udp://HOST:PORT`",
            example="http://loki:3100",
        ),
        Key(
            name="sends",
            shape=Many(each=choice(Sent)),
            meaning="what it is sent: `log` is Muster's own, `output` is what jobs write, and "
            "`metrics` are for `otlp` and `dogstatsd`",
            example="[log, output]",
        ),
        Key(
            name="headers_file",
            shape=FILE_PATH,
            meaning="a file with the HTTP headers that it asks for, one in a line: a secret, which "
            "is never shown",
            example="/etc/muster/loki-headers",
        ),
        Key(
            name="queue",
            shape=QUEUE_PATH,
            optional=True,
            meaning="only of this queue and its child queues; without it, output of jobs of "
            "private queues is not sent",
            example="acme/nlp",
        ),
        Key(
            name="metrics",
            shape=Many(each=NAME),
            meaning="only these metrics; if empty, all for `otlp`, and a short list for "
            "`dogstatsd`, where every series is billed",
            example="[muster_jobs, DCGM_FI_DEV_GPU_UTIL]",
        ),
    ),
)
