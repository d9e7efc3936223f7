"""The figures by which sets of rules are compared, and which of them is the best."""

from collections.abc import Callable, Sequence

from muster.model.value import Value
from muster.simulator.report import Report


def seconds(amount: float) -> str:
    """`45s`, `20m 4s`, `3h 25m`, `12d 4h`: the two parts that matter."""
    left, parts = round(amount), list[str]()
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if parts or count or unit == "s":
            parts.append(f"{count}{unit}" if count or not parts else "")
    return " ".join(part for part in parts[:2] if part)


def times(factor: float) -> str:
    """`1.25 x`."""
    return f"{factor:,.2f} x"


class Figure(Value):
    """A line of the comparison. better: 1 if more is better, -1 if less, 0 if neither."""

    title: str
    of: Callable[[Report], float]
    show: Callable[[float], str]
    better: int = -1


FIGURES: tuple[Figure, ...] = (
    Figure(title="jobs over", of=lambda r: r.completed, show=lambda x: f"{x:,.0f}", better=0),
    Figure(title="JCT mean", of=lambda r: r.jct_s.mean, show=seconds),
    Figure(title="JCT p50", of=lambda r: r.jct_s.p50, show=seconds),
    Figure(title="JCT p95", of=lambda r: r.jct_s.p95, show=seconds),
    Figure(title="JCT p99", of=lambda r: r.jct_s.p99, show=seconds),
    Figure(title="wait mean", of=lambda r: r.wait_s.mean, show=seconds),
    Figure(title="wait p99", of=lambda r: r.wait_s.p99, show=seconds),
    Figure(title="slowdown mean", of=lambda r: r.slowdown.mean, show=times),
    Figure(title="makespan", of=lambda r: r.makespan_s, show=seconds),
    Figure(title="GPU use", of=lambda r: r.gpu_utilisation, show=lambda x: f"{x:.2%}", better=1),
    Figure(title="fragmented", of=lambda r: r.fragmented, show=lambda x: f"{x:.2%}"),
    Figure(
        title="fairness: least/most served",
        of=lambda r: r.fairness.min_by_max,
        show=lambda x: f"{x:.3f}",
        better=1,
    ),
    Figure(
        title="fairness: Jain", of=lambda r: r.fairness.jain, show=lambda x: f"{x:.3f}", better=1
    ),
    Figure(title="fairness: rho p99", of=lambda r: r.fairness.rho.p99, show=times),
    Figure(title="preemptions", of=lambda r: r.preemptions, show=lambda x: f"{x:,.0f}"),
    Figure(title="restarts", of=lambda r: r.restarts, show=lambda x: f"{x:,.0f}"),
    Figure(title="lost GPU-hours", of=lambda r: r.lost_gpu_hours, show=lambda x: f"{x:,.1f}"),
    Figure(title="cost", of=lambda r: r.cost, show=lambda x: f"{x:,.2f}"),
)


class FigureRow(Value):
    """One figure of all reports, as texts, and which of them are the best."""

    title: str
    cells: tuple[str, ...]
    best: tuple[bool, ...]


def figure_lines(reports: Sequence[Report]) -> list[FigureRow]:
    """All figures; those that are nothing everywhere are left out."""
    found: list[FigureRow] = []
    for figure in FIGURES:
        numbers = [figure.of(each) for each in reports]
        if any(numbers):
            found.append(_line(figure, numbers))
    return found


def _line(figure: Figure, numbers: Sequence[float]) -> FigureRow:
    best = max(numbers) if figure.better > 0 else min(numbers)
    is_contest = bool(figure.better) and max(numbers) > min(numbers)
    return FigureRow(
        title=figure.title,
        cells=tuple(figure.show(number) for number in numbers),
        best=tuple(is_contest and number == best for number in numbers),
    )
