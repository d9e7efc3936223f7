"""What the users of a trace would have seen."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from bench._jct_trace import Row

BOUND_S = 600
"""Shorter jobs count as this long when slowdowns are compared."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One policy on one trace."""

    jct_s: float
    queue_s: float
    p99_s: int
    makespan_s: int
    slowdown: float
    worst_slowdown: float
    longest_wait_s: int
    fairness: float
    size_fairness: float


def measured(rows: Sequence[Row], ended: Mapping[int, int]) -> Measured:
    """What a user of the trace would have seen."""
    taken = sorted(ended[row.number] - row.at_s for row in rows)
    slow = {row.number: _slowdown(row, ended[row.number]) for row in rows}
    return Measured(
        jct_s=fmean(taken),
        queue_s=fmean(taken) - fmean(row.lasts_s for row in rows),
        p99_s=taken[int(len(taken) * 0.99)],
        makespan_s=max(ended.values()) - min(row.at_s for row in rows),
        slowdown=fmean(slow.values()),
        worst_slowdown=sorted(slow.values())[int(len(slow) * 0.99)],
        longest_wait_s=max(ended[row.number] - row.at_s - row.lasts_s for row in rows),
        fairness=_evenness((row.user or row.park, slow[row.number]) for row in rows),
        size_fairness=_evenness((str(row.gpus), slow[row.number]) for row in rows),
    )


def _slowdown(row: Row, ended_s: int) -> float:
    return max(1.0, (ended_s - row.at_s) / max(row.lasts_s, BOUND_S))


def _evenness(slowdowns: Iterable[tuple[str, float]]) -> float:
    """Jain's index of the means."""
    whose: dict[str, list[float]] = defaultdict(list)
    for who, slowdown in slowdowns:
        whose[who].append(slowdown)
    means = [fmean(each) for each in whose.values()]
    return sum(means) ** 2 / (len(means) * sum(each * each for each in means))
