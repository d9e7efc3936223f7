"""Slurm's commands beside themselves: those of Muster's door and the C tools, on one machine.

Both systems run during the whole of one run and are asked in turn. Each time is the median of the
calls, from starting the command to its end; a ratio above 1 means that Muster is ahead. The bars:
ahead on throughput and on every listing of a long queue, and no single command more than 25 ms
behind the C tool.
"""

import argparse
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from statistics import median

from bench._clients import Loop, seconds
from bench._contest import GPUS_PER_NODE, NODES, MusterSystem, SlurmSystem, System
from bench._musters import muster, slurm_commands, tidy_when_told_to_end, until
from bench.report import Cell, Row, report
from bench.slurm.configuring import BEST_PARAMETERS
from bench.slurm.lab import laboratory
from muster.model.value import Value

ALLOWED_MS = 25.0
LOOK_S = 0.1
SBATCH = "sbatch --hold --gres=gpu:1 --time=60 --output=/dev/null --wrap=true"
COMMANDS = {
    "sbatch": SBATCH,
    "squeue": "squeue",
    "sinfo": "sinfo",
    "sacct": "sacct",
    "scontrol show job": "scontrol show job",
}


class ShellLoop(Value):
    """A shell that calls `sbatch` again and again."""

    environ: Mapping[str, str]

    def __call__(self, count: int) -> Callable[[], None]:
        text = f"i=0; while [ $i -lt {count} ]; do {SBATCH} >/dev/null || exit 1; i=$((i+1)); done"

        def submit() -> None:
            subprocess.run(["/bin/sh", "-c", text], env=self.environ, check=True)  # noqa: S603 -- ours

        return submit


class Side:
    """One system, and the environment in which its commands are found."""

    def __init__(self, system: System, environ: Mapping[str, str]) -> None:
        self.name = system.name
        self.system = system
        self.environ = environ

    def call(self, line: str) -> str:
        """What a command prints."""
        done = subprocess.run(  # noqa: S603 -- commands of the benchmark alone
            line.split(), env=self.environ, capture_output=True, text=True, check=True
        )
        return done.stdout

    def call_ms(self, line: str) -> float:
        """How long a command takes whose output nobody reads."""
        began = time.perf_counter()
        subprocess.run(line.split(), env=self.environ, stdout=subprocess.DEVNULL, check=True)  # noqa: S603 -- ours
        return (time.perf_counter() - began) * 1_000

    def array_s(self, count: int) -> float:
        """From submitting an array of jobs that do nothing until the last has ended."""
        began = time.monotonic()
        self.call(f"sbatch --array=0-{count - 1} --gres=gpu:1 --output=/dev/null --wrap=true")
        waiting = "squeue -h -o %i --states=PENDING,CONFIGURING,RUNNING"
        assert until(lambda: not self.call(waiting), LOOK_S)
        return time.monotonic() - began


