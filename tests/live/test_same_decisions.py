"""What is rehearsed is what happens: the same requests, live and in pretend time."""

import getpass
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from live.house import GPUS, NODES, folder, until
from muster.app.parts import Muster
from muster.backends.fate import Fate
from muster.backends.simulated import SimulatedBackend
from muster.controller.asked import Caller
from muster.controller.moves import Move, Wish, moved
from muster.doors.config.default import DEFAULT_SITE
from muster.model.cluster import Cluster, Node
from muster.model.event import Event, JobEnded, JobPlaced, JobPreempted
from muster.model.gpu import GpuAsk
from muster.model.job import Ask, Job, JobSpec, TaskGroup
from muster.model.launch import Launch
from muster.model.placement import Allocation
from muster.model.queue import Queue
from muster.model.value import (
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
from muster.simulator.run import Arrival, Simulation
from muster.stores.base import EventQuery

pytestmark = pytest.mark.slow

ME = UserName(getpass.getuser())
ROOT = Caller(user=ME, door="test", root=True)
QUEUES = tuple(QueuePath(each) for each in ("default", "a", "b"))
SITE = replace(DEFAULT_SITE, queues={path: Queue(path=path) for path in QUEUES})

AT_ONCE = 12
LATER = 8
APART_MS = 220
"""No two events are closer than this: real time jitters, and must not change their order."""

Decision = tuple[object, ...]


class Coming(Value):
    """A request: so long after the beginning, for a job that takes so long."""

    after_ms: int
    lasts_ms: int
    spec: JobSpec


def request(chance: Random, number: int, after_ms: int) -> Coming:
    lasts_ms = 100 * chance.randint(8, 45)
    gpus = chance.choice((1, 1, 2, 2, 4))
    spec = JobSpec(
        name=f"job{number}",
        user=ME,
        queue=chance.choice(QUEUES),
        job_class=ClassName(chance.choice(("low", "normal", "normal", "high"))),
        groups=(TaskGroup(each=Ask(cpu_milli=1_000, gpus=GpuAsk(count=gpus))),),
        time_limit=Duration(1_000 * chance.choice((10, 60, 600))),
        launch=Launch(
            argv=("sleep", f"{lasts_ms / 1_000}"), workdir="/", stdout="/dev/null"
        ),
    )
    return Coming(after_ms=after_ms, lasts_ms=lasts_ms, spec=spec)


def requests(seed: int) -> tuple[Coming, ...]:
    """Some at the beginning, all at once, and some later, one after the other."""
    chance = Random(seed)  # noqa: S311 seeded on purpose
    first = [request(chance, number, 0) for number in range(AT_ONCE)]
    instants = sorted(100 * chance.randint(5, 60) + 50 for _ in range(LATER))
    later = [request(chance, AT_ONCE + at, after_ms) for at, after_ms in enumerate(instants)]
    return (*first, *later)


def simulated(
    coming: tuple[Coming, ...], nodes: tuple[Node, ...], cluster: Cluster, now: Instant
) -> tuple[Event, ...]:
    """All that happens in pretend time."""

    def lasts(job: Job, _: Allocation) -> Fate:
        return Fate(work=Duration(coming[job.id - 1].lasts_ms))

    backend = SimulatedBackend(nodes, cluster, lasts, now=now)
    simulation = Simulation(SITE, {cluster.name: backend}, now=now)
    first = [each for each in coming if not each.after_ms]
    for each in first:
        simulation.submit(Arrival(at=now, spec=each.spec, held=True))
    simulation.write(lambda stage: moved(RELEASE, ids(first), stage))
    simulation.run(
        Arrival(at=Instant(now + each.after_ms), spec=each.spec)
        for each in coming
        if each.after_ms
    )
    stored = simulation.parts.history.events(EventQuery(limit=10_000))
    return tuple(each.event for each in stored)


RELEASE = Wish(caller=ROOT, move=Move.RELEASE)


def ids(coming: list[Coming]) -> tuple[JobId, ...]:
    return tuple(JobId(number) for number in range(1, len(coming) + 1))


def lived(muster: Muster, coming: tuple[Coming, ...]) -> tuple[Event, ...]:
    """All that happens with real processes, as time goes by."""
    service = muster.service
    first = [each for each in coming if not each.after_ms]
    for each in first:
        service.submit(ROOT, each.spec, held=True).result()
    began = time.monotonic()
    service.release(ROOT, ids(first)).result()
    for each in coming[len(first) :]:
        time.sleep(max(0.0, began + each.after_ms / 1_000 - time.monotonic()))
        service.submit(ROOT, each.spec).result()
    until(lambda: tuple(muster.journal.record.jobs), lambda live: not live)
    stored = muster.store.events(EventQuery(limit=10_000))
    return tuple(each.event for each in stored)


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


def is_spread(events: tuple[Event, ...], coming: tuple[Coming, ...], now: Instant) -> bool:
    """Is there time enough between any two events that come from outside?"""
    ends = [event.at - now for event in events if isinstance(event, JobEnded)]
    # What makes room ends in the moment it is told to, and whoever it is for follows.
    instants = sorted({*ends, *(each.after_ms for each in coming)})
    return all(
        later - earlier >= APART_MS
        for earlier, later in zip(instants, instants[1:], strict=False)
    )


@contextmanager
def live(place: Path) -> Iterator[Muster]:
    muster = Muster(place, Settings(nodes=NODES, gpus=GPUS), SITE)
    try:
        muster.start()
        until(lambda: len(muster.journal.record.nodes), lambda count: count == NODES)
        yield muster
    finally:
        muster.close()


def chosen(nodes: tuple[Node, ...], cluster: Cluster, number: int) -> tuple[Coming, ...]:
    """The first list of requests, from a seed of its own on, that leaves time to tell apart."""
    for seed in range(1_000 * number, 1_000 * (number + 1)):
        coming = requests(seed)
        events = simulated(coming, nodes, cluster, Instant(0))
        if is_spread(events, coming, Instant(0)):
            return coming
    raise AssertionError("no list of requests is spread enough")


@pytest.mark.parametrize("number", range(2))
def test_the_same_requests_give_the_same_decisions(number: int) -> None:
    with folder() as place, live(place) as muster:
        record = muster.journal.record
        nodes, cluster = tuple(record.nodes.values()), next(iter(record.clusters.values()))
        coming = chosen(nodes, cluster, number)

        now = Instant(time.time_ns() // 1_000_000)
        happened = decisions(lived(muster, coming))
        rehearsed = decisions(simulated(coming, nodes, cluster, now))

        assert len(happened) >= AT_ONCE + LATER
        assert happened == rehearsed
