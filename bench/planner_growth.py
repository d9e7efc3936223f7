"""How a cycle's time grows with the nodes and with the jobs that wait, as it is deployed."""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.planner import HERE, Laps, deployed
from bench.report import RESULTS, Cell, Row, report
from bench.world import Size

NODES = (100, 1_000, 10_000)
PENDING = (1_000, 10_000, 100_000)


@dataclass(frozen=True, kw_only=True)
class Run:
    """The cycles of one size, each with the processor time of both processes."""

    size: Size
    started: int
    first_s: float
    later_s: float


Seconds = Callable[[Run], float]


def main() -> None:
    options = _options()
    runs = [
        _told(run(Size(nodes=nodes, pending=pending), options))
        for nodes in options.nodes
        for pending in options.pending
    ]
    report("planner-growth", figures(runs), [row(each) for each in runs])
    draw(runs, RESULTS / "planner-growth.png")


def run(size: Size, options: argparse.Namespace) -> Run:
    one = argparse.Namespace(
        nodes=size.nodes,
        pending=size.pending,
        queues=size.queues,
        seed=options.seed,
        cycles=options.cycles,
        array=0,
    )
    found = deployed(HERE, one)
    laps: Laps = found["laps"]
    cpu_s = {name: lap["controller_cpu_s"] + lap["planner_cpu_s"] for name, lap in laps.items()}
    later = [seconds for name, seconds in cpu_s.items() if name.startswith("later-")]
    return Run(size=size, started=found["started"], first_s=cpu_s["first"], later_s=median(later))


def first_s(each: Run) -> float:
    return each.first_s


def later_s(each: Run) -> float:
    return each.later_s


def figures(runs: Sequence[Run]) -> dict[str, Cell]:
    """Exponents of `time = c * size ** exponent`: along the largest of the other axis, and overall.

    Times are the processor time of both processes: a loaded machine does not change the exponent.
    """
    most_nodes = max(each.size.nodes for each in runs)
    most_pending = max(each.size.pending for each in runs)
    by_nodes = [each for each in runs if each.size.pending == most_pending]
    by_pending = [each for each in runs if each.size.nodes == most_nodes]
    found: dict[str, Cell] = {}
    for cycle, seconds in (("first", first_s), ("later", later_s)):
        nodes = slope([(each.size.nodes, seconds(each)) for each in by_nodes])
        pending = slope([(each.size.pending, seconds(each)) for each in by_pending])
        found[f"{cycle}_exponent_of_nodes_at_{most_pending}_pending"] = nodes
        found[f"{cycle}_exponent_of_pending_at_{most_nodes}_nodes"] = pending
        found |= _overall(cycle, runs, seconds)
    return found


def slope(points: Sequence[tuple[int, float]]) -> float:
    """The least-squares exponent: the slope of log seconds over log size."""
    xs = [math.log(size) for size, _ in points]
    ys = [math.log(seconds) for _, seconds in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((one - x) ** 2 for one in xs)
    return sum((one - x) * (other - y) for one, other in zip(xs, ys, strict=True)) / spread


def _overall(cycle: str, runs: Sequence[Run], seconds: Seconds) -> dict[str, Cell]:
    """On a full grid both axes are independent, so that each exponent can be fitted alone."""
    nodes = slope([(each.size.nodes, seconds(each)) for each in runs])
    pending = slope([(each.size.pending, seconds(each)) for each in runs])
    return {f"{cycle}_exponent_of_nodes": nodes, f"{cycle}_exponent_of_pending": pending}


def row(each: Run) -> Row:
    return {
        "nodes": each.size.nodes,
        "pending": each.size.pending,
        "started": each.started,
        "first cycle, CPU s": each.first_s,
        "µs a job": each.first_s * 1e6 / each.size.pending,
        "later cycle, CPU s": each.later_s,
    }


def draw(runs: Sequence[Run], path: Path) -> None:
    """Both cycles over nodes on the left, over pending jobs on the right."""
    import matplotlib as mpl  # noqa: PLC0415  (only the bench group has it; figures come first)

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 6), sharey=True)
    for panel, along, across in ((left, "nodes", "pending"), (right, "pending", "nodes")):
        _draw_panel(panel, runs, along, across)
    left.set_ylabel("one cycle, processor seconds")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print(f"\n{path.name} drawn")


def _draw_panel(panel: Any, runs: Sequence[Run], along: str, across: str) -> None:
    """One line for each size of the other axis and each of the two cycles."""
    titles = {"nodes": "nodes", "pending": "pending jobs"}
    for number, other in enumerate(sorted({getattr(each.size, across) for each in runs})):
        line = [each for each in runs if getattr(each.size, across) == other]
        xs = [getattr(each.size, along) for each in line]
        for cycle, seconds, dashes in (("first", first_s, "-o"), ("later", later_s, "--o")):
            ys = [seconds(each) for each in line]
            exponent = slope(list(zip(xs, ys, strict=True)))
            label = f"{cycle}, {other:,} {titles[across]}: exponent {exponent:.2f}"
            panel.plot(xs, ys, dashes, color=f"C{number}", label=label, markersize=4)
    panel.set(xscale="log", yscale="log", xlabel=titles[along])
    panel.grid(visible=True, which="both", alpha=0.25)
    panel.legend(fontsize=8, handlelength=4, loc="upper center", bbox_to_anchor=(0.5, -0.15))


def _told(each: Run) -> Run:
    print(
        f"{each.size.nodes:>6,} nodes, {each.size.pending:>7,} pending: "
        f"first {first_s(each):.3f} s, later {later_s(each):.3f} s",
        flush=True,
    )
    return each


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure how planning time grows.")
    parser.add_argument("--nodes", type=int, nargs="+", default=NODES)
    parser.add_argument("--pending", type=int, nargs="+", default=PENDING)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cycles", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
