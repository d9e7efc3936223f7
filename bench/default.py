"""The default policy on Venus, ITP and Philly, beside what others do with the same knowledge.

The site is the one that `muster up` begins with, unchanged; it goes through the real cycle. Jobs
come without limits, with limits as users set them, or with exact ones.
"""

import argparse
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import _jct_queue, _jct_trace
from bench._default_ours import Attempt, Replayed, Setting, ours, site_with
from bench._jct_measured import BOUND_S, Measured, measured
from bench._jct_queue import KNOWLEDGE, OVERESTIMATE, TESTED, Limits, Started
from bench._jct_trace import GPUS_PER_NODE, MEAN_LOAD, Park
from bench._jct_trace import Row as TraceRow
from bench._kept import HELP, kept
from bench.report import Cell, Row, aligned, report
from muster.model.errors import MusterError
from muster.model.site import Site

TRACES = {
    "venus": _jct_trace.venus,
    "venus-together": _jct_trace.venus_together,
    "itp": _jct_trace.itp,
    "philly": _jct_trace.philly,
}
ANCHORS: Mapping[str, Callable[[Park, Limits], Started]] = {
    "FIFO": lambda park, _: _jct_queue.fifo(park),
    "EASY": _jct_queue.easy,
    "conservative": _jct_queue.conservative,
    "Slurm-like": _jct_queue.multifactor,
    "SJF": lambda park, _: _jct_queue.sjf(park),
    "SJF, passing": lambda park, _: _jct_queue.passing(park),
}
OURS, SAVING = "ours", "ours, saving"
ORACLE = "SJF"
RIVALS = ("EASY", "Slurm-like")
OF_BEST = 1.02
"""On any cluster, of the better of the rivals, with the same knowledge."""

OF_SJF = 1.15
"""In total on each trace, without limits."""

NOTE = f"""\
Limits: none; users': the next usual limit above {OVERESTIMATE} times the duration; exact. SJF and
SJF, passing know every duration, whatever the others know; FIFO needs to know nothing.
EASY: order of arrival, one reservation; jobs pass that end before it or fit beside it. Without
limits no reservation has a date, and all that fits passes. Conservative: each of the first
{TESTED:,} jobs has a reservation, made again at each event. Slurm-like: age and fair share, one
reservation of whole nodes; a job without a limit counts as a year, as in Slurm.
Bars: on each cluster JCT at most {OF_BEST} of the better of EASY and Slurm-like with the same
knowledge; without limits at most {OF_SJF} of SJF on each trace; slowdown and longest wait at most
SJF's. The halves are those of each cluster's time, and jobs belong to where they were submitted;
constants are settled on the first half, and verdicts are about the second.
Ours, saving: every job writes a checkpoint when it is stopped; going on costs 7 s (1 GPU), 30 s
(one node) or 60 s. In the other rows a stopped job loses its work.
Venus-together: both clusters as one, where large gangs meet many small jobs.
Venus and Philly: published sizes. ITP and Philly's four smallest clusters: as large as makes their
mean load {MEAN_LOAD:.0%}.
Slowdown: JCT over duration, at least {BOUND_S} s. Fairness: Jain's index of mean slowdown over
users, or over clusters where users are not named. Utilisation: from the first submission to the
last."""


@dataclass(frozen=True, slots=True)
class Contest:
    """All policies on one virtual cluster, with the same knowledge."""

    trace: str
    park: Park
    knowledge: str
    runs: Mapping[str, Replayed]


@dataclass(frozen=True, slots=True)
class Score:
    """One policy on one or more virtual clusters: all jobs, and those of either half."""

    whole: Measured
    halves: tuple[Measured | None, Measured | None]
    utilisation: float


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
    run = partial(
        _contest,
        site=site_with(options.policy),
        checkpoints=options.checkpoints,
        folder=options.kept,
    )
    contests = _contests(tasks, run, options.processes)
    clusters = [row for contest in contests for row in _cluster_rows(contest)]
    table = list(_policy_rows(contests))
    figures = _figures(contests, clusters, table)
    result = _result(options)
    if result is not None:
        report(f"{result}-clusters", {}, clusters)
        print()
        report(result, figures, table)
    else:
        summary = [{"figure": key, "value": value} for key, value in figures.items()]
        print("\n\n".join(["", aligned(clusters), aligned(table), aligned(summary)]))
    print(f"\n{NOTE}")


Task = tuple[str, Park, str]
"""The name of a trace, one of its virtual clusters, and what is known of its jobs."""


