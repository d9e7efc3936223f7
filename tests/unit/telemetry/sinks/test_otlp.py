"""What OTLP is sent."""

import json
from typing import Any

from muster.model.value import Instant
from muster.telemetry import names
from muster.telemetry.family import Family, FamilyKind, Point
from muster.telemetry.histogram import Histogram
from muster.telemetry.sinks.lines import Line, LineKind
from muster.telemetry.sinks.otlp import MOST_POINTS, Origin, log_post, metric_posts

ORIGIN = Origin(node="n1", version="1.2", began=Instant(1_000))
NOW = Instant(61_000)


def metrics(*families: Family) -> list[Any]:
    (post,) = metric_posts(families, ORIGIN, NOW)
    return json.loads(post.body)["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]


def test_lines_say_how_bad_they_are_and_whose() -> None:
    line = Line(
        at_ns=5,
        text="no room",
        kind=LineKind.CONTROLLER,
        level="warning",
        queue="acme",
        fields=(("job", "17"),),
    )

    (logs,) = json.loads(log_post([line], ORIGIN).body)["resourceLogs"]

    assert {
        each["key"]: each["value"]["stringValue"] for each in logs["resource"]["attributes"]
    } == {"service.name": "muster", "host.name": "n1", "muster.queue": "acme"}
    (record,) = logs["scopeLogs"][0]["logRecords"]
    assert record["timeUnixNano"] == "5"
    assert (record["severityNumber"], record["severityText"]) == (13, "WARNING")
    assert record["body"] == {"stringValue": "no room"}
    assert {"key": "job", "value": {"stringValue": "17"}} in record["attributes"]


def test_gauges_are_as_they_are_and_counters_count_since_the_start() -> None:
    gauge, counter = metrics(
        Family(name="g", kind=FamilyKind.GAUGE, help="a", points=(Point((("q", "a"),), 2),)),
        Family(name="c_total", kind=FamilyKind.COUNTER, help="b", points=(Point((), 3),)),
    )

    assert gauge["gauge"]["dataPoints"][0]["asDouble"] == 2.0
    assert gauge["gauge"]["dataPoints"][0]["timeUnixNano"] == "61000000000"
    assert (counter["sum"]["isMonotonic"], counter["sum"]["aggregationTemporality"]) == (True, 2)
    assert counter["sum"]["dataPoints"][0]["startTimeUnixNano"] == "1000000000"


def test_buckets_count_what_is_in_them() -> None:
    times = Histogram((1, 10))
    for seconds in (0.5, 5, 7, 100):
        times.observe(seconds)
    labels = (("queue", "a"),)

    (found,) = metrics(
        Family(name="w", kind=FamilyKind.HISTOGRAM, help="", points=tuple(times.points(labels)))
    )

    (point,) = found["histogram"]["dataPoints"]
    assert (point["explicitBounds"], point["bucketCounts"]) == ([1.0, 10.0], ["1", "2", "1"])
    assert (point["count"], point["sum"]) == ("4", 112.5)
    assert point["attributes"] == [{"key": "queue", "value": {"stringValue": "a"}}]


def test_a_gpu_has_the_names_of_the_conventions_too() -> None:
    labels = (("UUID", "GPU-1"), ("Hostname", "n1"), ("modelName", "NVIDIA A100"))

    found = metrics(names.GPU_UTIL.family([Point(labels, 87)]))

    assert [each["name"] for each in found] == ["DCGM_FI_DEV_GPU_UTIL", "hw.gpu.utilization"]
    (point,) = found[1]["gauge"]["dataPoints"]
    assert (found[1]["unit"], point["asDouble"]) == ("1", 0.87)
    assert {"key": "hw.id", "value": {"stringValue": "GPU-1"}} in point["attributes"]


def test_what_is_no_number_is_left_out() -> None:
    (found,) = metrics(
        Family(
            name="g",
            kind=FamilyKind.GAUGE,
            help="",
            points=(Point((), float("nan")), Point((("a", "b"),), 1)),
        )
    )

    assert len(found["gauge"]["dataPoints"]) == 1


def test_many_series_go_in_several_requests() -> None:
    points = tuple(Point((("n", str(n)),), n) for n in range(MOST_POINTS))
    families = [Family(name=name, kind=FamilyKind.GAUGE, help="", points=points) for name in "abc"]

    posts = list(metric_posts(families, ORIGIN, NOW))

    assert [post.count for post in posts] == [MOST_POINTS] * 3
