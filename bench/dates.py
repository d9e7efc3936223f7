"""How well the first date holds that a waiting job gets: the default policy, on the traces.

Each trace comes without limits, with users' limits and with exact ones. Beside it is what Slurm's
method says of the same jobs, which is a date and no range: those that run leave at their limits.
"""

import argparse
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from bench import _jct_trace
from bench._dates_told import Dates, Range, by_limits, forecast, waited
from bench._default_ours import Setting
from bench._jct_queue import KNOWLEDGE, TESTED
from bench._jct_trace import Park
from bench._kept import HELP, kept
from bench.report import Cell, aligned, report
from muster.model.errors import MusterError

TRACES = {"venus": _jct_trace.venus, "itp": _jct_trace.itp, "philly": _jct_trace.philly}
OURS, SLURM = "ours", "Slurm's method"
HALVES = ("first", "second")
SAMPLED = 100
"""Of each cluster about so many jobs are asked about, evenly spread over those that wait."""

INSIDE = (0.75, 0.85)
WIDTH = 1.0
ERROR: Mapping[str, float] = {"none": 0.5, "exact": 0.25}

NOTE = f"""\
Of the jobs that could not start when they were submitted, about {SAMPLED} of each cluster are asked
about then. The board of an installation is asked: the date is the first that it shows, be it early
news of one course or a sketch, and it learns from all whom it told one. Half: of the trace in time;
constants were settled on the first, and the second is judged. Inside: it started in its range (a
date without a range: within a minute). Width: the median width of a range over the median wait.
Error: how far the middle was from the start, over the wait; the median. Bars: inside
{INSIDE[0]:.0%} to {INSIDE[1]:.0%}; width at most the wait; error at most {ERROR["exact"]:.0%} with
exact limits and {ERROR["none"]:.0%} without any.
Slurm's method: replayed under EASY in order of arrival; each of the first {TESTED} jobs in line
reserves the earliest room that limits promise. Without limits there is none."""

PINPOINT_S = 60
"""A date without a range holds if the job starts so soon before or after it."""

Task = tuple[str, Park, str]
"""The name of a trace, one of its virtual clusters, and what is known of its jobs."""


@dataclass(frozen=True, slots=True)
class Held:
    """What became of one date: when it was given, its range if there was one, and the start."""

    half: str
    at_s: int
    started_s: int
    said: Range | None


@dataclass(frozen=True, slots=True)
class Judged:
    """How well dates held; figures of ranges are 0 where there was no date at all."""

    asked: int
    dated: float
    inside: float
    width: float
    error: float
    wait_s: float


def main() -> None:
    options = _options()
    where = _jct_trace.folder()
    tasks = [
        (name, park, knowledge)
        for name in options.traces
        for park in TRACES[name](where)
        for knowledge in options.knowledge
        if not options.parks or park.name in options.parks
    ]
    found: dict[tuple[str, str, str], list[Held]] = defaultdict(list)
    for task, by_method in _dates(tasks, options):
        name, park, knowledge = task
        for method, held in by_method.items():
            found[name, knowledge, method] += held
            for shown in _rows(name, knowledge, method, held):
                line = "  ".join(f"{key}: {value}" for key, value in shown.items())
                print(f"cluster: {park.name}  {line}", flush=True)
    table = [
        row
        for name in options.traces
        for knowledge in options.knowledge
        for method in (OURS, SLURM)
        for row in _rows(name, knowledge, method, found[name, knowledge, method])
    ]
    result = _result(options)
    if result is not None:
        report(result, {"sampled": options.sampled}, table)
    else:
        print(f"\n{aligned(table)}")
    print(f"\n{NOTE}")


def judged(dates: Sequence[Held]) -> Judged:
    """How well they held."""
    ranges = [(each, each.said) for each in dates if each.said is not None]
    wait_s = median(each.started_s - each.at_s for each in dates)
    if not ranges:
        return Judged(len(dates), 0.0, 0.0, 0.0, 0.0, wait_s)
    return Judged(
        asked=len(dates),
        dated=len(ranges) / len(dates),
        inside=sum(_is_inside(*each) for each in ranges) / len(ranges),
        width=median(said.late_s - said.early_s for _, said in ranges) / max(1, wait_s),
        error=median(_error(*each) for each in ranges),
        wait_s=wait_s,
    )