def _contests(
    tasks: Sequence[Task], run: Callable[[Task], Contest], processes: int
) -> list[Contest]:
    """The largest first, so many at once; each is told of when it is finished."""
    found: dict[tuple[str, str, str], Contest] = {}
    with ProcessPoolExecutor(processes) as pool:
        largest_first = sorted(tasks, key=lambda task: -len(task[1].rows))
        for future in as_completed([pool.submit(run, task) for task in largest_first]):
            contest = future.result()
            found[contest.trace, contest.park.name, contest.knowledge] = contest
            for row in _cluster_rows(contest):
                print("  ".join(f"{key}: {value}" for key, value in row.items()), flush=True)
    return [found[name, park.name, knowledge] for name, park, knowledge in tasks]


def _contest(task: Task, *, site: Site, checkpoints: bool, folder: Path | None) -> Contest:
    name, park, knowledge = task
    limits = KNOWLEDGE[knowledge]

    def run() -> dict[str, Replayed]:
        runs = {policy: _anchored(park, run(park, limits)) for policy, run in ANCHORS.items()}
        runs[OURS] = ours(park, Setting(limits, site=site))
        if checkpoints:
            runs[SAVING] = ours(park, Setting(limits, saves=True, site=site))
        return runs

    key = ("default", name, park.name, knowledge)
    return Contest(name, park, knowledge, kept(folder, key, dict[str, Replayed], run))


def _anchored(park: Park, started: Started) -> Replayed:
    ended = _jct_queue.ends_of(park, started)
    attempts = (Attempt(started[row.number], ended[row.number], row.gpus) for row in park.rows)
    return Replayed(ended, tuple(attempts))


def score(contests: Sequence[Contest], policy: str) -> Score:
    """How a policy did on all of these."""
    ended = {job: at for each in contests for job, at in each.runs[policy].ended.items()}
    halves = [_halves(each.park) for each in contests]
    return Score(
        whole=measured([row for each in contests for row in each.park.rows], ended),
        halves=(
            _measured_if_any([row for first, _ in halves for row in first], ended),
            _measured_if_any([row for _, second in halves for row in second], ended),
        ),
        utilisation=_utilisation((each.park, each.runs[policy].attempts) for each in contests),
    )


def _halves(park: Park) -> tuple[list[TraceRow], list[TraceRow]]:
    """The jobs that were submitted in the first half of the cluster's time, and the others."""
    middle_s = (park.rows[0].at_s + park.rows[-1].at_s) / 2
    first = [row for row in park.rows if row.at_s < middle_s]
    return first, [row for row in park.rows if row.at_s >= middle_s]


def _measured_if_any(rows: Sequence[TraceRow], ended: Mapping[int, int]) -> Measured | None:
    return measured(rows, ended) if rows else None


def _utilisation(parts: Iterable[tuple[Park, Sequence[Attempt]]]) -> float:
    """The part of all GPU time between the first submission and the last that jobs held."""
    used = offered = 0
    for park, attempts in parts:
        begin, end = park.rows[0].at_s, park.rows[-1].at_s
        offered += (end - begin) * park.nodes * GPUS_PER_NODE
        used += sum(
            each.gpus * max(0, min(end, each.ended_s) - max(begin, each.begun_s))
            for each in attempts
        )
    return used / offered if offered else 0.0


def _cluster_rows(contest: Contest) -> Iterator[Row]:
    """Ours beside the better of the rivals."""
    scores = {policy: score([contest], policy) for policy in contest.runs}
    for policy in (OURS, SAVING):
        if policy not in scores:
            continue
        whole, first, second = _of_best(scores, policy)
        yield {
            "trace": contest.trace,
            "cluster": contest.park.name,
            "limits": contest.knowledge,
            "policy": policy,
            "jobs": len(contest.park.rows),
            "JCT, s": round(scores[policy].whole.jct_s),
            **{f"{rival}, s": round(scores[rival].whole.jct_s) for rival in (*RIVALS, ORACLE)},
            "of best": round(whole, 3),
            "first half": round(first, 3),
            "second half": round(second, 3),
            "verdict": _verdict(is_met=second <= OF_BEST),
            "restarts": len(contest.runs[policy].attempts) - len(contest.park.rows),
            "CPU, s": round(contest.runs[policy].cpu_s, 1),
        }


