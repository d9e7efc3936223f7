"""Lines and metrics as OTLP over HTTP takes them, in JSON (pure).

64-bit integers are strings there, and names of fields are in camel case.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from muster.model.value import Instant, Value
from muster.telemetry.family import Family, FamilyKind, Labels, Point
from muster.telemetry.sinks.hardware import hardware_families
from muster.telemetry.sinks.lines import Line, whole
from muster.telemetry.sinks.post import Post

LOGS, METRICS = "/v1/logs", "/v1/metrics"

MOST_POINTS = 5_000
"""So many series go into one request."""

_SEVERITIES = {"debug": 5, "info": 9, "warning": 13, "error": 17, "critical": 21}
_CUMULATIVE = 2


class Origin(Value, gc=False):
    """Who sends. began: since when its counters count. version: of the program."""

    node: str
    version: str
    began: Instant


def log_post(lines: Sequence[Line], origin: Origin) -> Post:
    """These lines: one resource for each queue, so that who gathers them can tell them apart."""
    resources: dict[tuple[str, str], list[object]] = {}
    for line in lines:
        resources.setdefault((line.cluster, line.queue), []).append(_record(line))
    body = {
        "resourceLogs": [
            {
                "resource": _resource(
                    origin, (("muster.cluster", cluster), ("muster.queue", queue))
                ),
                "scopeLogs": [{"scope": _scope(origin), "logRecords": records}],
            }
            for (cluster, queue), records in resources.items()
        ]
    }
    return Post(path=LOGS, body=msgspec.json.encode(body), count=len(lines))


def metric_posts(families: Iterable[Family], origin: Origin, now: Instant) -> Iterator[Post]:
    """These families and what the conventions call the hardware's, in requests of a fair size."""
    families = tuple(families)
    taken: list[object] = []
    count = 0
    for family in (*families, *hardware_families(families)):
        if not family.points:
            continue
        if taken and count + len(family.points) > MOST_POINTS:
            yield _metric_post(taken, origin, count)
            taken, count = [], 0
        taken.append(_metric(family, origin, now))
        count += len(family.points)
    if taken:
        yield _metric_post(taken, origin, count)


def _metric_post(metrics: list[object], origin: Origin, count: int) -> Post:
    body = {
        "resourceMetrics": [
            {
                "resource": _resource(origin, ()),
                "scopeMetrics": [{"scope": _scope(origin), "metrics": metrics}],
            }
        ]
    }
    return Post(path=METRICS, body=msgspec.json.encode(body), count=count)


def _scope(origin: Origin) -> dict[str, str]:
    return {"name": "muster", "version": origin.version}


def _resource(origin: Origin, more: Labels) -> dict[str, object]:
    return {
        "attributes": _attributes((("service.name", "muster"), ("host.name", origin.node), *more))
    }


def _attributes(labels: Labels) -> list[object]:
    return [
        {"key": name, "value": {"stringValue": whole(value)}} for name, value in labels if value
    ]


def _record(line: Line) -> dict[str, object]:
    record: dict[str, object] = {
        "timeUnixNano": str(line.at_ns),
        "observedTimeUnixNano": str(line.at_ns),
        "body": {"stringValue": line.text},
        "attributes": _attributes((("muster.kind", line.kind.value), *line.fields)),
    }
    if line.level in _SEVERITIES:
        record["severityNumber"] = _SEVERITIES[line.level]
        record["severityText"] = line.level.upper()
    return record


def _metric(family: Family, origin: Origin, now: Instant) -> dict[str, object]:
    since, at = str(origin.began * 1_000_000), str(now * 1_000_000)
    metric: dict[str, object] = {"name": family.name, "description": family.help}
    if family.unit in _UNITS:
        metric["unit"] = _UNITS[family.unit]
    match family.kind:
        case FamilyKind.GAUGE:
            metric["gauge"] = {"dataPoints": _numbers(family.points, at)}
        case FamilyKind.COUNTER:
            counts = [{**each, "startTimeUnixNano": since} for each in _numbers(family.points, at)]
            metric["sum"] = {
                "dataPoints": counts,
                "aggregationTemporality": _CUMULATIVE,
                "isMonotonic": True,
            }
        case FamilyKind.HISTOGRAM:
            when = {"startTimeUnixNano": since, "timeUnixNano": at}
            steps = [{**each, **when} for each in _steps(family.points)]
            metric["histogram"] = {"dataPoints": steps, "aggregationTemporality": _CUMULATIVE}
    return metric


_UNITS = {
    "seconds": "s",
    "bytes": "By",
    "celsius": "Cel",
    "ratio": "1",
    "s": "s",
    "By": "By",
    "Cel": "Cel",
    "1": "1",
    "W": "W",
    "J": "J",
}
"""Ours, and those of UCUM, which OTLP wants."""


def _numbers(points: Iterable[Point], at: str) -> list[dict[str, object]]:
    """JSON has no word for what is no number: such a series is left out."""
    return [
        {
            "attributes": _attributes(point.labels),
            "timeUnixNano": at,
            "asDouble": float(point.value),
        }
        for point in points
        if math.isfinite(point.value)
    ]


def _steps(points: Iterable[Point]) -> Iterator[dict[str, object]]:
    """Buckets that count what is below them, as those that count what is in them."""
    bounds: list[float] = []
    below: list[int] = []
    total = 0.0
    for point in points:
        match point.suffix:
            case "_bucket":
                bound = dict(point.labels)["le"]
                if bound != "+Inf":
                    bounds.append(float(bound))
                below.append(int(point.value))
            case "_sum":
                total = point.value
            case _:
                yield {
                    "attributes": _attributes(point.labels),
                    "count": str(int(point.value)),
                    "sum": float(total),
                    "explicitBounds": bounds,
                    "bucketCounts": [
                        str(count - before)
                        for count, before in zip(below, (0, *below), strict=False)
                    ],
                }
                bounds, below = [], []
