"""Where the constants of `bench muri` and `bench jct` come from: jobs that neither of them scores.

Slices of ITP's clusters, 500 jobs each, on the 64 GPUs of Muri's protocol: at a load of 2, and all
at once. SRTF knows durations, Tiresias and ours do not.
"""

import argparse
from collections.abc import Callable, Mapping
from statistics import fmean

from bench import _jct_trace
from bench._jct_trace import Park
from bench._muri_anchor import srtf, tiresias
from bench._muri_ours import ours
from bench._muri_trace import GPUS_PER_NODE, NODES, START_S, START_S_OTHERWISE, TraceJob
from bench.report import Cell, Row, report
from muster.model.errors import MusterError
from muster.model.value import HOUR, MINUTE, Duration

JOBS = 500
CLUSTERS = 3
LOAD = 2.0
MIN_RUNS: Mapping[str, Duration] = {
    "10 min": Duration(10 * MINUTE),
    "30 min": Duration(30 * MINUTE),
    "1 h": HOUR,
}

Policy = Callable[[list[TraceJob]], Mapping[int, float]]


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    table: list[Row] = []
    for name, jobs in _slices().items():
        row: dict[str, Cell] = {"slice": name}
        for policy, run in _policies().items():
            ended = run(jobs)
            row[policy] = round(fmean(ended[job.number] - job.submit_s for job in jobs))
        print(row, flush=True)
        table.append(row)
    means = {
        f"min_run_{policy.replace(' ', '')}_of_srtf": fmean(_ratio(row, policy) for row in table)
        for policy in MIN_RUNS
    }
    report("service", means, table)


def slice_of(park: Park, *, at_once: bool) -> list[TraceJob]:
    """Jobs from the middle of a cluster's, as Muri has them, nearer together or further apart."""
    fit = [row for row in park.rows if row.gpus in START_S]
    rows = fit[len(fit) // 3 :][:JOBS]
    begin = rows[0].at_s
    work = sum(row.lasts_s * row.gpus for row in rows)
    stretch = work / (LOAD * NODES * GPUS_PER_NODE) / max(1, rows[-1].at_s - begin)
    return [
        TraceJob(
            number=number,
            gpus=row.gpus,
            submit_s=0.0 if at_once else (row.at_s - begin) * stretch,
            iterations=float(row.lasts_s),
            iteration_s=1.0,
            model="",
            stages_s=(0.0, 0.0, 0.0),
            start_s=START_S_OTHERWISE,
        )
        for number, row in enumerate(rows)
    ]


def _slices() -> dict[str, list[TraceJob]]:
    parks = sorted(_jct_trace.itp(_jct_trace.folder()), key=lambda park: -len(park.rows))
    return {
        f"{park.name}{sign}": slice_of(park, at_once=bool(sign))
        for park in parks[:CLUSTERS]
        for sign in ("", "'")
    }


def _policies() -> dict[str, Policy]:
    runs: dict[str, Policy] = {"SRTF": srtf, "Tiresias": tiresias}
    return runs | {name: _ours(min_run) for name, min_run in MIN_RUNS.items()}


def _ours(min_run: Duration) -> Policy:
    return lambda jobs: ours(jobs, min_run=min_run)[0]


def _ratio(row: Row, policy: str) -> float:
    found, oracle = row[policy], row["SRTF"]
    return float(found) / float(oracle)


if __name__ == "__main__":
    try:
        main()
    except MusterError as error:
        raise SystemExit(str(error)) from error
