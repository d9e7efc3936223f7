import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest

from muster.model.value import replace
from muster.simulator.charts import Chart, Curve, charts_of
from muster.simulator.figures import seconds
from muster.simulator.page import page_of
from muster.simulator.plots import write_svg
from muster.simulator.rehearsal import rehearse
from muster.simulator.report import Report
from muster.simulator.svg import svg_of
from unit.simulator.given import scenario, traced, with_queues


def reports() -> list[Report]:
    jobs = [traced(5 * place, 60, 1 + place % 3, queue="ab"[place % 2]) for place in range(40)]
    given = scenario(jobs, site=with_queues(a=2, b=1))
    return [rehearse(replace(given, name=name)) for name in ("one", "<two> & more")]


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in {"src", "href"}]


def test_every_chart_is_well_formed_and_stays_in_its_picture() -> None:
    for chart in charts_of(reports()):
        picture = ET.fromstring(svg_of(chart))  # noqa: S314  our own text
        lines = picture.findall("{http://www.w3.org/2000/svg}polyline")
        places = [place for line in lines for place in line.attrib["points"].split()]

        assert len(lines) == len(chart.lines)
        assert all(0 <= float(place.split(",")[0]) <= 720 for place in places)
        assert all(0 <= float(place.split(",")[1]) <= 300 for place in places)


def test_a_chart_without_points_is_still_a_picture() -> None:
    empty = Chart(file="x", title="t", x="x", y="y", lines=(Curve(name="n", points=()),))

    assert ET.fromstring(svg_of(empty)) is not None  # noqa: S314  our own text


def test_the_page_holds_everything_and_fetches_nothing() -> None:
    page = page_of(reports(), title="one & two")

    seen = Seen()
    seen.feed(page)

    assert seen.tags.count("svg") == 7
    assert not {"script", "link", "img", "iframe"} & set(seen.tags)
    assert seen.links == []
    assert "&lt;two&gt; &amp; more" in page
    assert "<two>" not in page


def test_each_chart_is_a_file_of_its_own(tmp_path: Path) -> None:
    written = write_svg(charts_of(reports()), tmp_path / "plots")

    assert len(written) == len(set(written)) == 7
    assert all(path.stat().st_size > 500 for path in written)


def test_no_label_of_a_chart_is_clipped() -> None:
    for chart in charts_of(reports()):
        picture = ET.fromstring(svg_of(chart))  # noqa: S314  our own text
        for label in picture.findall("{http://www.w3.org/2000/svg}text"):
            at, wide = float(label.attrib["x"]), 6 * len(label.text or "")
            left = {"start": 0, "middle": wide / 2, "end": wide}[label.get("text-anchor", "start")]

            assert at - left >= 0, label.text
            assert at - left + wide <= 720, label.text


def test_long_names_stand_whole_below_a_chart() -> None:
    name = "the rules of last spring, with another queue for guests"
    chart = Chart(
        file="x", title="t", x="x", y="y", lines=(Curve(name=name, points=((0, 1),)),) * 3
    )

    assert svg_of(chart).count(f">{name}</text>") == 3


def test_times_are_marked_in_units_that_people_use() -> None:
    points = ((1.0, 0.0), (90_000.0, 1.0))
    lines = (Curve(name="n", points=points),)
    chart = svg_of(Chart(file="x", title="t", x="x", y="y", lines=lines, log_x=True))

    assert all(f">{text}</text>" in chart for text in ("1s", "1m", "1h", "1d", "0.2", "1"))
    assert "100k" not in chart


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0s"),
        (45.4, "45s"),
        (1_204, "20m 4s"),
        (3_600, "1h"),
        (12_345, "3h 25m"),
        (90_061, "1d 1h"),
    ],
)
def test_spans_are_told_by_the_two_parts_that_matter(amount: float, text: str) -> None:
    assert seconds(amount) == text
