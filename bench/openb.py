"""How much GPU stays idle when tasks for all of it came: openb, FGD's protocol, paired by seed.

The ports of BestFit, DotProd and FGD must give the published curves point by point, for the seeds
of which there are any; then our planner places the same tasks in the same order, for all seeds that
the folder of sequences has. MUSTER_TRACES names the folder with the traces,
SEQUENCES (or --sequences) the one with the orders of arrival if it is not among them.
"""

import argparse
import json
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from bench.packing.ours import Planner
from bench.packing.ports import BestFit, DotProd, Fgd, Judge, Replay
from bench.packing.protocol import Place, Workload, curve, unallocated
from bench.packing.published import ORDERS, Curves, curves, workload
from bench.report import Cell, Row, report
from muster.model.errors import MusterError
from muster.simulator.traces.files import folder

WORKLOADS = (
    "default",
    *("cpu050", "cpu100", "cpu200", "cpu250"),
    *("gpushare40", "gpushare60", "gpushare80", "gpushare100"),
    *("gpuspec10", "gpuspec20", "gpuspec25", "gpuspec33"),
    *("multigpu20", "multigpu30", "multigpu40", "multigpu50"),
)
PORTS = ("BestFit", "DotProd", "FGD")
OURS = "ours"
MOST_ON_DEFAULT = 4.36
LEAST_PLACEMENTS_PER_CPU_S = 3_000


class Given(NamedTuple):
    """Where to find what is given, and which of it to run."""

    traces: Path
    orders: Path
    name: str
    policy: str


class Ran(NamedTuple):
    """The curves of one policy on one workload by seed, and what they took."""

    curves: Mapping[int, list[float]]
    tasks: int
    cpu_s: float

    @property
    def unallocated(self) -> float:
        return mean(unallocated(each) for each in self.curves.values())


Results = Mapping[tuple[str, str], Ran]


def main() -> None:
    options = _options()
    try:
        traces = folder(options.traces)
        orders = Path(options.sequences) if options.sequences else traces / ORDERS
        published = curves(traces)
        names = tuple(options.workloads) or WORKLOADS
        tell(names, published, _run_all(names, traces, orders, options.processes))
    except MusterError as error:
        raise SystemExit(str(error)) from error


def tell(names: Sequence[str], published: Curves, ran: Results) -> None:
    """Print and keep the table, and say which bars are not met."""
    ours = [ran[name, OURS] for name in names]
    rate = int(sum(each.tasks for each in ours) / sum(each.cpu_s for each in ours))
    table = [_row(name, published, ran) for name in names]
    figures: dict[str, Cell] = {
        "placements_per_cpu_s": rate,
        "curves_equal": sum(_is_equal(key, published, ran) for key in ran if key[1] != OURS),
        "curves_compared": sum(len(_known(key, published, ran)) for key in ran if key[1] != OURS),
        "seeds": max(len(each.curves) for each in ran.values()),
    }
    path = report("openb", figures, table)
    _keep_workloads(path, names, ran)
    missed = _missed(names, published, ran, rate)
    print("\n" + ("\n".join(f"NOT MET: {each}" for each in missed) or "every bar is met"))


def run(given: Given) -> Ran:
    """One policy on one workload, all seeds."""
    found = workload(given.name, given.traces, given.orders)
    made: dict[int, list[float]] = {}
    begun = time.process_time()
    judge = _judge(given.policy, found)
    for seed in found.orders:
        made[seed] = curve(found, seed, _place(found, seed, judge))
    cpu_s = time.process_time() - begun
    return Ran(made, sum(len(order.tasks) for order in found.orders.values()), cpu_s)


def _run_all(names: Sequence[str], traces: Path, orders: Path, processes: int) -> Results:
    given = [Given(traces, orders, name, policy) for name in names for policy in (*PORTS, OURS)]
    with ProcessPoolExecutor(processes) as pool:
        done = zip(given, pool.map(run, given), strict=True)
        return {(each.name, each.policy): ran for each, ran in done}


