"""What is rehearsed is what happens: the same requests, live and in pretend time.

The same holds for what is told before it happens: the dates of those that wait.
"""

import getpass
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from live.house import GPUS, NODES, ahead_of_others, folder, until
from muster.app.parts import Muster
from muster.backends.simulated.attempt import Behaviour
from muster.backends.simulated.backend import SimulatedBackend
from muster.controller.dates.protocol import Lessons
from muster.controller.messages import Caller
from muster.controller.use_cases.job_actions import JobAction, JobActionRequest, act_on_jobs
from muster.doors.config.default import DEFAULT_SITE
from muster.model.cluster import Cluster, Node
from muster.model.dates import StartDate
from muster.model.event import Event, JobPlaced, JobPreempted
from muster.model.gpu import GpuAsk
from muster.model.job import Ask, Job, JobSpec, RetryPolicy, TaskGroup
from muster.model.launch import Launch
from muster.model.placement import Allocation
from muster.model.queue import Queue
from muster.model.value import (
    MINUTE,
    ClassName,
    Duration,
    Instant,
    JobId,
    QueuePath,
    UserName,
    Value,
    replace,
)
from muster.settings import Settings
from muster.simulator.forecast_server import InlineForecasts
from muster.simulator.run import Arrival, Simulation
from muster.stores.base import EventQuery

pytestmark = pytest.mark.slow

ME = UserName(getpass.getuser())
ROOT = Caller(user=ME, door="test", root=True)
QUEUES = tuple(QueuePath(each) for each in ("default", "a", "b"))
SITE = replace(DEFAULT_SITE, queues={path: Queue(path=path) for path in QUEUES})

AT_ONCE = 12
LATER = 8
APART_MS = 250
"""Real time jitters: what comes from outside is so far apart that its order is never in doubt."""

STARTS_IN = Duration(30)
"""About what it takes to begin a process, so that pretend time does not run ahead."""

JITTER_MS = 200
TRIED = 8
"""Real things happen up to so much later. So many times it is tried whether that changes anything.
"""

WAKING = JobId(1)
"""A job before all others: for the first one, what starts jobs is started, and takes its time."""

Decision = tuple[object, ...]


class CrowdedError(Exception):
    """Two things are so close together that either could come first: ends, or jobs in line."""


class Coming(Value):
    """A request: so long after the beginning."""

    after_ms: int
    spec: JobSpec


class Times:
    """How long jobs take: what a job takes is chosen when it first starts, so that it ends apart
    from everything else.
    """

    def __init__(self, chance: Random, arrivals: list[int]) -> None:
        self._chance = chance
        self._taken = list(arrivals)
        self.lasts_ms: dict[JobId, int] = {}

    def behaviour(self, job: Job, allocation: Allocation) -> Behaviour:
        if job.id == WAKING:
            return Behaviour(work=Duration(1), start_delay=STARTS_IN)
        begins = allocation.placed_at + STARTS_IN
        if job.id not in self.lasts_ms:
            self.lasts_ms[job.id] = self._chosen(begins)
        elif not self._is_free(begins + self.lasts_ms[job.id]):
            raise CrowdedError
        self._taken.append(begins + self.lasts_ms[job.id])
        return Behaviour(work=Duration(self.lasts_ms[job.id]), start_delay=STARTS_IN)

    def _chosen(self, begins: int) -> int:
        lasts_ms = self._chance.randint(3 * APART_MS, 16 * APART_MS)
        while not self._is_free(begins + lasts_ms):
            lasts_ms += APART_MS // 5
        return lasts_ms

    def _is_free(self, at: int) -> bool:
        return all(abs(at - other) >= APART_MS for other in self._taken)