class Contest:
    """Asks both in turn and keeps what they took."""

    def __init__(self, sides: tuple[Side, Side], options: argparse.Namespace) -> None:
        self._sides = sides
        self._options = options

    def rows(self) -> list[Row]:
        """Everything; the long queue last, because it takes long to be rid of."""
        idle = self._latencies("idle", _within_bar)
        shells = [self._submissions(1), self._submissions(8)]
        array = self._array()
        for side in self._sides:
            print(f"{side.name}: filling with {self._options.listed:,} jobs", flush=True)
            side.system.fill(self._options.listed)
        full = self._latencies(f"{self._options.listed:,} pending", _listing_bar)
        return [*idle, *shells, array, *full]

    def _latencies(self, when: str, is_met: Callable[[str, float, float], bool]) -> list[Row]:
        return [self._latency(name, when, is_met) for name in COMMANDS]

    def _latency(self, name: str, when: str, is_met: Callable[[str, float, float], bool]) -> Row:
        found: dict[str, list[float]] = {side.name: [] for side in self._sides}
        lines = {side.name: self._line(side, name) for side in self._sides}
        for side in self._sides:
            side.call_ms(lines[side.name])
        for _ in range(self._options.calls):
            for side in self._sides:
                found[side.name].append(side.call_ms(lines[side.name]))
        ours, theirs = median(found["muster"]), median(found["slurm"])
        metric = f"{name}, {when}, ms"
        print(f"{metric}: muster {ours:.1f}, slurm {theirs:.1f}", flush=True)
        return _row(metric, ours, theirs, theirs / ours, met=is_met(name, ours, theirs))

    def _line(self, side: Side, name: str) -> str:
        if name != "scontrol show job":
            return COMMANDS[name]
        return f"{COMMANDS[name]} {side.call('squeue -h -o %A').split()[-1]}"

    def _submissions(self, shells: int) -> Row:
        count = self._options.submissions
        found: dict[str, float] = {}
        for side in self._sides:
            loop: Loop = ShellLoop(environ=side.environ)
            found[side.name] = count / seconds(loop, clients=shells, count=count)
            side.system.clear()
        metric = f"sbatch calls/s, {shells} shell{'s' if shells > 1 else ''}"
        ours, theirs = found["muster"], found["slurm"]
        print(f"{metric}: muster {ours:.1f}, slurm {theirs:.1f}", flush=True)
        return _row(metric, ours, theirs, ours / theirs, met=ours >= theirs)

    def _array(self) -> Row:
        count = self._options.array
        found = {side.name: count / side.array_s(count) for side in self._sides}
        ours, theirs = found["muster"], found["slurm"]
        metric = f"tasks completed/s, an array of {count:,}"
        print(f"{metric}: muster {ours:.1f}, slurm {theirs:.1f}", flush=True)
        return _row(metric, ours, theirs, ours / theirs, met=ours >= theirs)


def main() -> None:
    options = _options()
    tidy_when_told_to_end()
    load = os.getloadavg()[0]
    with (
        muster(nodes=NODES, gpus=f"{GPUS_PER_NODE}xA100-40GB") as home,
        slurm_commands(home) as environ,
        laboratory(nodes=NODES, gpus_per_node=GPUS_PER_NODE) as lab,
    ):
        slurm = SlurmSystem(lab)
        sides = (Side(MusterSystem(home), environ), Side(slurm, lab.environ))
        rows = Contest(sides, options).rows()
        version = lab.version
        slurm.close()
    missed = [str(row["metric"]) for row in rows if row["bar"] == "missed"]
    figures: dict[str, Cell] = {
        "least_ratio": min(float(row["ratio"]) for row in rows),
        "bars_missed": len(missed),
        "allowed_ms": ALLOWED_MS,
        "calls": options.calls,
        "load_before": load,
        "slurm": f"{version}, SchedulerParameters={BEST_PARAMETERS}, slurmdbd with MariaDB",
    }
    report("slurm-door", figures, rows, list_as="rows")
    for metric in missed:
        print(f"bar not met: {metric}")


def _within_bar(_: str, ours: float, theirs: float) -> bool:
    return ours - theirs <= ALLOWED_MS


def _listing_bar(name: str, ours: float, theirs: float) -> bool:
    return _within_bar(name, ours, theirs) if name == "sbatch" else ours <= theirs


def _row(metric: str, ours: float, theirs: float, ratio: float, *, met: bool) -> dict[str, Cell]:
    return {
        "metric": metric,
        "muster": round(ours, 1),
        "slurm": round(theirs, 1),
        "ratio": round(ratio, 2),
        "bar": "met" if met else "missed",
    }


def _options() -> argparse.Namespace:
    """SCALE below 1 tries it out with less of everything."""
    scale = float(os.environ.get("SCALE", "1"))
    parser = argparse.ArgumentParser(description="Measure Muster's Slurm commands beside Slurm's.")
    parser.add_argument("--calls", type=int, default=max(3, round(30 * scale)))
    parser.add_argument("--submissions", type=int, default=max(16, round(1_000 * scale)))
    parser.add_argument("--array", type=int, default=max(32, round(5_000 * scale)))
    parser.add_argument("--listed", type=int, default=max(100, round(20_000 * scale)))
    return parser.parse_args()


if __name__ == "__main__":
    main()
