"""Which level jobs deserve, learned from how long others ran: a Gittins index in whole steps.

Jobs are alike that asked for about as many GPUs and have run for about as long. Of those who came
so far, some ended before they had run twice as long. From these chances follows, for the best
amount of time that one could grant a job next, how much GPU-time such a grant costs for each job
that ends by it. The level is the binary logarithm of that: on level 12, about 2^12 GPU-seconds are
spent for each end.

For early completion all ends count alike. Then short jobs may wait long behind others of which it
is known that they will end. For little slowdown an end counts by the root of how short the job was:
one after twenty minutes for half as much as one after five. By the shortness itself, as slowdown
asks for in theory, jobs ended later on traces, and slowdown was hardly less.

Chances are looked up from the general to the special: half of all jobs end before they have run
twice as long, as is usual for the times that programs run; then as many as did here in this bracket
of time, and of this size. Where nothing is known the level grows with the GPU-time had, which
is least attained service.
"""

from collections import Counter
from collections.abc import Iterable
from math import log2

from muster.model.levels import (
    BRACKETS,
    FIRST_BRACKET,
    HIGHEST_LEVEL,
    SIZES,
    Levels,
    bracket_of,
    end_of,
)
from muster.model.policy import Aim

CHANCE = 0.5
"""Of jobs about which nothing is known, so many end before they have run twice as long."""

PRIOR_WEIGHT = 4.0
"""The more general case counts like so many jobs, as for predictions of durations."""

SLACK = 0.75
"""A level stays until it is off by so much, lest jobs go to and fro: half is what rounding does."""

Kind = tuple[int, int]
"""The size of a job, and the bracket of time that it is in."""


class Lifetimes:
    """How far jobs came: those who ended in a bracket, and those who were at risk to.

    A job that left the bracket behind was at risk as a whole; one that is in it, with the part
    that it has behind it. So those count who have not ended yet, and will end last.
    """

    def __init__(self) -> None:
        self.ended: Counter[Kind] = Counter()
        self.at_risk: dict[Kind, float] = {}
        self.seen = 0

    def end(self, size: int, ran: int) -> None:
        """A job of this size is over; it ran for so long."""
        bracket = bracket_of(ran)
        self.ended[size, bracket] += 1
        self._pass(size, brackets=bracket + 1)
        self.seen += 1

    def with_live(self, live: Iterable[tuple[int, int]]) -> "Lifetimes":
        """The same, and jobs that are not over, by size and how long they ran."""
        both = Lifetimes()
        both.ended.update(self.ended)
        both.at_risk.update(self.at_risk)
        both.seen = self.seen
        for size, ran in live:
            bracket = bracket_of(ran)
            both._pass(size, brackets=bracket)
            part = (ran - _begin_of(bracket)) / _width_of(bracket)
            both.at_risk[size, bracket] = both.at_risk.get((size, bracket), 0.0) + part
        return both

    def of_all(self, bracket: int) -> tuple[int, float]:
        """Who ended there, and who was at risk, of all sizes."""
        ended = sum(self.ended[size, bracket] for size in range(SIZES))
        return ended, sum(self.at_risk.get((size, bracket), 0.0) for size in range(SIZES))

    def _pass(self, size: int, *, brackets: int) -> None:
        for each in range(brackets):
            self.at_risk[size, each] = self.at_risk.get((size, each), 0.0) + 1


def levels_from(known: Lifetimes, before: Levels | None, aim: Aim = Aim.COMPLETION) -> Levels:
    """The levels as they are seen now; those that are nearly what they were stay so."""
    chances = [_part(*known.of_all(each), CHANCE) for each in _ALL]
    worths = _WORTHS[aim]
    return Levels(
        by_size=tuple(
            _settled(_costs(size, known, chances, worths), before and before.by_size[size])
            for size in range(SIZES)
        )
    )


_ALL = range(BRACKETS)

_WORTHS = {
    Aim.COMPLETION: [1.0 for _ in _ALL],
    Aim.SLOWDOWN: [(FIRST_BRACKET / end_of(each)) ** 0.5 for each in _ALL],
}
"""What an end in each bracket counts."""


def _costs(size: int, known: Lifetimes, chances: list[float], worths: list[float]) -> list[float]:
    """GPU-seconds for each end, by bracket."""
    own = [
        _part(known.ended[size, each], known.at_risk.get((size, each), 0.0), chances[each])
        for each in _ALL
    ]
    widths = [_width_of(each) / 1_000 for each in _ALL]
    brackets = list(zip(own, widths, worths, strict=True))
    return [_cost(brackets[each:]) * (1 << size) for each in _ALL]


def _cost(brackets: list[tuple[float, float, float]]) -> float:
    """Seconds for each end, if the job is granted as many brackets as is best."""
    left, spent, gained, best = 1.0, 0.0, 0.0, float("inf")
    for chance, width, worth in brackets:
        # Those who end in a bracket end in its middle, as far as anybody knows.
        spent += left * width * (1 - chance / 2)
        gained += left * chance * worth
        left *= 1 - chance
        best = min(best, spent / gained)
    return best


def _part(ended: int, at_risk: float, otherwise: float) -> float:
    return (ended + PRIOR_WEIGHT * otherwise) / (at_risk + PRIOR_WEIGHT)


def _begin_of(bracket: int) -> int:
    return end_of(bracket - 1) if bracket else 0


def _width_of(bracket: int) -> int:
    return end_of(bracket) - _begin_of(bracket)


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
