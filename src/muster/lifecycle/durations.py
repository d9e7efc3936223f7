"""How long jobs take, as a spread to draw from: learned from those that ended.

Jobs are compared with their like in two ways: by how long they took, and, where they have a time
limit, by which part of it they used. Of a job that has a limit, the way is taken that is spread
less: exact limits say all, careless ones hardly anything, and either is noticed by itself.

What is learned of each way is a middle and a spread (`predict`), and the shape that is common to
all jobs: where in its own spread each of those that ended came to lie.
"""

from itertools import accumulate, pairwise
from math import exp, log
from statistics import NormalDist

from muster.lifecycle.predict import HALF_AN_HOUR, Guess, Key, Predictor
from muster.model.job import JobSpec
from muster.model.value import Duration, JobId

LEAST_MS = 1_000
WHOLE_LIMIT = 1_000_000_000
"""A part of a limit is counted in billionths."""

KEPT = 0.99
"""A spread takes more jobs to learn than a mean: about a hundred count."""

STEP, STEPS = 0.125, 64
"""The shape has so many steps of so much, half of them on either side of the middle."""

SHAPE_PRIOR = 40.0
"""A normal distribution counts like so many jobs."""

SHAPE_KEPT = 0.999
"""What each job leaves of the weight of those before it in the shape."""

OLDEST = 0.98
"""A job that is older than so many of its like is beyond what was learned of them."""

AGED_POWER = 1.0
"""Then it is as likely to last twice as long as it has run so far as to end before."""


class Durations:
    """Learns from every job that ends. One thread calls."""

    def __init__(self) -> None:
        self._by_time = _Way(HALF_AN_HOUR)
        # No surer than a time, so that limits count for nothing before something is known of them.
        self._by_limit = _Way(Guess(middle=log(WHOLE_LIMIT), spread=HALF_AN_HOUR.spread))

    def learn(self, job: JobId, spec: JobSpec, lasted: int) -> None:
        """A job took this long."""
        lasted = max(LEAST_MS, lasted)
        self._by_time.learn(job, spec, lasted)
        if spec.time_limit:
            self._by_limit.learn(job, spec, _part(lasted, spec.time_limit))

    def drawn(self, spec: JobSpec, chance: float, ran: int = 0) -> Duration:
        """How long such a job takes in all that has run for so long already.

        chance: between 0 and 1; of all such jobs, so many take no longer.
        """
        limit = spec.time_limit
        kind = self._by_time.kind(spec)
        way, unit = self._better(spec, kind)
        ran_measure = log(max(LEAST_MS, ran)) - unit if ran > 0 else None
        lasts = max(
            ran + 1, round(exp(way.drawn(way.estimate(spec, kind), chance, ran_measure) + unit))
        )
        return Duration(lasts if limit is None else min(lasts, max(limit, ran + 1)))

    def _better(self, spec: JobSpec, kind: Key) -> tuple["_Way", float]:
        """The way that is spread less, and the logarithm of what it counts in."""
        limit = spec.time_limit
        if limit and self._by_limit.estimate(spec, kind)[1] < self._by_time.estimate(spec, kind)[1]:
            return self._by_limit, log(limit) - log(WHOLE_LIMIT)
        return self._by_time, 0.0


class _Way:
    """One measure of jobs: what it is for their like, and the shape of what it is for all."""

    def __init__(self, first: Guess) -> None:
        self._like = Predictor(first, kept=KEPT)
        self._shape = _Shape()
        self._estimates: dict[Key, tuple[float, float]] = {}

    def learn(self, job: JobId, spec: JobSpec, measure: int) -> None:
        middle, spread = self._like.estimate(spec)
        self._shape.learn((log(measure) - middle) / spread)
        self._like.learn(job, spec, measure)
        self._estimates.clear()

    def kind(self, spec: JobSpec) -> Key:
        """Jobs of one kind are drawn alike, in either way."""
        return self._like.kind(spec)

    def estimate(self, spec: JobSpec, kind: Key) -> tuple[float, float]:
        """The middle and the spread of the logarithm."""
        known = self._estimates.get(kind)
        if known is None:
            known = self._estimates[kind] = self._like.estimate(spec)
        return known

    def drawn(self, estimate: tuple[float, float], chance: float, above: float | None) -> float:
        """A logarithm; above: it is known to be larger than this one."""
        middle, spread = estimate
        if above is None:
            return middle + spread * self._shape.quantile(chance)
        passed = self._shape.part_below((above - middle) / spread)
        if passed > OLDEST:
            return above - log(max(1e-6, 1 - chance)) / AGED_POWER
        drawn = middle + spread * self._shape.quantile(passed + chance * (1 - passed))
        return max(above, drawn)


class _Shape:
    """Where jobs lie in their spread: counted in steps, and normal before any was seen."""

    def __init__(self) -> None:
        usual = NormalDist()
        bounds = [usual.cdf(STEP * (place - STEPS / 2)) for place in range(STEPS + 1)]
        parts = [high - low for low, high in pairwise(bounds)]
        self._counts = [SHAPE_PRIOR * part for part in parts]
        self._sums: list[float] | None = None
        self._weight = 1.0

    def learn(self, place: float) -> None:
        step = min(STEPS - 1, max(0, int(place / STEP + STEPS / 2)))
        # What comes later weighs more, which is the same as that what came before fades.
        self._weight /= SHAPE_KEPT
        self._counts[step] += self._weight
        self._sums = None
        if self._weight > 1e6:
            self._counts = [count / self._weight for count in self._counts]
            self._weight = 1.0

    def quantile(self, part: float) -> float:
        """Below this lie so many of all."""
        sums = self._accumulated()
        wanted = min(1.0, max(0.0, part)) * sums[-1]
        low, high = 0, STEPS
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if sums[middle + 1] < wanted else (low, middle)
        step = min(low, STEPS - 1)
        inside = (wanted - sums[step]) / max(1e-12, self._counts[step])
        return STEP * (step + min(1.0, inside) - STEPS / 2)

    def part_below(self, place: float) -> float:
        """So many of all lie below this."""
        at = min(float(STEPS), max(0.0, place / STEP + STEPS / 2))
        step, sums = min(STEPS - 1, int(at)), self._accumulated()
        return (sums[step] + (at - step) * self._counts[step]) / sums[-1]

    def _accumulated(self) -> list[float]:
        if self._sums is None:
            self._sums = [0.0, *accumulate(self._counts)]
        return self._sums


def _part(lasted: int, limit: int) -> int:
    return max(LEAST_MS, round(lasted / limit * WHOLE_LIMIT))
