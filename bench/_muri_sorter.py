"""Classes as a ladder, and a sorter that moves jobs along it while they get service.

This is all that stands beside the product: jobs change their class as an administrator could
change it, by what everybody sees. Whose turn it is, who makes room for whom and where things go is
decided by the planner, and every plan is checked.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil

from bench._muri_ladder import HIGHEST, LOWEST, Kind, Ladder, end_of
from muster.backends.fate import Lasts
from muster.backends.simulated import SimulatedBackend
from muster.controller.stage import Change
from muster.model.cluster import Cluster, Node
from muster.model.event import Event, JobEnded, JobStarted, JobSubmitted, JobUpdated
from muster.model.job import Exited, JobSpec
from muster.model.policy import OrderWeights, Policy, PreemptPolicy
from muster.model.queue import JobClass, PreemptMode
from muster.model.value import ClassName, Instant, JobId, UserName, replace
from muster.stores.base import Batch

SORTER = UserName("sorter")
STEPS = range(HIGHEST, LOWEST + 1)


def class_of(step: int) -> ClassName:
    """What the class of a step is called."""
    return ClassName(f"step{step:02d}")


CLASSES: Mapping[ClassName, JobClass] = {
    class_of(step): JobClass(
        name=class_of(step),
        priority=LOWEST + 1 - step,
        preempts=tuple(class_of(lower) for lower in STEPS if lower > step),
        preempt_mode=PreemptMode.CHECKPOINT,
    )
    for step in STEPS
}
"""Each may stop all that stand lower; whoever is stopped saves what it did."""

POLICY = Policy(
    order=OrderWeights(job_class=10_000, fair_share=0, age=0, queue=0),
    preempt=PreemptPolicy(tries=64),
    backfill_depth=0,
)
"""The class alone decides, then who came first; without limits there is nothing to backfill by."""


@dataclass(slots=True, eq=False)
class Sorted:
    """A job as the sorter sees it: what it asked for, what it had, and the step that it stands on.

    had_s is of earlier attempts; since_s is when this one began, None while it waits.
    """

    spec: JobSpec
    gpus: int
    rung: int = 0
    had_s: float = 0.0
    since_s: float | None = None

    @property
    def kind(self) -> Kind:
        return (self.gpus, self.rung)

    def falls_at_s(self) -> float | None:
        """When it will have run so long that it stands on the next rung."""
        if self.since_s is None:
            return None
        return self.since_s + end_of(self.rung) - self.had_s


class Sorter:
    """Moves jobs between classes as they get service.

    It sees what everybody sees: which jobs there are, what they ask for, when they start and end.
    """

    def __init__(self) -> None:
        self._ladder = Ladder()
        self._known: dict[JobId, Sorted] = {}
        self._of_kind: dict[Kind, set[JobId]] = {}
        self._falls: list[tuple[int, JobId]] = []
        self.restarts = 0

    def class_of_new(self, gpus: int) -> ClassName:
        """Where a job of that size begins, as things stand."""
        return class_of(self._ladder.step((gpus, 0)))

    def hear(self, batch: Batch, _: tuple[Change, ...]) -> None:
        """Jobs come."""
        for event in batch.events:
            if isinstance(event, JobSubmitted):
                one = self._known[event.job] = Sorted(event.spec, gpus_of(event.spec))
                self._ladder.comes(one.kind)
                self._of_kind.setdefault(one.kind, set()).add(event.job)

    def next_at(self) -> Instant | None:
        """When the next job will have had enough to fall."""
        return Instant(self._falls[0][0]) if self._falls else None

    def note(self, event: Event) -> None:
        """Jobs start and end."""
        match event:
            case JobStarted(job=job, at=at, attempt=attempt):
                one = self._known[job]
                one.since_s = at / 1000
                self.restarts += attempt > 1
                self._watch(job, one)
            case JobEnded(job=job, at=at, why=why):
                self._leave(job, at / 1000, is_done=isinstance(why, Exited))
            case _:
                return

    def moves(self, now: Instant) -> Iterator[JobUpdated]:
        """Jobs whose class is not that of their step any more."""
        self._let_fall(now)
        for kind, members in self._of_kind.items():
            if not members:
                continue
            name = class_of(self._ladder.step(kind))
            for job in sorted(members):
                one = self._known[job]
                if one.spec.job_class != name:
                    one.spec = replace(one.spec, job_class=name)
                    yield JobUpdated(at=now, job=job, spec=one.spec, by=SORTER)

    def _leave(self, job: JobId, at_s: float, *, is_done: bool) -> None:
        one = self._known[job]
        if one.since_s is not None:
            one.had_s += at_s - one.since_s
            one.since_s = None
        if is_done:
            self._ladder.ends(one.kind)
            self._of_kind[one.kind].discard(job)
            del self._known[job]

    def _watch(self, job: JobId, one: Sorted) -> None:
        at_s = one.falls_at_s()
        if at_s is not None:
            heappush(self._falls, (ceil(at_s * 1000), job))

    def _let_fall(self, now: Instant) -> None:
        while self._falls and self._falls[0][0] <= now:
            _, job = heappop(self._falls)
            one = self._known.get(job)
            at_s = None if one is None else one.falls_at_s()
            if one is None or at_s is None or ceil(at_s * 1000) > now:
                continue
            self._of_kind[one.kind].discard(job)
            one.rung += 1
            self._of_kind.setdefault(one.kind, set()).add(job)
            self._ladder.comes(one.kind)
            self._watch(job, one)


class SortingBackend(SimulatedBackend):
    """A simulated cluster with a sorter at its door."""

    def __init__(self, nodes: Sequence[Node], cluster: Cluster, lasts: Lasts) -> None:
        super().__init__(nodes, cluster, lasts)
        self.sorter = Sorter()

    def next_at(self) -> Instant | None:
        found = (super().next_at(), self.sorter.next_at())
        return min((at for at in found if at is not None), default=None)

    def observe(self, now: Instant) -> tuple[Event, ...]:
        told = super().observe(now)
        for event in told:
            self.sorter.note(event)
        return (*told, *self.sorter.moves(now))


def gpus_of(spec: JobSpec) -> int:
    """How many GPUs a request asks for in all."""
    return sum(group.count * group.each.gpus.count for group in spec.groups if group.each.gpus)