class Late:
    """Jobs that take as long as they should, but begin and end a little late, as real ones do."""

    def __init__(self, chance: Random, lasts_ms: Mapping[JobId, int]) -> None:
        self._chance = chance
        self._lasts_ms = lasts_ms

    def behaviour(self, job: Job, _: Allocation) -> Behaviour:
        lasts_ms = self._lasts_ms.get(job.id, 1) + self._chance.randint(0, JITTER_MS // 10)
        delay = Duration(self._chance.randint(0, JITTER_MS))
        return Behaviour(work=Duration(lasts_ms), start_delay=delay)

    def coming(self, coming: tuple[Coming, ...]) -> tuple[Coming, ...]:
        """What comes after the beginning comes late as well."""
        return tuple(
            replace(each, after_ms=each.after_ms + self._chance.randint(0, JITTER_MS // 2))
            if each.after_ms
            else each
            for each in coming
        )


def request(chance: Random, number: int, after_ms: int) -> Coming:
    gpus = chance.choice((1, 1, 2, 2, 4))
    spec = JobSpec(
        name=f"job{number}",
        user=ME,
        queue=chance.choice(QUEUES),
        job_class=ClassName(chance.choice(("low", "normal", "normal", "high"))),
        groups=(TaskGroup(each=Ask(cpu_milli=1_000, gpus=GpuAsk(count=gpus))),),
        time_limit=Duration(APART_MS * chance.choice((40, 240, 2_400))),
        retry=RetryPolicy(base=Duration(0)),
    )
    return Coming(after_ms=after_ms, spec=spec)


def requests(chance: Random) -> tuple[Coming, ...]:
    """Some at the beginning, all at once, and some later, one after the other."""
    first = [request(chance, number, 0) for number in range(AT_ONCE)]
    instants = sorted(chance.sample(range(2 * APART_MS, 24 * APART_MS, 2 * APART_MS), LATER))
    later = [request(chance, AT_ONCE + at, after_ms) for at, after_ms in enumerate(instants)]
    return (*first, *later)


def simulated(
    coming: tuple[Coming, ...], backend: SimulatedBackend, now: Instant
) -> tuple[Event, ...]:
    """All that happens in pretend time."""
    simulation = Simulation(SITE, {backend.cluster.name: backend}, now=now)
    simulation.run([Arrival(at=now, spec=waking())])
    first = [each for each in coming if not each.after_ms]
    for each in first:
        simulation.submit(Arrival(at=now, spec=each.spec, held=True))
    simulation.write(lambda transaction: act_on_jobs(RELEASE, ids(first), transaction))
    simulation.run(
        Arrival(at=Instant(now + each.after_ms), spec=each.spec) for each in coming if each.after_ms
    )
    stored = simulation.parts.history.events(EventQuery(limit=10_000))
    return tuple(each.event for each in stored)


RELEASE = JobActionRequest(caller=ROOT, action=JobAction.RELEASE)


def ids(coming: list[Coming]) -> tuple[JobId, ...]:
    return tuple(JobId(WAKING + number) for number in range(1, len(coming) + 1))


def lived(
    muster: Muster, coming: tuple[Coming, ...], lasts_ms: Mapping[JobId, int]
) -> tuple[Event, ...]:
    """All that happens with real processes, as time goes by."""
    service = muster.service
    specs = [
        replace(each.spec, launch=sleeping(lasts_ms[JobId(WAKING + number)]))
        for number, each in enumerate(coming, 1)
    ]
    first = [each for each in coming if not each.after_ms]
    service.submit(ROOT, waking()).result()
    until(lambda: tuple(muster.journal.record.jobs), lambda live: not live)
    for spec in specs[: len(first)]:
        service.submit(ROOT, spec, held=True).result()
    # The planner's process is there, and has time for what comes.
    service.queries.plan.rehearse(ROOT)
    began = time.monotonic()
    service.release(ROOT, ids(first)).result()
    for each, spec in list(zip(coming, specs, strict=True))[len(first) :]:
        time.sleep(max(0.0, began + each.after_ms / 1_000 - time.monotonic()))
        service.submit(ROOT, spec).result()
    until(lambda: tuple(muster.journal.record.jobs), lambda live: not live)
    stored = muster.store.events(EventQuery(limit=10_000))
    return tuple(each.event for each in stored)


def waking() -> JobSpec:
    return JobSpec(
        name="wakes",
        user=ME,
        queue=QUEUES[0],
        groups=(TaskGroup(each=Ask(cpu_milli=1_000)),),
        launch=sleeping(1),
    )


def sleeping(lasts_ms: int) -> Launch:
    return Launch(argv=("sleep", f"{lasts_ms / 1_000}"), workdir="/", stdout="/dev/null")


def decisions(events: tuple[Event, ...]) -> list[Decision]:
    """Who was given what, in which order, and who had to go for whom."""
    found: list[Decision] = []
    for event in events:
        match event:
            case JobPlaced(job=job, attempt=attempt, placements=placements):
                where = [
                    (placed.node, [share.device for share in placed.devices])
                    for placed in placements
                ]
                found.append(("placed", job, attempt, where))
            case JobPreempted(job=job, attempt=attempt, by=by):
                found.append(("preempted", job, attempt, by))
            case _:
                continue
    return found


@contextmanager
def live(place: Path) -> Generator[Muster]:
    muster = Muster(place, Settings(nodes=NODES, gpus=GPUS), SITE)
    try:
        muster.start()
        until(lambda: len(muster.journal.record.nodes), lambda count: count == NODES)
        yield muster
    finally:
        muster.close()


def chosen(
    nodes: tuple[Node, ...], cluster: Cluster, seed: int
) -> tuple[tuple[Coming, ...], Mapping[JobId, int]]:
    """Requests and how long their jobs take, so that no decision depends on a few milliseconds."""
    chance = Random(seed)  # noqa: S311 seeded on purpose
    while True:
        coming = requests(chance)
        times = Times(chance, [each.after_ms for each in coming])
        try:
            _settle(nodes, cluster, coming, times)
        except CrowdedError:
            continue
        return coming, times.lasts_ms


def _settle(
    nodes: tuple[Node, ...], cluster: Cluster, coming: tuple[Coming, ...], times: Times
) -> None:
    """Choose how long jobs take. What is used and learned decides between jobs that are nearly
    equal, and differs by the milliseconds that real processes take: such requests are no good.
    """
    on_time = decisions(
        simulated(coming, SimulatedBackend(nodes, cluster, times.behaviour), Instant(0))
    )
    for seed in range(TRIED):
        late = Late(Random(seed), times.lasts_ms)  # noqa: S311 seeded on purpose
        backend = SimulatedBackend(nodes, cluster, late.behaviour)
        if decisions(simulated(late.coming(coming), backend, Instant(0))) != on_time:
            raise CrowdedError


@pytest.mark.parametrize("seed", range(3))
def test_the_same_requests_give_the_same_decisions(seed: int) -> None:
    with ahead_of_others(), folder() as place, live(place) as muster:
        record = muster.journal.record
        nodes, cluster = tuple(record.nodes.values()), next(iter(record.clusters.values()))
        coming, lasts_ms = chosen(nodes, cluster, seed)

        def lasts(job: Job, _: Allocation) -> Behaviour:
            work = Duration(lasts_ms.get(job.id, 1))
            return Behaviour(work=work, start_delay=STARTS_IN)

        now = Instant(time.time_ns() // 1_000_000)
        happened = decisions(lived(muster, coming, lasts_ms))
        backend = SimulatedBackend(nodes, cluster, lasts, now=now)
        rehearsed = decisions(simulated(coming, backend, now))

        assert len(happened) >= AT_ONCE + LATER
        assert happened == rehearsed


WAITS = 8
"""So many jobs, each of half of the machine and of many minutes: moments do not matter to them."""


def long_requests() -> list[JobSpec]:
    return [
        JobSpec(
            name=f"long{number}",
            user=ME,
            queue=QUEUES[0],
            groups=(TaskGroup(each=Ask(cpu_milli=1_000, gpus=GpuAsk(count=4))),),
            time_limit=Duration((10 + 7 * number) * MINUTE),
            launch=sleeping(3_600_000),
        )
        for number in range(WAITS)
    ]


def foretold(nodes: tuple[Node, ...], cluster: Cluster, now: Instant) -> Mapping[JobId, StartDate]:
    """What those are told that wait, when all of it has come in pretend time."""

    def lasts(job: Job, _: Allocation) -> Behaviour:
        return Behaviour(work=job.spec.time_limit or Duration(0))

    backend = SimulatedBackend(nodes, cluster, lasts, now=now)
    simulation = Simulation(SITE, {cluster.name: backend}, now=now)
    arrivals = [Arrival(at=now, spec=spec) for spec in long_requests()]
    simulation.run(arrivals, until=now)
    forecasts = InlineForecasts(lambda: 0.0)
    snapshot = simulation.record.snapshot(simulation.now)
    *_, told = forecasts.dates(snapshot, SITE, Lessons())
    return {each.job: each.date for each in told}


def test_the_same_requests_are_told_the_same_dates() -> None:
    with ahead_of_others(), folder() as place, live(place) as muster:
        record, service = muster.journal.record, muster.service
        nodes, cluster = tuple(record.nodes.values()), next(iter(record.clusters.values()))
        now = Instant(time.time_ns() // 1_000_000)
        for spec in long_requests():
            service.submit(ROOT, spec).result()

        rehearsed = foretold(nodes, cluster, now)
        assert len(rehearsed) == WAITS - NODES

        def is_told(told: Mapping[JobId, StartDate]) -> bool:
            return told.keys() == rehearsed.keys() and all(
                about(told[job], date, now) for job, date in rehearsed.items()
            )

        until(muster.dates.latest, is_told)
        service.cancel(ROOT, tuple(record.jobs)).result()
        until(lambda: tuple(record.jobs), lambda left: not left)


def about(told: StartDate, rehearsed: StartDate, since: Instant) -> bool:
    """Live, jobs begin some moments later, and more of them pass until dates are told."""
    pairs = (
        (told.early, rehearsed.early),
        (told.middle, rehearsed.middle),
        (told.late, rehearsed.late),
    )
    return told.after == rehearsed.after and all(
        one - since == pytest.approx(other - since, rel=0.05) for one, other in pairs
    )
