"""What a job brings to its priority: everything but its user's fair share and its guarantee."""

from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from functools import lru_cache
from typing import NamedTuple

from muster.model.job import Job
from muster.model.levels import HIGHEST_LEVEL
from muster.model.plan import Priority
from muster.model.policy import OrderWeights
from muster.model.queue import JobClass, Queue
from muster.model.value import ClassName, Instant, QueuePath

FULL = 1_000
"""A factor of 1, in thousandths."""


_EXACTLY = Context(prec=20)
"""Logarithms in decimal are the same on any machine; those of floats may differ in a last digit."""


class Merit(NamedTuple):
    """Points, by what they are for; their sum puts the jobs of one user in one queue in order.

    age is below zero, up to an age that is the same for all: it need not change as time passes.
    asked: what the job itself was given, more for a priority and less for a nice value.
    """

    job_class: int
    queue: int
    size: int
    short: int
    service: int
    asked: int
    age: int

    def priority(self, *, age: int = 0, fair_share: int = 0, is_own: bool = False) -> Priority:
        """These points as people see them, with what is not the job's own."""
        return Priority(
            job_class=self.job_class,
            queue=self.queue,
            size=self.size,
            short=self.short,
            service=self.service,
            asked=self.asked,
            age=age,
            fair_share=fair_share,
            is_own=is_own,
        )


NO_MERIT = Merit(0, 0, 0, 0, 0, 0, 0)


class Merits:
    """Points by the rules of one site."""

    def __init__(
        self,
        queues: Mapping[QueuePath, Queue],
        classes: Mapping[ClassName, JobClass],
        weights: OrderWeights,
    ) -> None:
        self._queues = queues
        self._classes = classes
        self._weights = weights
        self._top = _top(each.priority for each in classes.values())
        self._top_queue = _top(each.priority for each in queues.values())

    @property
    def tops(self) -> tuple[int, int]:
        """What counts as a full factor of class and of queue: all points depend on it."""
        return (self._top, self._top_queue)

    def of(self, job: Job, gpu_milli: int, level: int) -> Merit:
        """What this job brings, that asks for so much and stands on this level.

        What no rule names counts for nothing.
        """
        weights, spec = self._weights, job.spec
        job_class = self._classes.get(spec.job_class)
        queue = self._queues.get(spec.queue)
        return Merit(
            0 if job_class is None else weights.job_class * _part(job_class.priority, self._top),
            0 if queue is None else weights.queue * _part(queue.priority, self._top_queue),
            weights.size * min(FULL, gpu_milli // 1_000),
            weights.short * _shortness(job, gpu_milli) if weights.short else 0,
            weights.service * (FULL - FULL * level // HIGHEST_LEVEL),
            spec.priority * FULL,
            -aged(waits_since(job), weights),
        )

    def brevity(self, job: Job) -> int:
        """What a job brings by its expected time alone, whatever it asks for."""
        return self._weights.short * _shortness(job, FULL) if self._weights.short else 0


def waits_since(job: Job) -> Instant:
    """Age counts from when the job could first have begun."""
    return Instant(max(job.submitted_at, job.begin_at or 0))


def waited_since(job: Job) -> Instant:
    """Since when it would have waited without a break: the time that it ran is left out."""
    return Instant(waits_since(job) + job.ran)


def aged(at: int, weights: OrderWeights) -> int:
    """The points of an age, or of an instant as if it were one."""
    return weights.age * FULL * at // weights.age_full


def _shortness(job: Job, gpu_milli: int) -> int:
    """A full factor for no time, none for a hundred million seconds; tenfold steps are equal.

    Time is what its user waits for, GPU-time what it costs all others; in between, GPUs count by
    their root. Where nothing is known, it is in the middle.
    """
    return FULL // 2 if job.expected is None else _short_factor(job.expected, gpu_milli)


@lru_cache(maxsize=20_000)
def _short_factor(expected: int, gpu_milli: int) -> int:
    """Jobs that are alike share it."""
    time, gpus = _tenfold_steps(1_000 + expected), _tenfold_steps(max(FULL, gpu_milli))
    return max(0, FULL - round(FULL * (time + gpus / 2) / 8))


@lru_cache(maxsize=20_000)
def _tenfold_steps(milli: int) -> Decimal:
    """How many from one to so many thousandths: this takes most of the time of a merit."""
    return _EXACTLY.log10(Decimal(milli)) - 3


def _part(priority: int, top: int) -> int:
    return FULL * priority // top if top else 0


def _top(priorities: Iterable[int]) -> int:
    """What counts as a full factor: the priority that is farthest from none."""
    return max((abs(each) for each in priorities), default=0)
