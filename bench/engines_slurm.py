"""What running jobs through Muster costs on a Slurm cluster, beside plain `sbatch` there.

So many jobs of one GPU that end at once, given to Muster, and to the same cluster with plain
`sbatch`; from the first submission to the last end. The bar: at most 15 % more time for each job.

    make bench NAME=engines-slurm ARGS="--jobs 1000"
"""

import argparse
import contextlib
import time
from collections.abc import Generator
from statistics import median

from bench._musters import Home, job, muster, tidy_when_told_to_end, until
from bench.report import Cell, Row, report
from bench.slurm.configuring import BEST_PARAMETERS
from bench.slurm.lab import Lab, laboratory
from muster.model.value import replace

NODES = 64
GPUS_PER_NODE = 8
ALLOWED_PERCENT = 15.0
LOOK_S = 0.2
SCRIPT = "#!/bin/sh\ntrue\n"


class Asked(argparse.Namespace):
    """How much is measured."""

    jobs: int
    rounds: int


def slurm(asked: Asked) -> list[Row]:
    """Plain sbatch and Muster in turn, on one cluster that both have to themselves."""
    plain: list[float] = []
    ours: list[float] = []
    with laboratory(nodes=NODES, gpus_per_node=GPUS_PER_NODE, rest=False) as lab:
        print(f"{lab.version}, {NODES} nodes, {BEST_PARAMETERS}", flush=True)
        with _muster_beside(lab) as home:
            for _ in range(asked.rounds):
                plain.append(_plain(lab, asked.jobs))
                ours.append(_through_muster(home, lab, asked.jobs))
                print(f"sbatch {plain[-1]:.1f} s, Muster {ours[-1]:.1f} s", flush=True)
    alone, through = median(plain), median(ours)
    return [
        _row("slurm", "sbatch alone", asked.jobs, alone, 0.0),
        _row("slurm", "through Muster", asked.jobs, through, 100 * (through / alone - 1)),
    ]


def main() -> None:
    """Measure, and tell."""
    tidy_when_told_to_end()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args(namespace=Asked())
    rows = slurm(asked)
    report("engines-slurm", _figures(rows), rows)


def _figures(rows: list[Row]) -> dict[str, Cell]:
    """How far the bar is met."""
    found: dict[str, Cell] = {}
    for row in rows:
        if row["how"] == "through Muster":
            over = row["overhead %"]
            is_met = isinstance(over, (int, float)) and over <= ALLOWED_PERCENT
            found[f"{row['engine']}: overhead at most {ALLOWED_PERCENT:.0f} %"] = (
                "yes" if is_met else "no"
            )
    return found


def _row(engine: str, how: str, jobs: int, lasted_s: float, overhead: float) -> Row:
    return {
        "engine": engine,
        "how": how,
        "jobs": jobs,
        "seconds": round(lasted_s, 1),
        "ms a job": round(1_000 * lasted_s / jobs, 1),
        "overhead %": round(overhead, 1),
    }


@contextlib.contextmanager
def _muster_beside(lab: Lab) -> Generator[Home]:
    """A Muster with one pretend GPU of its own, which nobody asks for, that has this cluster."""
    with muster(nodes=1, gpus="1xA100-40GB") as home:
        home.run("cluster", "add", "lab", "--slurm", "--conf", lab.layout.conf)
        all_gpus = NODES * GPUS_PER_NODE + 1
        until(lambda: sum(each.gpus for each in home.client.nodes()) == all_gpus, LOOK_S)
        yield home


def _plain(lab: Lab, count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        lab.ask("sbatch", "--gres=gpu:1", "--time=60", "--output=/dev/null", "--wrap", "true")
    until(lambda: _is_empty(lab), LOOK_S)
    return time.perf_counter() - began


def _through_muster(home: Home, lab: Lab, count: int) -> float:
    began = time.perf_counter()
    asked = replace(job(SCRIPT), pools=("gpu",))
    for _ in range(count):
        home.client.submit_document(asked)
    until(lambda: home.live() == 0, LOOK_S)
    lasted = time.perf_counter() - began
    until(lambda: _is_empty(lab), LOOK_S)
    return lasted


def _is_empty(lab: Lab) -> bool:
    return not lab.ask("squeue", "-h", "-o", "%i", "-t", "PENDING,RUNNING,COMPLETING").strip()


if __name__ == "__main__":
    main()
