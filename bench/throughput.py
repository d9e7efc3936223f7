"""Muster beside a real Slurm: submissions, no-op jobs, time to start, time to list.

Both run on this machine during the whole of one run, with 4 nodes of 8 pretend GPUs, and are asked
in turn; the one that is not asked is idle. Each figure is the median of the repeats, on both sides,
unless it says p50 or p99. A ratio above 1 means that Muster is ahead, whatever the unit.

Muster acknowledges a job when it is on the disk (SQLite, WAL, synchronous=FULL). Slurm
acknowledges before: it writes its state at most every 5 s. Slurm runs with the settings that were
found to be best for it (see bench/slurm/configuring.py), and by the fastest way in that it has.
The first listing after a plan writes every job anew (muster_first_listing_ms); those after it take
jobs that stayed as they were from memory.
"""

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

from bench._clients import seconds
from bench._contest import GPUS_PER_NODE, NODES, MusterSystem, SlurmSystem, System
from bench._musters import muster, percentile, tidy_when_told_to_end, until
from bench.report import Cell, Row, report
from bench.slurm.configuring import BEST_PARAMETERS
from bench.slurm.lab import laboratory

PAUSES_S = (0.3, 1.3)
"""Between two jobs of an idle system: not always the same, for Slurm looks once a second."""

Measured = dict[str, dict[str, list[float]]]
"""By system and way, what each repeat gave."""


class Contest:
    """Asks both systems in turn and keeps what they took."""

    def __init__(self, systems: Sequence[System], options: argparse.Namespace) -> None:
        self.first_listing_ms = 0.0
        self._systems = systems
        self._options = options

    def rows(self) -> list[Row]:
        """Everything, in the order in which it disturbs the least."""
        count = self._options.no_ops
        starts = self._starts()
        return [
            *self._submissions(),
            self._rate_row("no-op jobs completed/s, single jobs", count, _no_ops(count)),
            self._rate_row("no-op jobs completed/s, one array", count, _no_op_array(count)),
            _time_row("submit to start p50, ms", _each(starts, 50), NO_WAYS),
            _time_row("submit to start p99, ms", _each(starts, 99), NO_WAYS),
            *self._listings(),
        ]

    def _starts(self) -> dict[str, list[float]]:
        pauses = random.Random(1)
        found: dict[str, list[float]] = {system.name: [] for system in self._systems}
        with tempfile.TemporaryDirectory() as folder:
            # Slurm's jobs run as another user.
            Path(folder).chmod(0o777)
            for at in range(self._options.starts):
                for system in self._systems:
                    time.sleep(pauses.uniform(*PAUSES_S))
                    taken = start_s(system, Path(folder, f"{system.name}-{at}"))
                    found[system.name].append(taken * 1_000)
        return found

    def _submissions(self) -> list[Row]:
        count = self._options.submissions
        return [
            self._rate_row("held jobs submitted/s, 1 client", count, _submit(1, count)),
            self._rate_row("held jobs submitted/s, 8 clients", count, _submit(8, count)),
        ]

    def _listings(self) -> list[Row]:
        for system in self._systems:
            print(f"{system.name}: filling with {self._options.listed:,} jobs", flush=True)
            system.fill(self._options.listed)
        words = f"{self._options.listed:,} pending jobs"
        by_command = self._repeated(f"list {words}, command", _list_by_command)
        self.first_listing_ms = by_command["muster"]["muster ps"][0] * 1_000
        by_api = self._repeated(f"list {words}, API", lambda system: system.list_by_api())
        return [
            _time_row(f"list {words}, command, ms", *in_ms(by_command)),
            _time_row(f"list {words}, API, ms", *in_ms(by_api)),
        ]

    def _rate_row(
        self, metric: str, count: int, lap: Callable[[System], Mapping[str, float]]
    ) -> Row:
        taken, ways = best(self._repeated(metric, lap))
        return _rate_row(metric, {name: count / each for name, each in taken.items()}, ways)

    def _repeated(self, metric: str, lap: Callable[[System], Mapping[str, float]]) -> Measured:
        found: Measured = {system.name: {} for system in self._systems}
        for _ in range(self._options.repeats):
            for system in self._systems:
                for way, taken in lap(system).items():
                    found[system.name].setdefault(way, []).append(taken)
        print(f"{metric}: {_shown(found)}", flush=True)
        return found