def _is_inside(held: Held, said: Range) -> bool:
    if said.early_s == said.late_s:
        return abs(held.started_s - said.early_s) <= PINPOINT_S
    # The trace counts in whole seconds.
    return said.early_s - 1 <= held.started_s <= said.late_s + 1


def _error(held: Held, said: Range) -> float:
    return abs(said.middle_s - held.started_s) / max(1, held.started_s - held.at_s)


def _dates(
    tasks: Sequence[Task], options: argparse.Namespace
) -> Iterator[tuple[Task, Mapping[str, list[Held]]]]:
    """The largest first, so many at once."""
    run = partial(_dates_of, sampled=options.sampled, folder=options.kept)
    with ProcessPoolExecutor(options.processes) as pool:
        largest_first = sorted(tasks, key=lambda task: -len(task[1].rows))
        of = {pool.submit(run, task): task for task in largest_first}
        for future in as_completed(of):
            yield of[future], future.result()


def _dates_of(task: Task, *, sampled: int, folder: Path | None) -> dict[str, list[Held]]:
    name, park, knowledge = task
    limits = KNOWLEDGE[knowledge]

    def run() -> dict[str, list[Held]]:
        every = max(1, waited(park, limits) // sampled)
        return {
            OURS: list(_held(park, forecast(park, Setting(limits), every))),
            SLURM: list(_held(park, by_limits(park, limits, every))),
        }

    key = ("dates", name, park.name, knowledge)
    return kept(folder, key, dict[str, list[Held]], run)


def _held(park: Park, dates: Dates) -> Iterable[Held]:
    middle_s = (park.rows[0].at_s + park.rows[-1].at_s) / 2
    for row in park.rows:
        if row.number in dates.first:
            half = HALVES[row.at_s > middle_s]
            started_s = dates.started[row.number]
            yield Held(half, row.at_s, started_s, dates.first[row.number])


def _rows(
    name: str, knowledge: str, method: str, held: Sequence[Held]
) -> Iterator[dict[str, Cell]]:
    """A row for each half of the trace."""
    for half in HALVES:
        dates = [each for each in held if each.half == half]
        if dates:
            yield _row((name, knowledge, method, half), judged(dates))


def _row(which: tuple[str, str, str, str], found: Judged) -> dict[str, Cell]:
    name, knowledge, method, half = which
    row: dict[str, Cell] = {
        "trace": name,
        "limits": knowledge,
        "method": method,
        "half": half,
        "asked": found.asked,
        "dated": round(found.dated, 3),
        "inside": round(found.inside, 3),
        "width": round(found.width, 3),
        "error": round(found.error, 3),
        "median wait, s": round(found.wait_s),
        "verdict": "",
    }
    is_judged = method == OURS and half == HALVES[1]
    return row | {"verdict": _verdict(found, knowledge)} if is_judged else row


def _verdict(found: Judged, knowledge: str) -> str:
    """Which bars are missed."""
    bars = {
        "dated": found.dated > 0,
        "inside": INSIDE[0] <= found.inside <= INSIDE[1],
        "width": found.width <= WIDTH,
        "error": found.error <= ERROR.get(knowledge, found.error),
    }
    missed = [bar for bar, is_met in bars.items() if not is_met]
    return f"MISSED: {', '.join(missed)}" if missed else "met"


def _result(options: argparse.Namespace) -> str | None:
    """What the figures are kept as: of whole traces alone."""
    if options.parks or set(options.knowledge) != set(KNOWLEDGE):
        return None
    is_whole = set(options.traces) == set(TRACES)
    return "dates" if is_whole else "-".join(["dates", *options.traces])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", nargs="*", default=list(TRACES), choices=list(TRACES))
    parser.add_argument("--knowledge", nargs="*", default=list(KNOWLEDGE), choices=list(KNOWLEDGE))
    parser.add_argument("--parks", nargs="*", default=[], help="only these virtual clusters")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--kept", type=Path, metavar="FOLDER", help=HELP)
    parser.add_argument("--sampled", type=int, default=SAMPLED, help="jobs of each cluster")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        main()
    except MusterError as error:
        raise SystemExit(str(error)) from error