def _of_best(scores: Mapping[str, Score], policy: str) -> tuple[float, float, float]:
    """JCT over that of the better rival: of all jobs, and of either half."""
    rivals = [scores[rival] for rival in RIVALS]
    of_whole = scores[policy].whole.jct_s / min(rival.whole.jct_s for rival in rivals)
    of_halves = [
        _ratio(scores[policy].halves[half], [rival.halves[half] for rival in rivals])
        for half in (0, 1)
    ]
    return of_whole, of_halves[0], of_halves[1]


def _ratio(found: Measured | None, rivals: Iterable[Measured | None]) -> float:
    """Where nothing was submitted, there is nothing to be worse at."""
    if found is None:
        return 1.0
    return found.jct_s / min(rival.jct_s for rival in rivals if rival is not None)


def _policy_rows(contests: Sequence[Contest]) -> Iterator[Row]:
    by_kind: dict[tuple[str, str], list[Contest]] = defaultdict(list)
    for contest in contests:
        by_kind[contest.trace, contest.knowledge].append(contest)
    for (trace, knowledge), together in by_kind.items():
        scores = {policy: score(together, policy) for policy in together[0].runs}
        for policy, each in scores.items():
            yield {"trace": trace, "limits": knowledge, "policy": policy} | _policy_row(
                each, scores[ORACLE], is_ours=policy in {OURS, SAVING}, knowledge=knowledge
            )


def _policy_row(found: Score, oracle: Score, *, is_ours: bool, knowledge: str) -> dict[str, Cell]:
    ratios = [_ratio(found.halves[half], [oracle.halves[half]]) for half in (0, 1)]
    judged, bar = found.halves[1] or found.whole, oracle.halves[1] or oracle.whole
    row: dict[str, Cell] = {
        "JCT, s": round(found.whole.jct_s),
        "p99, s": found.whole.p99_s,
        "slowdown": found.whole.slowdown,
        "longest wait, s": found.whole.longest_wait_s,
        "fairness": found.whole.fairness,
        "utilisation": found.utilisation,
        "of SJF": found.whole.jct_s / oracle.whole.jct_s,
        "first half": ratios[0],
        "second half": ratios[1],
        "slowdown, second half": judged.slowdown,
        "longest wait, second half, s": judged.longest_wait_s,
    }
    verdicts = {
        "JCT verdict": _verdict(is_met=ratios[1] <= OF_SJF) if knowledge == "none" else "",
        "slowdown verdict": _verdict(is_met=judged.slowdown <= bar.slowdown),
        "wait verdict": _verdict(is_met=judged.longest_wait_s <= bar.longest_wait_s),
    }
    return row | {key: value if is_ours else "" for key, value in verdicts.items()}


def _verdict(*, is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def _figures(
    contests: Sequence[Contest], clusters: Sequence[Row], table: Sequence[Row]
) -> dict[str, Cell]:
    figures: dict[str, Cell] = {}
    for knowledge in dict.fromkeys(contest.knowledge for contest in contests):
        of_this = [row for row in clusters if row["limits"] == knowledge and row["policy"] == OURS]
        met = sum(row["verdict"] == "met" for row in of_this)
        figures[f"{knowledge}_clusters_met"] = f"{met} of {len(of_this)}"
        figures[f"{knowledge}_worst_of_best"] = max(float(row["second half"]) for row in of_this)
    for row in table:
        if row["policy"] == OURS:
            figures[f"{row['trace']}_{row['limits']}_of_sjf"] = row["of SJF"]
    figures["cpu_s"] = sum(contest.runs[OURS].cpu_s for contest in contests)
    return figures


def _result(options: argparse.Namespace) -> str | None:
    """What the figures are kept as: of whole traces alone; other rules are part of the name."""
    if options.parks or set(options.knowledge) != set(KNOWLEDGE):
        return None
    rules = [] if options.policy is None else [options.policy.stem]
    saving = ["saving"] if options.checkpoints else []
    is_whole = set(options.traces) == set(TRACES)
    return "-".join(["default", *rules, *saving, *([] if is_whole else options.traces)])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", nargs="*", default=list(TRACES), choices=list(TRACES))
    parser.add_argument("--knowledge", nargs="*", default=list(KNOWLEDGE), choices=list(KNOWLEDGE))
    parser.add_argument("--parks", nargs="*", default=[], help="only these virtual clusters")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--kept", type=Path, metavar="FOLDER", help=HELP)
    parser.add_argument("--policy", type=Path, help="take the policy section of this file instead")
    parser.add_argument(
        "--checkpoints", action="store_true", help="also as if every job wrote checkpoints"
    )
    return parser.parse_args()


if __name__ == "__main__":
    try:
        main()
    except MusterError as error:
        raise SystemExit(str(error)) from error
