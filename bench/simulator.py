"""How long it takes to simulate whole traces on one core, through the controller's own loop.

ITP (69,351 jobs, ten clusters) and Philly (82,247 jobs, virtual clusters as Helios names them),
each job a request that is admitted, planned, verified, committed, begun, ended and written down.
The folder of traces is named by MUSTER_TRACES.
"""

import argparse
import resource
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench._jct_trace import Park, folder, itp, philly
from bench._simulated import Ride, ride
from bench.report import Cell, Row, report
from muster.model.errors import MusterError

MOST_S = 45.0
"""The bar for each trace."""

TRACES: dict[str, Callable[[Path], list[Park]]] = {"itp": itp, "philly": philly}


def main() -> None:
    options = _options()
    try:
        where = folder()
        rides = {name: ride(_some(TRACES[name](where), options.jobs)) for name in options.traces}
    except MusterError as missing:
        sys.exit(str(missing))
    figures: dict[str, Cell] = {}
    for name, found in rides.items():
        figures |= {f"{name}_{key}": value for key, value in _figures(found).items()}
    figures["peak_rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    report("simulator", figures, [_row(name, found) for name, found in rides.items()])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", nargs="*", default=list(TRACES), help="itp, philly")
    parser.add_argument("--jobs", type=int, help="only so many of each cluster, to try it out")
    return parser.parse_args()


def _some(parks: Sequence[Park], jobs: int | None) -> list[Park]:
    return [Park(park.name, park.nodes, park.rows[:jobs]) for park in parks]


def _figures(found: Ride) -> dict[str, Cell]:
    return {
        "jobs": found.jobs,
        "ended": found.ended,
        "events": found.events,
        "wall_s": found.wall_s,
        "cpu_s": found.cpu_s,
        "us_per_job": int(found.cpu_s * 1e6 / found.jobs),
    }


def _row(name: str, found: Ride) -> Row:
    return {
        "trace": name,
        "jobs": found.jobs,
        "wall, s": found.wall_s,
        "cpu, s": found.cpu_s,
        "us a job": int(found.cpu_s * 1e6 / found.jobs),
        "bar, s": MOST_S,
        "part of bar": found.wall_s / MOST_S,
        "met": "yes" if found.wall_s <= MOST_S else "no",
    }


if __name__ == "__main__":
    main()
