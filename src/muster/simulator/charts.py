"""What is worth seeing of reports, as charts without any drawing in them."""

from collections.abc import Iterable, Iterator, Sequence

from muster.model.value import Value
from muster.simulator.curve import Series
from muster.simulator.report import Report

MS_PER_DAY = 86_400_000
SPANS: tuple[tuple[int, str], ...] = (
    (1, "1s"),
    (10, "10s"),
    (60, "1m"),
    (600, "10m"),
    (3_600, "1h"),
    (36_000, "10h"),
    (86_400, "1d"),
    (864_000, "10d"),
    (8_640_000, "100d"),
)
"""Where an axis of times that grows tenfold has its marks."""

MOST_QUEUES = 6

Point = tuple[float, float]


class Curve(Value):
    """One line of a chart. dashed: what should be, beside what is; it shares the colour before."""

    name: str
    points: tuple[Point, ...]
    dashed: bool = False


class Chart(Value):
    """Lines over one axis; file: its name where each chart is a file.

    log_x: times in seconds, in tenfold steps.
    """

    file: str
    title: str
    x: str
    y: str
    lines: tuple[Curve, ...]
    log_x: bool = False


def charts_of(reports: Sequence[Report]) -> tuple[Chart, ...]:
    """Side by side: completion, waiting, use and fragmentation; for each, its queues."""
    return (
        _distribution("jct", "Completion time", [(r.name, r.jct_quantiles_s) for r in reports]),
        _distribution("wait", "Waiting time", [(r.name, r.wait_quantiles_s) for r in reports]),
        _over_time("use", "GPUs in use", "GPUs", [(r.name, r.gpu_used) for r in reports]),
        _over_time("waiting", "Jobs that wait", "jobs", [(r.name, r.waiting) for r in reports]),
        _over_time(
            "fragments",
            "GPUs that are free and of no use",
            "GPUs",
            [(r.name, r.fragments) for r in reports],
        ),
        *(chart for report in reports for chart in _queues(report)),
    )


def _distribution(
    file: str, title: str, quantiles: Iterable[tuple[str, tuple[float, ...]]]
) -> Chart:
    lines = tuple(Curve(name=name, points=tuple(_cumulated(each))) for name, each in quantiles)
    return Chart(
        file=file, title=title, x="time, at most", y="part of jobs", lines=lines, log_x=True
    )


def _cumulated(quantiles: tuple[float, ...]) -> Iterator[Point]:
    last = max(1, len(quantiles) - 1)
    for place, seconds in enumerate(quantiles):
        yield max(1.0, seconds), place / last


def _over_time(file: str, title: str, y: str, series: Iterable[tuple[str, Series]]) -> Chart:
    lines = tuple(Curve(name=name, points=tuple(_days(each))) for name, each in series)
    return Chart(file=file, title=title, x="days", y=y, lines=lines)


def _days(series: Series) -> Iterator[Point]:
    for at, mean in series.points():
        yield (at - series.begins_at) / MS_PER_DAY, mean


def _queues(report: Report) -> Iterator[Chart]:
    """What the largest queues held, beside what they were entitled to."""
    largest = sorted(report.queues, key=lambda each: (-each.gpu_hours, each.path))[:MOST_QUEUES]
    if len(largest) < 2:
        return
    lines: list[Curve] = []
    for each in sorted(largest, key=lambda each: each.path):
        lines.append(Curve(name=each.path, points=tuple(_days(each.used))))
        lines.append(Curve(name="its right", points=tuple(_days(each.entitled)), dashed=True))
    file = "queues-" + "".join(each if each.isalnum() else "-" for each in report.name)
    title = f"Queues and their right{': ' if report.name else ''}{report.name}"
    yield Chart(file=file, title=title, x="days", y="GPUs", lines=tuple(lines))
