"""Whose turn it is when nobody knows durations: by how soon jobs like this one were done so far.

Jobs are alike that ask for as many GPUs and have run for about as long. What is known of them is
how many came so far and how many of those ended before they had run twice as long. The promise of
a job is the best ratio of the chance to end to the GPU-time spent on it, over all the GPU-time that
one could grant it next (Gittins' index). With nothing known it falls with the GPU-time had:
least attained service, as in Tiresias, with finer classes.
"""

from collections import Counter
from math import log2

FIRST_S = 600.0
"""The first rung ends when a job has run so long, each next one at twice as much."""

RUNGS = 32
AHEAD = 16
"""So many rungs are looked at for the best ratio."""

WIDTH = 2.0
BELIEVED = 32
"""A guess counts as much as this many jobs that were seen."""

CHANCE = 0.35
"""The guess: of all jobs that reach a rung, so many end on it."""

HIGHEST = 6
LOWEST = 30
"""Steps: the binary logarithm of the GPU-seconds that an end costs, in the best and worst case."""

SLACK = 0.75
"""A step is kept until the promise has moved by this much, so that nobody goes to and fro."""

REVIEWS = 100
"""All steps are looked at again when a hundredth more was seen."""

Kind = tuple[int, int]
"""GPUs, and the rung that the job is on."""


def end_of(rung: int) -> float:
    """Where a rung ends: when a job has run for so many seconds in all."""
    return FIRST_S * WIDTH**rung


class Ladder:
    """What was seen of jobs, and the step that each kind of job stands on: lower goes first."""

    def __init__(self) -> None:
        self._came: Counter[Kind] = Counter()
        self._ended: Counter[Kind] = Counter()
        self._came_in_all: Counter[int] = Counter()
        self._ended_in_all: Counter[int] = Counter()
        self._steps: dict[Kind, int] = {}
        self._reviewed: set[Kind] = set()
        self._seen = 0
        self._review_at = 0

    def comes(self, kind: Kind) -> None:
        """A job has come to this rung."""
        self._came[kind] += 1
        self._came_in_all[kind[1]] += 1
        self._saw()

    def ends(self, kind: Kind) -> None:
        """A job has ended on this rung."""
        self._ended[kind] += 1
        self._ended_in_all[kind[1]] += 1
        self._saw()

    def step(self, kind: Kind) -> int:
        """The step where jobs of this kind stand now."""
        if kind not in self._reviewed:
            self._reviewed.add(kind)
            self._review(kind)
        return self._steps[kind]

    def _saw(self) -> None:
        """The more was seen, the less one job more tells: look again when it may matter."""
        self._seen += 1
        if self._seen >= self._review_at:
            self._review_at = self._seen + 1 + self._seen // REVIEWS
            self._reviewed.clear()

    def _review(self, kind: Kind) -> None:
        exact = -log2(self._promise(kind))
        step = self._steps.get(kind)
        if step is None or abs(exact - step) > SLACK:
            self._steps[kind] = min(max(round(exact), HIGHEST), LOWEST)

    def _promise(self, kind: Kind) -> float:
        gpus, first = kind
        left, cost, best = 1.0, 0.0, 0.0
        for rung in range(first, min(first + AHEAD, RUNGS)):
            chance = self._chance(gpus, rung)
            width = end_of(rung) - (end_of(rung - 1) if rung else 0.0)
            cost += left * width * gpus * (1 - chance / 2)
            left *= 1 - chance
            best = max(best, (1 - left) / cost)
        return best

    def _chance(self, gpus: int, rung: int) -> float:
        """That a job which reached the rung ends on it: as seen of its size, and of all sizes."""
        # Those who are on the rung still tell nothing yet: only who ended on it or went beyond.
        ended, passed = self._ended_in_all[rung], self._came_in_all[rung + 1]
        of_all = (ended + BELIEVED * CHANCE) / (ended + passed + BELIEVED)
        ended, passed = self._ended[gpus, rung], self._came[gpus, rung + 1]
        return (ended + BELIEVED * of_all) / (ended + passed + BELIEVED)
