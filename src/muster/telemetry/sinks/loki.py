"""Lines as Loki takes them (pure).

Few labels make streams: what has many values is structured metadata, as Loki's manual advises.
"""

from collections.abc import Sequence

import msgspec

from muster.telemetry.sinks.lines import Line
from muster.telemetry.sinks.post import Post

PUSH = "/loki/api/v1/push"

_Stream = tuple[str, str, str, str]


def loki_post(lines: Sequence[Line]) -> Post:
    """These lines, by stream, each stream in their order."""
    streams: dict[_Stream, list[list[object]]] = {}
    for line in lines:
        key = (line.kind.value, line.level, line.cluster, line.queue)
        streams.setdefault(key, []).append([str(line.at_ns), line.text, dict(line.fields)])
    body = {
        "streams": [{"stream": _labels(key), "values": values} for key, values in streams.items()]
    }
    return Post(path=PUSH, body=msgspec.json.encode(body), count=len(lines))


def _labels(key: _Stream) -> dict[str, str]:
    kind, level, cluster, queue = key
    labels = {"service": "muster", "kind": kind, "level": level, "cluster": cluster, "queue": queue}
    return {name: value for name, value in labels.items() if value}
