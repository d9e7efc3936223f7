"""Charts as files: SVG by ourselves, PNG by matplotlib where it is installed."""

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from muster.model.errors import MusterError
from muster.simulator.charts import SPANS, Chart
from muster.simulator.svg import coloured, svg_of


class NoPlotsError(MusterError):
    """PNG files need matplotlib, and it is not there."""


def write_svg(charts: Iterable[Chart], folder: Path) -> list[Path]:
    """One file for each chart."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for chart in charts:
        path = folder / f"{chart.file}.svg"
        path.write_text(svg_of(chart).replace("currentColor", "#222"), encoding="utf-8")
        written.append(path)
    return written


def write_png(charts: Iterable[Chart], folder: Path) -> list[Path]:
    """One file for each chart; NoPlotsError if matplotlib is not installed."""
    figure_of = _matplotlib()
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for chart in charts:
        path = folder / f"{chart.file}.png"
        _drawn(chart, figure_of).savefig(path, dpi=120)
        written.append(path)
    return written


def _matplotlib() -> Any:
    """Without its `pyplot`: that keeps every figure, and may look for a display."""
    try:
        return import_module("matplotlib.figure").Figure
    except ImportError as missing:
        raise NoPlotsError(
            "PNG files need matplotlib: pip install 'muster-gpu[plots]'. "
            "--svg and --html work without it."
        ) from missing


def _drawn(chart: Chart, figure_of: Any) -> Any:
    figure = figure_of(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.subplots()
    for line, colour in coloured(chart.lines):
        xs, ys = [x for x, _ in line.points], [y for _, y in line.points]
        label = "_" if line.dashed else line.name
        axes.plot(
            xs, ys, color=colour, label=label, linestyle="--" if line.dashed else "-", linewidth=1.3
        )
    if chart.log_x:
        axes.set_xscale("log")
        least, most = axes.get_xlim()
        marks = [(number, text) for number, text in SPANS if least <= number <= most]
        axes.set_xticks([number for number, _ in marks], [text for _, text in marks])
    axes.set(title=chart.title, xlabel=chart.x, ylabel=chart.y)
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, alpha=0.2)
    axes.legend(fontsize="small")
    return figure
