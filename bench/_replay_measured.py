"""What users saw of one replay, and how far off the first date was that they were told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf
from statistics import fmean, median

from bench._jct_measured import BOUND_S
from bench._jct_queue import HOUR_S
from bench._musters import percentile
from bench._replay_slice import ReplayedJob, Slice

WAITED_S = 5.0
"""Jobs that waited at least so long should have been told when they start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """When a job's script began and ended, in seconds since the first arrival."""

    started_s: float
    ended_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One system: when each job ran, and the first start that it told for those that waited."""

    ran: Mapping[int, Ran]
    told_s: Mapping[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Figures of one system.

    waited, dated: jobs that waited long, and which part of them was told a date.
    date_error: of the first date, as a part of the wait; the median, without end if there is none.
    """

    mean_jct_s: float
    p99_jct_s: float
    mean_slowdown: float
    mean_wait_s: float
    longest_wait_s: float
    utilisation: float
    waited: int
    dated: float
    date_error: float
    date_error_s: float


def measured(part: Slice, seen: Seen, hour_s: float) -> Measured:
    """What users saw; slowdowns are bounded as those of traces are, in compressed time."""
    bound_s = BOUND_S * hour_s / HOUR_S
    jcts = [seen.ran[job.number].ended_s - job.at_s for job in part.jobs]
    waits = {job.number: seen.ran[job.number].started_s - job.at_s for job in part.jobs}
    waited = [number for number, wait_s in waits.items() if wait_s >= WAITED_S]
    dated = [number for number in waited if number in seen.told_s]
    off_s = {each: abs(seen.told_s[each] - seen.ran[each].started_s) for each in dated}
    return Measured(
        mean_jct_s=fmean(jcts),
        p99_jct_s=percentile(jcts, 99),
        mean_slowdown=fmean(
            max(1.0, jct / max(job.lasts_s, bound_s))
            for job, jct in zip(part.jobs, jcts, strict=True)
        ),
        mean_wait_s=fmean(waits.values()),
        longest_wait_s=max(waits.values()),
        utilisation=_utilisation(part, seen.ran),
        waited=len(waited),
        dated=len(dated) / max(1, len(waited)),
        date_error=median(off_s[each] / waits[each] for each in dated) if dated else inf,
        date_error_s=median(off_s.values()) if dated else inf,
    )


def _utilisation(part: Slice, ran: Mapping[int, Ran]) -> float:
    """Which part of the cluster worked while jobs arrived."""
    return sum(job.gpus * _overlap_s(ran[job.number], until_s=part.span_s) for job in part.jobs) / (
        part.gpus * part.span_s
    )


def _overlap_s(ran: Ran, *, until_s: float) -> float:
    return max(0.0, min(ran.ended_s, until_s) - ran.started_s)


def ran_by(text: str, begun_s: float) -> Ran | None:
    """What a job's script wrote; None while it has not ended."""
    instants = text.split()
    if len(instants) < 2:
        return None
    started, ended = map(float, instants)
    return Ran(started_s=started - begun_s, ended_s=ended - begun_s)


def told_by(listing: str, begun_s: float) -> dict[int, float]:
    """From lines of `squeue --start -o "%A|%S"`: when each job is said to start, where it is."""
    found: dict[int, float] = {}
    for line in listing.splitlines():
        job, _, date = line.partition("|")
        if date[:1].isdigit():
            found[int(job)] = datetime.fromisoformat(date).astimezone().timestamp() - begun_s
    return found


def csv_lines(jobs: Sequence[ReplayedJob], seen: Mapping[str, Seen]) -> list[str]:
    """One line for each job, to find out where two systems decided otherwise."""
    names = sorted(seen)
    titles = ["number", "user", "at", "lasts", "limit_minutes", "nodes", "gpus"]
    lines = [",".join([*titles, *(f"{name}_{what}" for name in names for what in _WHAT)])]
    for job in jobs:
        cells = [job.number, job.user, f"{job.at_s:.3f}", f"{job.lasts_s:.3f}"]
        cells += [job.limit_minutes, job.nodes, job.gpus]
        for name in names:
            ran = seen[name].ran[job.number]
            told = seen[name].told_s.get(job.number)
            cells += [f"{ran.started_s:.3f}", f"{ran.ended_s:.3f}"]
            cells.append("" if told is None else f"{told:.3f}")
        lines.append(",".join(map(str, cells)))
    return lines


_WHAT = ("started", "ended", "told")
