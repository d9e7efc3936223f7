"""How long a job will take, learned from those that ended: by user, queue, name and shape.

A time limit is evidence too: who asks for an hour takes other times than who asks for a week.
Durations are compared as logarithms: their means are medians, and one job of a month does not
outweigh a hundred of a minute. Evidence is looked up from the general to the special (all users,
this shape, this queue, this user, jobs of this name ...), and each step moves the figure as far as
its evidence weighs: where little was seen, what is known of the more general case stands.
A prediction is never a limit: nothing is stopped for it.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate
from math import exp, log, sqrt

from muster.model.job import Job, JobSpec, TaskGroup
from muster.model.value import Duration, JobId, Value

LIMITED_SPREAD = 1.0
"""Before anything ended, a job takes its limit, give or take a factor of three."""

KEPT = 0.97
"""What each new job leaves of the weight of those before it: about thirty of them count."""

PRIOR_WEIGHT = 4.0
"""The more general case counts like so many jobs."""

HIGH_PART = 0.9
"""So many of all jobs should take no longer than the high figure."""

HIGH_STEP = 0.02
"""How fast the high figure learns from having been too low or too high."""

LONGEST_MS = 10 * 365 * 86_400_000
NEWS_AFTER = 8
MOVED_PART = 8
"""So many ends are news for those like them that wait; what moved by less than an eighth is not."""

MOST_KEPT = 200_000
"""So many kinds of evidence are kept before rare ones are forgotten."""

ERROR_STEP = 0.05
ERROR_BINS = 240

_DIGITS = re.compile(r"\d+")

Key = tuple[str, ...]


class Guess(Value):
    """What is taken for true before anything ended: of the logarithm, the middle and the spread."""

    middle: float
    spread: float


HALF_AN_HOUR = Guess(middle=log(1_800_000), spread=2.0)
"""Of a job without a limit, give or take a factor of seven."""


class Prediction(Value):
    """expected: the mean; typical: the median; high: nine of ten take no longer.

    samples: how many ended jobs speak for it; like: which they are, for people.
    """

    expected: Duration
    typical: Duration
    high: Duration
    samples: int
    like: str


class Accuracy(Value):
    """How predictions came out that were made when jobs came in.

    error: the median of |ln(real / typical)|; 0.69 is a factor of two.
    covered: the part of jobs that took no longer than the high figure.
    """

    count: int = 0
    error: float = 0.0
    covered: float = 0.0


class _Evidence:
    """Decayed count, sum and sum of squares of log durations, and how many there were in all."""

    __slots__ = ("seen", "squares", "total", "weight")

    def __init__(self) -> None:
        self.seen = 0
        self.weight = self.total = self.squares = 0.0

    def learn(self, measure: float, kept: float) -> None:
        self.seen += 1
        self.weight = self.weight * kept + 1
        self.total = self.total * kept + measure
        self.squares = self.squares * kept + measure * measure


class Predictor:
    """Learns from every job that ends. One thread calls.

    first: guessed of every job; None: a time limit is evidence too, and the first that there is.
    kept: what each job leaves of the weight of those before it.
    """

    def __init__(self, first: Guess | None = None, *, kept: float = KEPT) -> None:
        self._first = first
        self._kept = kept
        self._known: dict[Key, _Evidence] = {}
        self._shapes: dict[tuple[TaskGroup, ...], str] = {}
        self._patterns: dict[str, str] = {}
        self._open: dict[JobId, tuple[float, float]] = {}
        self._high = 1.2816
        self._errors = [0] * ERROR_BINS
        self._count = self._covered = 0

    def predict(self, spec: JobSpec) -> Prediction:
        """How long a job like this takes, and why we think so."""
        middle, spread = self.estimate(spec)
        samples, like = self._best_evidence(spec)
        return Prediction(
            expected=_within(spec, _mean(middle, spread)),
            typical=_ms(middle),
            high=_ms(middle + self._high * spread),
            samples=samples,
            like=like,
        )

    def expect(self, job: JobId, spec: JobSpec) -> Duration:
        """The mean for a job that came in, to be compared with how long it takes in the end."""
        found = self._open[job] = self.estimate(spec)
        return _within(spec, _mean(*found))

    def again(self, alike: Iterable[Job]) -> Iterator[tuple[Job, Duration]]:
        """The mean as we see it now, for jobs of one kind that still wait, where it has moved."""
        mean: Duration | None = None
        for job in alike:
            mean = _mean(*self.estimate(job.spec)) if mean is None else mean
            expected = _within(job.spec, mean)
            if job.expected is None or abs(expected - job.expected) * MOVED_PART > job.expected:
                yield job, expected

    def learn(self, job: JobId, spec: JobSpec, lasted: int) -> bool:
        """A job took this long. True: much more is known now of similar jobs, so publish it."""
        measure = log(max(1_000, lasted))
        predicted = self._open.pop(job, None)
        if predicted is not None:
            self._judge(predicted, measure)
        evidence = _Evidence()
        for key in self._keys(spec):
            evidence = self._known.get(key) or self._known.setdefault(key, _Evidence())
            evidence.learn(measure, self._kept)
        if len(self._known) > MOST_KEPT:
            self._forget_rare()
        # The last key is the most special one.
        seen = evidence.seen
        return seen & (seen - 1) == 0 or seen % NEWS_AFTER == 0

    def forget(self, job: JobId) -> None:
        """The job ended without having run."""
        self._open.pop(job, None)

    def estimate(self, spec: JobSpec) -> tuple[float, float]:
        """The middle and the spread of the logarithm."""
        first = self._first or _first_guess(spec.time_limit)
        middle, variance = first.middle, first.spread * first.spread
        for key in self._keys(spec):
            evidence = self._known.get(key)
            if evidence is None:
                continue
            seen, total = evidence.weight, evidence.total
            weight = seen + PRIOR_WEIGHT
            before, middle = middle, (total + PRIOR_WEIGHT * middle) / weight
            own = evidence.squares - 2 * middle * total + seen * middle * middle
            moved = before - middle
            variance = (own + PRIOR_WEIGHT * (variance + moved * moved)) / weight
        return middle, sqrt(max(variance, 1e-6))

    def kind(self, spec: JobSpec) -> Key:
        """The most special thing that is known of a job: jobs of one kind are predicted alike."""
        name, shape = self._pattern(spec.name), self._shape(spec.groups)
        return (spec.queue, spec.user, name, shape, _like_limit(spec.time_limit))

    @property
    def accuracy(self) -> Accuracy:
        """How good predictions were so far."""
        if not self._count:
            return Accuracy()
        passed = accumulate(self._errors)
        place = next(place for place, count in enumerate(passed) if 2 * count >= self._count)
        error = (place + 0.5) * ERROR_STEP
        return Accuracy(count=self._count, error=error, covered=self._covered / self._count)

    def _forget_rare(self) -> None:
        """Names that came once say nothing that the more general evidence does not."""
        self._known = {key: each for key, each in self._known.items() if each.seen > 1}
        self._patterns.clear()
        self._shapes.clear()

    def _keys(self, spec: JobSpec) -> tuple[Key, ...]:
        """From the general to the special."""
        queue, user = spec.queue, spec.user
        shape, name = self._shape(spec.groups), self._pattern(spec.name)
        return (
            (),
            ("shape", shape),
            ("queue", queue),
            ("queue shape", queue, shape),
            ("user", user),
            ("user shape", user, shape),
            ("name", user, name),
            ("name shape", user, name, shape),
            *self._limit_keys(spec, shape),
        )

    def _limit_keys(self, spec: JobSpec, shape: str) -> tuple[Key, ...]:
        if spec.time_limit is None or self._first is not None:
            return ()
        limit = _like_limit(spec.time_limit)
        return (
            ("limit", limit),
            ("limit shape", limit, shape),
            ("user limit shape", spec.user, limit, shape),
        )

    def _best_evidence(self, spec: JobSpec) -> tuple[int, str]:
        """The most special evidence that counts for more than what is more general."""
        found, like = 0, ""
        for key, words in zip(
            self._keys(spec), _words(spec, self._pattern(spec.name)), strict=False
        ):
            evidence = self._known.get(key)
            if evidence is not None and (not found or evidence.weight >= PRIOR_WEIGHT):
                found, like = evidence.seen, words
        return found, like

    def _shape(self, groups: tuple[TaskGroup, ...]) -> str:
        shape = self._shapes.get(groups)
        if shape is None:
            shape = self._shapes[groups] = _shape_of(groups)
        return shape

    def _pattern(self, name: str) -> str:
        """`train-17` and `train-18` are the same work."""
        pattern = self._patterns.get(name)
        if pattern is None:
            pattern = self._patterns[name] = _DIGITS.sub("#", name)
        return pattern

    def _judge(self, predicted: tuple[float, float], measure: float) -> None:
        middle, spread = predicted
        covered = measure <= middle + self._high * spread
        self._high += HIGH_STEP * (HIGH_PART - covered)
        self._count += 1
        self._covered += covered
        place = int(abs(measure - middle) / ERROR_STEP)
        self._errors[min(place, ERROR_BINS - 1)] += 1


def _shape_of(groups: tuple[TaskGroup, ...]) -> str:
    gpu_milli = sum(each.each.amount(None).gpu_milli * each.count for each in groups)
    if gpu_milli:
        return f"{gpu_milli / 1_000:g} GPUs"
    cores = sum(each.each.cpu_milli * each.count for each in groups) / 1_000
    # Cores by powers of two: 30 and 32 cores are the same for this.
    return f"{1 << max(0, round(log(max(1.0, cores)) / log(2)))} cores"


def _words(spec: JobSpec, name: str) -> Iterator[str]:
    yield "jobs of all users"
    yield "jobs of this size"
    yield f"jobs in {spec.queue}"
    yield f"jobs of this size in {spec.queue}"
    yield f"jobs of {spec.user}"
    yield f"jobs of this size of {spec.user}"
    yield f"jobs of {spec.user} named {name}"
    yield f"jobs of this size of {spec.user} named {name}"
    yield "jobs with about this time limit"
    yield "jobs of this size with about this time limit"
    yield f"jobs of this size of {spec.user} with about this time limit"


def _first_guess(limit: Duration | None) -> Guess:
    if limit is None:
        return HALF_AN_HOUR
    return Guess(middle=log(max(1_000, limit)), spread=LIMITED_SPREAD)


def _like_limit(limit: Duration | None) -> str:
    """Limits that are within a fifth of each other are alike."""
    return "none" if limit is None else str(round(4 * log(max(1_000, limit)) / log(2)))


def _within(spec: JobSpec, expected: Duration) -> Duration:
    """No job runs beyond its limit."""
    return expected if spec.time_limit is None else min(expected, spec.time_limit)


def _mean(middle: float, spread: float) -> Duration:
    """The mean of what is spread so; far-off tails are not believed without end."""
    return _ms(middle + min(spread * spread / 2, 1.2816 * spread))


def _ms(measure: float) -> Duration:
    return Duration(min(LONGEST_MS, round(exp(min(measure, 40.0)))))