def _judge(policy: str, found: Workload) -> Judge | None:
    match policy:
        case "BestFit":
            return BestFit()
        case "DotProd":
            return DotProd()
        case "FGD":
            return Fgd(found.tasks)
        case _:
            return None


def _place(found: Workload, seed: int, judge: Judge | None) -> Place:
    if judge is None:
        return Planner(found).place
    return Replay(found, found.orders[seed], judge).place


def _row(name: str, published: Curves, ran: Results) -> Row:
    fgd, ours = ran[name, "FGD"], ran[name, OURS]
    return {
        "workload": name,
        "BestFit published": _published((name, "BestFit"), published, ran),
        "BestFit": ran[name, "BestFit"].unallocated,
        "DotProd": ran[name, "DotProd"].unallocated,
        "FGD published": _published((name, "FGD"), published, ran),
        "FGD": fgd.unallocated,
        "points equal": _points_equal(name, published, ran),
        "ours": ours.unallocated,
        "ours / FGD": ours.unallocated / fgd.unallocated,
        "seeds won": sum(
            unallocated(each) < unallocated(fgd.curves[seed]) for seed, each in ours.curves.items()
        ),
        "beats FGD": "yes" if ours.unallocated < fgd.unallocated else "NO",
    }


def _known(key: tuple[str, str], published: Curves, ran: Results) -> list[int]:
    """The seeds for which a curve was published."""
    return [seed for seed in ran[key].curves if (*key, seed) in published]


def _published(key: tuple[str, str], published: Curves, ran: Results) -> Cell:
    found = [unallocated(published[*key, seed]) for seed in _known(key, published, ran)]
    return mean(found) if found else ""


def _points_equal(name: str, published: Curves, ran: Results) -> str:
    """Of all points of the three ports, over all seeds that were published."""
    pairs = [
        (ours, theirs)
        for policy in PORTS
        for seed in _known((name, policy), published, ran)
        for ours, theirs in zip(
            ran[name, policy].curves[seed], published[name, policy, seed], strict=True
        )
    ]
    return f"{sum(ours == theirs for ours, theirs in pairs)}/{len(pairs)}"


def _is_equal(key: tuple[str, str], published: Curves, ran: Results) -> int:
    """How many seeds give the published curve, point by point."""
    known = _known(key, published, ran)
    return sum(ran[key].curves[seed] == published[*key, seed] for seed in known)


def _missed(names: Sequence[str], published: Curves, ran: Results, rate: int) -> list[str]:
    found = [
        f"{name}: ours {ran[name, OURS].unallocated:.2f} is not below FGD"
        for name in names
        if ran[name, OURS].unallocated >= ran[name, "FGD"].unallocated
    ]
    if "default" in names and ran["default", OURS].unallocated > MOST_ON_DEFAULT:
        found.append(f"default: ours is above {MOST_ON_DEFAULT}")
    if rate < LEAST_PLACEMENTS_PER_CPU_S:
        found.append(f"{rate:,} placements a CPU second, not {LEAST_PLACEMENTS_PER_CPU_S:,}")
    found += [
        f"{name}: the port of {policy} does not give the published curve at every point"
        for name, policy in ran
        if policy != OURS
        and _is_equal((name, policy), published, ran) < len(_known((name, policy), published, ran))
    ]
    return found


def _keep_workloads(path: Path, names: Sequence[str], ran: Results) -> None:
    measured = json.loads(path.read_text(encoding="utf-8"))
    measured["workloads"] = {
        name: {
            key: round(ran[name, policy].unallocated, 3)
            for key, policy in (("ours", OURS), ("fgd", "FGD"), ("bestfit", "BestFit"))
        }
        for name in names
    }
    path.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", help="the folder with the traces (else MUSTER_TRACES)")
    parser.add_argument("--sequences", default=os.environ.get("SEQUENCES"))
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("workloads", nargs="*", choices=[[], *WORKLOADS], default=[])
    return parser.parse_args()


if __name__ == "__main__":
    main()
