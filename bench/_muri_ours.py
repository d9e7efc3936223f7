"""Muri's traces through the real cycle: planner, checks, journal and a simulated cluster."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil

from bench._muri_ladder import HIGHEST, LOWEST, Kind, Ladder, end_of
from bench._muri_trace import GPUS_PER_NODE, NODES, TraceJob
from muster.backends.fate import Fate
from muster.backends.simulated import SimulatedBackend
from muster.controller.stage import Change
from muster.model.cluster import Cluster, Node, Pool
from muster.model.event import Event, JobEnded, JobStarted, JobSubmitted, JobUpdated
from muster.model.gpu import Device, GpuAsk
from muster.model.job import Ask, Exited, JobSpec, TaskGroup
from muster.model.policy import OrderWeights, Policy, PreemptPolicy
from muster.model.queue import JobClass, PreemptMode, Queue
from muster.model.site import Site
from muster.model.value import (
    ClassName,
    ClusterName,
    DeviceId,
    Duration,
    GpuModel,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    replace,
)
from muster.simulator.run import Arrival, Simulation
from muster.stores.base import Batch

LAB = ClusterName("lab")
POOL = PoolName("main")
QUEUE = QueuePath("all")
SORTER = UserName("sorter")


def _class_of(step: int) -> ClassName:
    return ClassName(f"step{step:02d}")


STEPS = range(HIGHEST, LOWEST + 1)

SITE = Site(
    queues={QUEUE: Queue(path=QUEUE)},
    classes={
        _class_of(step): JobClass(
            name=_class_of(step),
            priority=LOWEST + 1 - step,
            preempts=tuple(_class_of(lower) for lower in STEPS if lower > step),
            preempt_mode=PreemptMode.CHECKPOINT,
        )
        for step in STEPS
    },
    pools={POOL: Pool(name=POOL, cluster=LAB)},
    default_queue=QUEUE,
    policy=Policy(
        order=OrderWeights(job_class=10_000, fair_share=0, age=0, queue=0),
        preempt=PreemptPolicy(tries=64),
        backfill_depth=0,
    ),
)


def nodes() -> list[Node]:
    """Eight nodes of eight GPUs."""
    return [
        Node(
            id=NodeId(f"n{number}"),
            cluster=LAB,
            pool=POOL,
            cpu_milli=96_000,
            memory_mib=512_000,
            devices=tuple(_device(number, index) for index in range(GPUS_PER_NODE)),
        )
        for number in range(NODES)
    ]


def _device(node: int, index: int) -> Device:
    return Device(
        id=DeviceId(f"n{node}/gpu{index}"), index=index, model=GpuModel("V100"), memory_mib=32_768
    )


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
        """When it will have had so much that it stands on the next rung."""
        if self.since_s is None:
            return None
        return self.since_s + end_of(self.rung) / self.gpus - self.had_s


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
        return _class_of(self._ladder.step((gpus, 0)))

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
            name = _class_of(self._ladder.step(kind))
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

    def __init__(self, jobs: Mapping[JobId, TraceJob]) -> None:
        super().__init__(nodes(), Cluster(name=LAB), lambda job, _: _fate(jobs[job.id]))
        self.sorter = Sorter()

    def next_at(self) -> Instant | None:
        found = (super().next_at(), self.sorter.next_at())
        return min((at for at in found if at is not None), default=None)

    def observe(self, now: Instant) -> tuple[Event, ...]:
        told = super().observe(now)
        for event in told:
            self.sorter.note(event)
        return (*told, *self.sorter.moves(now))


def _fate(traced: TraceJob) -> Fate:
    return Fate(
        work=Duration(max(1, round(traced.work_s * 1000))),
        start_delay=Duration(traced.start_s * 1000),
        saves_in=Duration(0),
    )


def spec_of(job: TraceJob) -> JobSpec:
    """The request: tasks of at most one node each, nothing said about time."""
    tasks, each = max(1, job.gpus // GPUS_PER_NODE), min(job.gpus, GPUS_PER_NODE)
    return JobSpec(
        name=job.model,
        user=UserName("muri"),
        queue=QUEUE,
        job_class=_class_of(HIGHEST),
        groups=(TaskGroup(count=tasks, each=Ask(gpus=GpuAsk(count=each))),),
    )


def gpus_of(spec: JobSpec) -> int:
    """How many GPUs a request asks for in all."""
    return sum(group.count * group.each.gpus.count for group in spec.groups if group.each.gpus)


@dataclass(frozen=True, slots=True)
class Outcome:
    """When each job ended, by its number in the trace, and how often jobs were begun again."""

    ended: dict[int, float]
    restarts: int


def ours(jobs: list[TraceJob]) -> Outcome:
    """Run the trace."""
    by_id = {JobId(number): job for number, job in enumerate(jobs, start=1)}
    backend = SortingBackend(by_id)
    simulation = Simulation(SITE, {LAB: backend})
    ended: dict[int, float] = {}

    def note(batch: Batch, _: tuple[Change, ...]) -> None:
        for event in batch.events:
            if isinstance(event, JobEnded) and isinstance(event.why, Exited):
                ended[by_id[event.job].number] = event.at / 1000

    simulation.watch(backend.sorter.hear)
    simulation.watch(note)
    simulation.run(_arrivals(jobs, backend.sorter))
    return Outcome(ended, backend.sorter.restarts)


def _arrivals(jobs: Iterable[TraceJob], sorter: Sorter) -> Iterator[Arrival]:
    for job in jobs:
        spec = replace(spec_of(job), job_class=sorter.class_of_new(job.gpus))
        yield Arrival(at=Instant(round(job.submit_s * 1000)), spec=spec)
