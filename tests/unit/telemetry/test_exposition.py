"""Metrics as text."""

import re

from hypothesis import given
from hypothesis import strategies as st

from muster.telemetry.exposition import LONGEST_LABEL, classic, openmetrics
from muster.telemetry.family import Family, FamilyKind, Point
from muster.telemetry.histogram import Histogram

SERIES = re.compile(r'[a-zA-Z_:][\w:]*(\{(\w+="([^"\\\n]|\\["\\n])*",?)*\})? \S+')


def family(name: str, *points: Point, kind: FamilyKind = FamilyKind.GAUGE) -> Family:
    return Family(name=name, kind=kind, help="What it says.", points=points)


def test_a_family_has_its_head_and_its_series() -> None:
    told = family("up", Point((("job", "a"), ("at", "b")), 1), Point((), 0.5))

    assert classic([told]) == (
        '# HELP up What it says.\n# TYPE up gauge\nup{job="a",at="b"} 1\nup 0.5\n'
    )


def test_a_name_that_several_tell_stands_in_one_block() -> None:
    text = classic(
        [family("a", Point((), 1)), family("b", Point((), 2)), family("a", Point((), 3))]
    )

    assert [line for line in text.splitlines() if not line.startswith("#")] == ["a 1", "a 3", "b 2"]
    assert text.count("# TYPE a") == 1


def test_a_family_without_series_is_not_there() -> None:
    assert classic([family("a")]) == ""


def test_quotes_and_newlines_in_names_stay_in_their_place() -> None:
    text = classic([family("a", Point((("queue", 'x"} 1\nevil{y="\\'),), 1))])

    assert text.splitlines()[-1] == r'a{queue="x\"} 1\nevil{y=\"\\"} 1'


def test_long_names_that_begin_alike_stay_two() -> None:
    points = [Point((("queue", "q" * 200 + end),), 1) for end in "ab"]

    series = classic([family("a", *points)]).splitlines()[2:]

    assert len(set(series)) == 2
    assert all(len(line) < LONGEST_LABEL + 20 for line in series)


def test_openmetrics_keeps_the_names_that_people_know() -> None:
    text = openmetrics(
        [
            family("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", Point((), 1), kind=FamilyKind.COUNTER),
            family("muster_jobs_submitted_total", Point((), 2), kind=FamilyKind.COUNTER),
        ]
    )

    assert "# TYPE DCGM_FI_DEV_ECC_DBE_VOL_TOTAL unknown\n" in text
    assert "# TYPE muster_jobs_submitted counter\n" in text
    assert "\nmuster_jobs_submitted_total 2\n" in text
    assert text.endswith("# EOF\n")


def test_openmetrics_tells_units_that_end_names() -> None:
    told = Family(
        name="muster_plan_seconds", kind=FamilyKind.GAUGE, help="x", unit="seconds", points=(ONE,)
    )

    assert "# UNIT muster_plan_seconds seconds\n" in openmetrics([told])
    assert "# UNIT" not in classic([told])


def test_a_histogram_counts_up_to_everything() -> None:
    histogram = Histogram((1, 10))
    for seconds in (0.5, 1, 5, 50, -3):
        histogram.observe(seconds)

    text = classic([family("w", *histogram.points((("q", "a"),)), kind=FamilyKind.HISTOGRAM)])

    assert text.splitlines()[2:] == [
        'w_bucket{q="a",le="1"} 3',
        'w_bucket{q="a",le="10"} 4',
        'w_bucket{q="a",le="+Inf"} 5',
        'w_sum{q="a"} 56.5',
        'w_count{q="a"} 5',
    ]


def test_numbers_that_are_none_are_written_as_prometheus_reads_them() -> None:
    points = [Point((), float(each)) for each in ("nan", "inf", "-inf")]

    assert classic([family("a", *points)]).splitlines()[2:] == ["a NaN", "a +Inf", "a -Inf"]


@given(st.lists(st.tuples(st.text(), st.floats() | st.integers())))
def test_every_line_is_a_head_or_a_series(values: list[tuple[str, float]]) -> None:
    told = family("a", *(Point((("name", text),), value) for text, value in values))

    for page in (classic([told]), openmetrics([told])):
        page.encode()
        for line in page.rstrip("\n").split("\n") if page else ():
            assert line.startswith("# ") or SERIES.fullmatch(line)


ONE = Point((), 1)
