"""How fast plans are made and checked at full size, on one core.

first_plan_s is `plan` alone, first_cycle_s is `plan` and `violations`; all that begins with
`later_` is the median of later cycles, in each of which 100 jobs ended and 100 arrived,
later_cycle_s again with `violations`. Seconds are by the wall clock; `_cpu_s` is processor time.
"""

import argparse
import cProfile
import pstats
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench._cycles import Lap, Run, Stopwatch, median_of, run
from bench._fleet import GPUS_PER_NODE
from bench.report import Cell, Row, report
from bench.world import Size
from muster.model.gpu import WHOLE_GPU_MILLI

KUBE_SCHEDULER_PODS_PER_S = 100
SLURM_JOBS_PER_S = 128
ANCHORS = """\
Anchors are recorded figures of other systems, not run here (Slurm's is the best of 77 to 128).
They include telling the nodes; ours is the decision alone, before the store and the backends."""
NONE = ""


def main() -> None:
    options = _options()
    size = Size(nodes=options.nodes, pending=options.pending, queues=options.queues)
    if options.profile:
        _profile(size, options.seed, options.cycles, Path(options.profile))
        return
    full = run(size, seed=options.seed, cycles=options.cycles)
    parts = [
        run(replace(size, pending=size.pending // part), seed=options.seed, cycles=0)
        for part in (4, 2)
    ]
    report("planner", figures(full, parts), table(full, parts))
    print(f"\n{ANCHORS}")


def figures(full: Run, parts: Sequence[Run]) -> dict[str, Cell]:
    first, later = full.first, _later(full)
    found: dict[str, Cell] = {
        "first_plan_s": first.plan.wall_s,
        "later_cycle_s": later["cycle"].wall_s,
        "peak_rss_mib": full.peak_rss_mib,
        "placements_per_s": int(first.placements / first.plan.wall_s),
        "first_plan_cpu_s": first.plan.cpu_s,
        "first_verify_s": first.verify.wall_s,
        "first_cycle_s": first.both.wall_s,
        "first_cycle_cpu_s": first.both.cpu_s,
        "later_plan_s": later["plan"].wall_s,
        "later_plan_cpu_s": later["plan"].cpu_s,
        "later_verify_s": later["verify"].wall_s,
        "later_cycle_cpu_s": later["cycle"].cpu_s,
        "later_cycle_worst_s": max(cycle.both.wall_s for cycle in full.later),
        "later_cycles": len(full.later),
        "jobs_decided_per_s": int(first.jobs / first.plan.wall_s),
        "jobs_started_per_s": int(first.started / first.plan.wall_s),
        "later_jobs_decided_per_s": int(full.later[-1].jobs / later["plan"].wall_s),
    }
    return found | _costs([*parts, full]) | _outcome(full)


def table(full: Run, parts: Sequence[Run]) -> list[Row]:
    first, later = full.first, _later(full)
    worst = max((cycle.both for cycle in full.later), key=lambda lap: lap.wall_s)
    return [
        _seconds("first plan, s", first.plan, 15.0, 5.0),
        _seconds("first plan and violations, s", first.both, 15.0, 5.0),
        _seconds("later plan, s", later["plan"], 0.5, 0.2),
        _seconds("later plan and violations, s", later["cycle"], 0.5, 0.2),
        _seconds("the worst of them, s", worst, 0.5, 0.2),
        _row("memory at most, MiB", full.peak_rss_mib, NONE, 2_048),
        _rate("tasks placed a second", first.placements, first.plan)
        | _anchor(first.placements, first.plan, KUBE_SCHEDULER_PODS_PER_S, "kube-scheduler, tuned"),
        _rate("jobs started a second", first.started, first.plan)
        | _anchor(first.started, first.plan, SLURM_JOBS_PER_S, "Slurm, 1,250 nodes"),
        _rate("jobs decided a second", first.jobs, first.plan),
        _rate("jobs decided a second, later", full.later[-1].jobs, later["plan"]),
        *(_cost_row(each) for each in [*parts, full]),
        _row("GPUs in use after the first plan, %", _gpu_per_cent(full), NONE),
    ]


def _later(full: Run) -> dict[str, Lap]:
    return {
        "plan": median_of([cycle.plan for cycle in full.later]),
        "verify": median_of([cycle.verify for cycle in full.later]),
        "cycle": median_of([cycle.both for cycle in full.later]),
    }


def _costs(runs: Sequence[Run]) -> dict[str, Cell]:
    """What a placed task costs when more jobs wait, the nodes being the same."""
    costs = {each.size.pending: _micros_each(each) for each in runs}
    found: dict[str, Cell] = {f"placement_us_at_{pending}": cost for pending, cost in costs.items()}
    return found | {"placement_cost_growth": costs[max(costs)] / costs[min(costs)]}


def _micros_each(each: Run) -> float:
    return each.first.plan.wall_s * 1e6 / each.first.placements


def _outcome(full: Run) -> dict[str, Cell]:
    first, last = full.first, full.later[-1]
    found: dict[str, Cell] = {
        "nodes": full.size.nodes,
        "queues": full.size.queues,
        "pending": full.size.pending,
        "first_started": first.started,
        "first_placements": first.placements,
        "first_gpu_in_use_per_cent": _gpu_per_cent(full),
        "first_waiting": len(first.reasons),
        "first_waiting_with_estimate": first.estimated,
        "later_started": last.started,
        "later_clearing": last.cleared,
        "later_waiting_with_estimate": last.estimated,
    }
    reasons = Counter(first.reasons).most_common()
    return found | {f"first_waits_{reason}": count for reason, count in reasons}


def _gpu_per_cent(full: Run) -> float:
    """So that nobody takes a plan that leaves GPUs idle for a fast one."""
    return 100 * full.first.gpu_milli / (full.size.nodes * GPUS_PER_NODE * WHOLE_GPU_MILLI)


def _row(
    metric: str, ours: Cell, by_cpu: Cell, bar: Cell = NONE, goal: Cell = NONE
) -> dict[str, Cell]:
    return {
        "metric": metric,
        "ours": ours,
        "by CPU time": by_cpu,
        "bar": bar,
        "goal": goal,
        "anchor": NONE,
        "ratio": NONE,
    }


def _seconds(metric: str, lap: Lap, bar: float, goal: float) -> dict[str, Cell]:
    return _row(metric, lap.wall_s, lap.cpu_s, bar, goal)


def _rate(metric: str, count: int, lap: Lap) -> dict[str, Cell]:
    return _row(metric, int(count / lap.wall_s), int(count / lap.cpu_s))


def _anchor(count: int, lap: Lap, theirs: int, who: str) -> dict[str, Cell]:
    return {"anchor": f"{theirs} ({who})", "ratio": f"{count / lap.wall_s / theirs:,.1f}x"}


def _cost_row(each: Run) -> dict[str, Cell]:
    by_cpu = each.first.plan.cpu_s * 1e6 / each.first.placements
    metric = f"µs a placed task, {each.size.pending:,} jobs pending"
    return _row(metric, _micros_each(each), by_cpu)


def _profile(size: Size, seed: int, cycles: int, folder: Path) -> None:
    """One profile a phase, to be read with pstats; nothing is reported, for profiling slows."""
    profiles: dict[str, cProfile.Profile] = {}
    run(size, seed=seed, cycles=cycles, watch=Stopwatch(profiles=profiles))
    folder.mkdir(parents=True, exist_ok=True)
    for phase, profile in profiles.items():
        print(f"\n{phase}")
        stats = pstats.Stats(profile)
        stats.sort_stats("tottime").print_stats(25)
        stats.dump_stats(folder / f"{phase}.prof")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the planner and the verifier.")
    size = Size()
    parser.add_argument("--nodes", type=int, default=size.nodes)
    parser.add_argument("--pending", type=int, default=size.pending)
    parser.add_argument("--queues", type=int, default=size.queues)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cycles", type=int, default=10)
    parser.add_argument("--profile", metavar="FOLDER", help="profile into this folder instead")
    return parser.parse_args()


if __name__ == "__main__":
    main()
