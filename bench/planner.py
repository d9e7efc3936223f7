"""How long a cycle takes in an installation of full size, and how much memory it needs.

A cycle is what `muster up` does when it plans: snapshot, wire, plan and verification in the
planner's process, and the commit to SQLite. `first` plans into an empty cluster, `second` follows
it; before each later cycle 100 jobs ended and 100 arrived. Seconds are by the wall clock; `_cpu_s`
is the processor time of both processes, which says more on a machine that has other work.

To compare with an older checkout in the same run: make bench NAME=planner BEFORE=../old
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.report import Cell, Row, report
from bench.world import Size

HERE = Path(__file__).resolve().parent.parent

BARS: Mapping[str, float] = {
    "first_s": 6.0,
    "second_s": 1.0,
    "later_median_s": 0.2,
    "later_worst_s": 0.5,
    "node_edit_worst_s": 0.5,
    "queue_edit_s": 0.5,
    "array_first_s": 0.5,
    "array_later_median_s": 0.2,
    "answer_worst_s": 1.0,
    "rehearsal_worst_s": 1.0,
    "controller_rss_mib": 1_024,
    "planner_rss_mib": 1_024,
}

Laps = Mapping[str, Mapping[str, float]]


def main() -> None:
    options = _options()
    after = figures(deployed(HERE, options))
    before = None if options.before is None else figures(deployed(options.before, options))
    report("planner", _kept(after, before), table(after, before))


def deployed(checkout: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One run with the code of that checkout; see `bench._deployed`."""
    checkout = checkout.resolve()
    arguments = [
        f"--{name}={getattr(options, name)}"
        for name in ("nodes", "pending", "queues", "seed", "cycles", "array")
    ]
    done = subprocess.run(  # noqa: S603 our own program
        [sys.executable, str(HERE / "bench" / "_deployed.py"), *arguments],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": f"{checkout / 'src'}:{checkout}"},
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def figures(found: Mapping[str, Any]) -> dict[str, Cell]:
    laps: Laps = found["laps"]
    made: dict[str, Cell] = {}
    for clock in ("s", "cpu_s"):
        made |= _by(laps, clock)
    others = {name: value for name, value in found.items() if name != "laps"}
    return made | others


def _by(laps: Laps, clock: str) -> dict[str, Cell]:
    def seconds(start: str) -> list[float]:
        return [
            lap["wall_s"] if clock == "s" else lap["controller_cpu_s"] + lap["planner_cpu_s"]
            for name, lap in laps.items()
            if name.startswith(start)
        ]

    made: dict[str, Cell] = {
        f"first_{clock}": seconds("first")[0],
        f"second_{clock}": seconds("second")[0],
    }
    for name, start, summary in (
        ("later_median", "later-", median),
        ("later_worst", "later-", max),
        ("node_edit_worst", "node-", max),
        ("queue_edit", "queue-", max),
        ("array_first", "array-first", max),
        ("array_later_median", "array-later", median),
        ("answer_worst", "answer-", max),
        ("rehearsal_worst", "rehearsal-", max),
    ):
        if found := seconds(start):
            made[f"{name}_{clock}"] = summary(found)
    return made


def table(after: Mapping[str, Cell], before: Mapping[str, Cell] | None) -> list[Row]:
    rows: list[Row] = []
    for name, ours in after.items():
        row: dict[str, Cell] = {"figure": name}
        if before is not None:
            row["before"] = before.get(name, "")
        rows.append(row | {"after": ours, "bar": BARS.get(name, "")})
    return rows


def _kept(after: Mapping[str, Cell], before: Mapping[str, Cell] | None) -> dict[str, Cell]:
    old = {f"before_{name}": value for name, value in (before or {}).items()}
    return {**after, **old}


def _options(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure cycles as they are deployed.")
    size = Size()
    parser.add_argument("--nodes", type=int, default=size.nodes)
    parser.add_argument("--pending", type=int, default=size.pending)
    parser.add_argument("--queues", type=int, default=size.queues)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cycles", type=int, default=10)
    parser.add_argument("--array", type=int, default=50_000, help="tasks of the array that waits")
    before = os.environ.get("BEFORE") or None
    parser.add_argument(
        "--before", type=Path, default=before and Path(before), help="an older checkout"
    )
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
