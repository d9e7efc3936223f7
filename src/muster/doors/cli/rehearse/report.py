"""Reports of simulations as people read them."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import exp

from muster.doors.cli.screen.printing import facts
from muster.doors.cli.screen.screen import Screen
from muster.doors.cli.screen.table import Column, lines
from muster.doors.cli.screen.text import counted
from muster.doors.cli.screen.times import short_span
from muster.lifecycle.predict import Accuracy
from muster.model.value import Value
from muster.simulator.figures import FigureRow, figure_lines, seconds, times
from muster.simulator.report import Fairness, QueueReport, Report, Spread


def report_lines(report: Report, screen: Screen) -> Iterator[str]:
    """One report: what came of it, the spreads, and the queues."""
    yield from facts(screen, _facts(report))
    yield ""
    yield from lines(_spreads(report), _SPREAD_COLUMNS, screen)
    if len(report.queues) > 1:
        yield ""
        yield from lines(report.queues, _QUEUE_COLUMNS, screen)


def compared(reports: Sequence[Report], screen: Screen) -> Iterator[str]:
    """Several reports side by side, one figure in each line; the best is marked."""
    columns = [Column[FigureRow]("", lambda line: line.title)]
    columns += [
        Column(report.name, partial(_cell, place=place), "right flexible")
        for place, report in enumerate(reports)
    ]
    yield from lines(figure_lines(reports), columns, screen)


def _cell(line: FigureRow, *, place: int) -> str:
    return f"{line.cells[place]}{'*' if line.best[place] else ' '}"


class _Named(Value):
    title: str
    spread: Spread
    show: Callable[[float], str]


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    used, cpus = f"{report.gpu_utilisation:.1%}", f"{report.cpu_utilisation:.1%}"
    failures = f"{report.node_failures} ended by a node's failure"
    yield "Jobs", _jobs(report)
    yield "Makespan", short_span(report.makespan_s)
    yield "GPUs", f"{report.gpus:g}, used {used}; CPUs used {cpus}"
    yield "Fragmented", f"{report.fragmented:.2%} of the GPUs: free, but of no use to usual tasks"
    yield "GPU-hours", f"{report.gpu_hours:,.1f}, of them {report.lost_gpu_hours:,.1f} done again"
    preemptions = counted(report.preemptions, "preemption")
    yield "Attempts", f"{report.attempts:,}, {preemptions}, {failures}"
    yield "Cost", f"{report.cost:,.2f}" if report.cost else ""
    yield "Fairness", _fairness(report.fairness)
    yield "Predictions", _predictions(report.prediction)


def _fairness(fair: Fairness) -> str:
    served = f"{fair.least_served:.2f} to {fair.most_served:.2f}"
    rho = f"{fair.rho.p50:.2f} of their fair time in the middle, {fair.rho.p99:.2f} at p99"
    return f"queues were served {served} of their right (Jain {fair.jain:.3f}); jobs took {rho}"


def _predictions(guess: Accuracy | None) -> str:
    if guess is None or not guess.count:
        return ""
    off = f"off by a factor of {exp(guess.error):.2f} in the middle"
    return f"{off}; {guess.covered:.1%} of jobs within the high figure (meant: 90%)"


def _jobs(report: Report) -> str:
    parts = [f"{report.jobs:,} came", f"{report.completed:,} completed"]
    for count, word in (
        (report.failed, "failed"),
        (report.cancelled, "cancelled"),
        (report.unfinished, "not over"),
        (report.refused, "refused"),
    ):
        parts += [f"{count:,} {word}"] if count else []
    return ", ".join(parts)


def _spreads(report: Report) -> list[_Named]:
    return [
        _Named(title="completion", spread=report.jct_s, show=seconds),
        _Named(title="wait", spread=report.wait_s, show=seconds),
        _Named(title="slowdown", spread=report.slowdown, show=times),
    ]


_SPREAD_COLUMNS: list[Column[_Named]] = [
    Column("TIME", lambda each: each.title),
    Column("MEAN", lambda each: each.show(each.spread.mean), "right"),
    Column("P50", lambda each: each.show(each.spread.p50), "right"),
    Column("P95", lambda each: each.show(each.spread.p95), "right"),
    Column("P99", lambda each: each.show(each.spread.p99), "right"),
    Column("MOST", lambda each: each.show(each.spread.most), "right"),
]

_QUEUE_COLUMNS: list[Column[QueueReport]] = [
    Column("QUEUE", lambda each: each.path, "flexible"),
    Column("WEIGHT", lambda each: str(each.weight), "right"),
    Column("JOBS", lambda each: f"{each.jct_s.count:,}", "right"),
    Column("GPU-HOURS", lambda each: f"{each.gpu_hours:,.1f}", "right"),
    Column("ENTITLED", lambda each: f"{each.entitled_gpu_hours:,.1f}", "right"),
    Column("SERVED", lambda each: f"{each.served:.2f}", "right"),
    Column("MEAN WAIT", lambda each: seconds(each.wait_s.mean), "right"),
    Column("MEAN JCT", lambda each: seconds(each.jct_s.mean), "right"),
]
