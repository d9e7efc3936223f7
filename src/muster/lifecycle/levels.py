"""Which level jobs deserve, learned from how long others ran: a Gittins index in whole steps.

Jobs are alike that asked for about as many GPUs and have run for about as long. Of those who came
so far, some ended before they had run twice as long. From these chances follows, for the best
amount of time that one could grant a job next, how much GPU-time such a grant costs for each job
that ends by it. The level is the binary logarithm of that: on level 12, about 2^12 GPU-seconds are
spent for each end. Where nothing is known, half of all jobs end before they have run twice as
long, as is usual for the times that programs run; then the level grows with the GPU-time had,
which is least attained service.
"""

from collections import Counter
from collections.abc import Iterable
from math import log2

from muster.model.levels import BRACKETS, HIGHEST_LEVEL, SIZES, Levels, bracket_of, end_of

CHANCE = 0.5
"""Of jobs about which nothing is known, so many end before they have run twice as long."""

PRIOR_WEIGHT = 4.0
"""The more general case counts like so many jobs, as for predictions of durations."""

SLACK = 0.75
"""A level stays until it is off by so much, lest jobs go to and fro: half is what rounding does."""

Kind = tuple[int, int]
"""The size of a job, and the bracket of time that it is in."""


class Lifetimes:
    """How far jobs came: those who left a bracket behind, and those who ended in it."""

    def __init__(self) -> None:
        self.passed: Counter[Kind] = Counter()
        self.ended: Counter[Kind] = Counter()
        self.seen = 0

    def end(self, size: int, ran: int) -> None:
        """A job of this size is over; it ran for so long."""
        self.ended[size, bracket_of(ran)] += 1
        self.pass_by(size, ran)
        self.seen += 1

    def pass_by(self, size: int, ran: int) -> None:
        """A job of this size has run for so long."""
        for bracket in range(bracket_of(ran)):
            self.passed[size, bracket] += 1

    def with_live(self, live: Iterable[tuple[int, int]]) -> "Lifetimes":
        """The same, and jobs that are not over, by size and how long they ran.

        Without them the long ones would be missing: those end last.
        """
        both = Lifetimes()
        both.passed.update(self.passed)
        both.ended.update(self.ended)
        both.seen = self.seen
        for size, ran in live:
            both.pass_by(size, ran)
        return both


def levels_from(known: Lifetimes, before: Levels | None) -> Levels:
    """The levels as they are seen now; those that are nearly what they were stay so."""
    in_all = [_part(_of_all(known.ended, each), _of_all(known.passed, each), CHANCE) for each in _B]
    return Levels(
        by_size=tuple(
            _settled(_costs(size, known, in_all), before and before.by_size[size])
            for size in range(SIZES)
        )
    )


_B = range(BRACKETS)


def _costs(size: int, known: Lifetimes, in_all: list[float]) -> list[float]:
    """GPU-seconds for each end, by bracket."""
    chances = [
        _part(known.ended[size, each], known.passed[size, each], in_all[each]) for each in _B
    ]
    widths = [(end_of(each) - (end_of(each - 1) if each else 0)) / 1_000 for each in _B]
    return [_cost(chances[each:], widths[each:]) * (1 << size) for each in _B]


def _cost(chances: list[float], widths: list[float]) -> float:
    """Seconds for each end, if the job is granted as many brackets as is best."""
    left, spent, best = 1.0, 0.0, float("inf")
    for chance, width in zip(chances, widths, strict=True):
        # Those who end in a bracket end in its middle, as far as anybody knows.
        spent += left * width * (1 - chance / 2)
        left *= 1 - chance
        best = min(best, spent / (1 - left))
    return best


def _part(ended: int, passed: int, otherwise: float) -> float:
    return (ended + PRIOR_WEIGHT * otherwise) / (ended + passed + PRIOR_WEIGHT)


def _of_all(counts: Counter[Kind], bracket: int) -> int:
    return sum(counts[size, bracket] for size in range(SIZES))


def _settled(costs: list[float], before: tuple[int, ...] | None) -> tuple[int, ...]:
    exact = [log2(cost) for cost in costs]
    if before is None:
        return tuple(_whole(each) for each in exact)
    return tuple(
        old if abs(new - old) <= SLACK else _whole(new)
        for old, new in zip(before, exact, strict=True)
    )


def _whole(exact: float) -> int:
    return min(max(round(exact), 0), HIGHEST_LEVEL)
