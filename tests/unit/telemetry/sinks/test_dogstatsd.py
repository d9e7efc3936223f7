"""What Datadog's agent is sent."""

from muster.telemetry.family import Family, FamilyKind, Point
from muster.telemetry.names import METRICS
from muster.telemetry.sinks.dogstatsd import LARGEST, USUAL, Deltas, chosen, datagrams


def family(name: str, kind: FamilyKind, *points: Point) -> Family:
    return Family(name=name, kind=kind, help="", points=points)


def test_gauges_have_tags() -> None:
    labels = (("queue", "acme/nlp"), ("state", "running"))

    (line,) = Deltas().lines([family("muster_jobs", FamilyKind.GAUGE, Point(labels, 3))])

    assert line == "muster.jobs:3|g|#queue:acme/nlp,state:running"


def test_counters_say_by_how_much_they_grew() -> None:
    deltas = Deltas()

    def told(value: float) -> list[str]:
        return list(deltas.lines([family("muster_x_total", FamilyKind.COUNTER, Point((), value))]))

    assert told(100) == []
    assert told(107) == ["muster.x_total:7|c"]
    assert told(107) == []
    # It was set back, and has counted two since.
    assert told(2) == ["muster.x_total:2|c"]


def test_names_of_people_cannot_break_a_line() -> None:
    point = Point((("user", "a|g\nfake:1|g,b#c"),), 1)

    (line,) = Deltas().lines([family("muster_x", FamilyKind.GAUGE, point)])

    assert line == "muster.x:1|g|#user:a_g_fake_1_g_b_c"


def test_large_numbers_are_whole_and_what_is_none_is_left_out() -> None:
    points = (Point((), 123_456_789_012), Point((("a", "b"),), float("inf")))

    assert list(Deltas().lines([family("e", FamilyKind.GAUGE, *points)])) == ["e:123456789012|g"]


def test_datagrams_pass_any_network() -> None:
    lines = [f"muster.jobs:{n}|g|#queue:{'q' * 80}" for n in range(100)]

    found = list(datagrams(lines))

    assert b"\n".join(content for content, _ in found).decode().split("\n") == lines
    assert all(len(content) <= LARGEST for content, _ in found)
    assert sum(count for _, count in found) == 100


def test_the_usual_choice_is_of_metrics_that_there_are() -> None:
    assert set(USUAL) <= {each.name for each in METRICS}
    one = family("muster_jobs", FamilyKind.GAUGE)
    assert list(chosen([one, family("other", FamilyKind.GAUGE)], USUAL)) == [one]