def main() -> None:
    options = _options()
    tidy_when_told_to_end()
    load = os.getloadavg()[0]
    with (
        muster(nodes=NODES, gpus=f"{GPUS_PER_NODE}xA100-40GB") as home,
        laboratory(nodes=NODES, gpus_per_node=GPUS_PER_NODE) as lab,
    ):
        slurm = SlurmSystem(lab)
        store = home.client.status().store
        contest = Contest((MusterSystem(home), slurm), options)
        rows = contest.rows()
        version = lab.version
        slurm.close()
    figures: dict[str, Cell] = {
        "least_ratio": min(float(row["ratio"]) for row in rows),
        "repeats": options.repeats,
        "starts": options.starts,
        "no_ops": options.no_ops,
        "load_before": load,
        "muster_first_listing_ms": round(contest.first_listing_ms, 1),
        "muster_store": f"{store}: WAL, synchronous=FULL; acknowledged when on the disk",
        "slurm": f"{version}, SchedulerParameters={BEST_PARAMETERS}, slurmdbd with MariaDB",
        "slurm_store": "acknowledged from memory; state is written at most every 5 s",
    }
    report("throughput", figures, rows, list_as="rows")


def start_s(system: System, file: Path) -> float:
    """From asking to the first command of the job's script, with nothing else going on."""
    began_ns = time.time_ns()
    system.start(f"#!/bin/sh\ndate +%s%N > {file}\n")
    assert until(lambda: file.exists() and file.read_text().endswith("\n"), 0.01)
    assert until(system.is_idle, 0.05)
    return (int(file.read_text()) - began_ns) / 1e9


def best(measured: Measured) -> tuple[dict[str, float], dict[str, str]]:
    """The least median of each system, and which way it was."""
    taken: dict[str, float] = {}
    ways: dict[str, str] = {}
    for name, laps in measured.items():
        medians = {way: median(each) for way, each in laps.items()}
        ways[name] = min(medians, key=lambda way: (medians[way], way))
        taken[name] = medians[ways[name]]
    return taken, ways


def in_ms(measured: Measured) -> tuple[dict[str, float], dict[str, str]]:
    """The same, in milliseconds."""
    taken, ways = best(measured)
    return {name: each * 1_000 for name, each in taken.items()}, ways


NO_WAYS = {"muster": "Python client", "slurm": "slurmrestd"}


def _rate_row(metric: str, found: Mapping[str, float], ways: Mapping[str, str]) -> Row:
    return _row(metric, found, ways, found["muster"] / found["slurm"])


def _time_row(metric: str, found: Mapping[str, float], ways: Mapping[str, str]) -> Row:
    return _row(metric, found, ways, found["slurm"] / found["muster"])


def _row(
    metric: str, found: Mapping[str, float], ways: Mapping[str, str], ratio: float
) -> dict[str, Cell]:
    return {
        "metric": metric,
        "muster": round(found["muster"], 1),
        "slurm": round(found["slurm"], 1),
        "ratio": round(ratio, 2),
        "muster by": ways["muster"],
        "slurm by": ways["slurm"],
    }


def _each(found: Mapping[str, Sequence[float]], per_cent: float) -> dict[str, float]:
    return {name: percentile(values, per_cent) for name, values in found.items()}


def _submit(clients: int, count: int) -> Callable[[System], Mapping[str, float]]:
    def lap(system: System) -> Mapping[str, float]:
        found = {
            way: seconds(loop, clients=clients, count=count) for way, loop in system.loops().items()
        }
        system.clear()
        return found

    return lap


def _no_ops(count: int) -> Callable[[System], Mapping[str, float]]:
    return lambda system: {NO_WAYS[system.name]: system.no_ops(count)}


def _no_op_array(count: int) -> Callable[[System], Mapping[str, float]]:
    return lambda system: {NO_WAYS[system.name]: system.no_op_array(count)}


def _list_by_command(system: System) -> Mapping[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        began = time.monotonic()
        system.list_by_command(out)
        taken = time.monotonic() - began
        assert out.stat().st_size > 0
    return {"muster ps" if system.name == "muster" else "squeue": taken}


def _shown(found: Measured) -> str:
    return "; ".join(
        f"{name} by {way}: {', '.join(f'{each:.3f}' for each in laps)} s"
        for name, ways in found.items()
        for way, laps in ways.items()
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Muster beside a real Slurm.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--submissions", type=int, default=1_000)
    parser.add_argument("--no-ops", type=int, default=1_000)
    parser.add_argument("--starts", type=int, default=40)
    parser.add_argument("--listed", type=int, default=20_000)
    return parser.parse_args()


if __name__ == "__main__":
    main()
