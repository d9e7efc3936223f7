"""The world that the planner is measured in, and what a controller makes of it after a plan.

Everything comes from the seed: the same size and seed give the same world.
"""

from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from bench._fleet import CLUSTER, GPUS_PER_NODE, nodes, pools, reservations
from bench._shapes import SHAPES
from bench._tenants import (
    BEST_EFFORT,
    INTERACTIVE,
    NORMAL,
    URGENT,
    Home,
    classes,
    homes,
    queues,
    used_lately,
)
from bench.report import Row, aligned
from muster.model.gpu import WHOLE_GPU_MILLI
from muster.model.history import Finished
from muster.model.job import (
    Ask,
    Dependency,
    DependencyKind,
    HeldBy,
    Job,
    JobSpec,
    JobState,
    Spot,
    gpu_milli,
)
from muster.model.placement import Allocation, Claim
from muster.model.plan import (
    Clear,
    Measure,
    Move,
    Plan,
    Preempt,
    Repartition,
    Resize,
    Resume,
    Start,
    Wait,
)
from muster.model.policy import SharePolicy
from muster.model.queue import PreemptMode
from muster.model.reason import MakingRoom
from muster.model.snapshot import Snapshot, UsualAsk
from muster.model.value import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    ClassName,
    Duration,
    Instant,
    JobId,
    replace,
)
from muster.model.versioned import VersionedMapping, VersionHistory

K = TypeVar("K")
V = TypeVar("V")

NOW = Instant(1_780_000_000_000)

TICK = Duration(10 * SECOND)
FIRST_ID = 1_000
HALF_LIFE = SharePolicy().half_life

_SHAPES_UP_TO = tuple(accumulate(shape.per_million for shape in SHAPES))
_LABELS: Mapping[str | None, Mapping[str, str]] = {
    shape.app: {} if shape.app is None else {"app": shape.app} for shape in SHAPES
}
_CLASSES = (URGENT,) * 3 + (INTERACTIVE,) * 10 + (NORMAL,) * 67 + (BEST_EFFORT,) * 20
_MODEST = (NORMAL,) * 8 + (BEST_EFFORT,) * 2
_LARGE = frozenset({"gang of nodes", "elastic gang"})
_ROUND_HOURS = (1, 2, 4, 8, 8, 12, 24, 24, 48, 72)


@dataclass(frozen=True, kw_only=True)
class Size:
    """How big a world."""

    nodes: int = 10_000
    pending: int = 100_000
    queues: int = 1_000


def world(size: Size, seed: int = 1) -> Snapshot:
    """An empty cluster, and everybody waiting for it since two days."""
    rng = Random(seed)
    machines = nodes(size.nodes)
    tree = queues(size.queues, size.nodes * GPUS_PER_NODE, rng)
    people = homes(tree)
    jobs = dict(_waiting(size.pending, people, rng))
    return Snapshot(
        version=1,
        now=NOW,
        clusters={CLUSTER.name: CLUSTER},
        pools=pools(),
        nodes=machines,
        queues=tree,
        classes=classes(),
        jobs=jobs,
        reservations=reservations(machines, NOW, next(iter(tree))),
        used_lately=used_lately(people, NOW, rng),
        usual=usual(),
    )


def usual() -> tuple[UsualAsk, ...]:
    """The tasks that the shapes come to, most frequent first."""
    counts: Counter[Ask] = Counter()
    for shape in SHAPES:
        for group in shape.groups:
            counts[group.each] += shape.per_million * group.count
    return tuple(UsualAsk(each=each, count=count) for each, count in counts.most_common())


def _waiting(count: int, people: Sequence[Home], rng: Random) -> Iterator[tuple[JobId, Job]]:
    """Jobs in the order in which they came; a few people submit most of them."""
    up_to = list(accumulate(rng.paretovariate(1.2) for _ in people))
    instants = sorted(NOW - rng.randrange(2 * DAY) for _ in range(count))
    for number, submitted_at in enumerate(instants, start=FIRST_ID):
        home = people[bisect(up_to, rng.random() * up_to[-1], hi=len(people) - 1)]
        yield JobId(number), _job(JobId(number), home, Instant(submitted_at), rng)


def _job(number: JobId, home: Home, submitted_at: Instant, rng: Random) -> Job:
    """One more request; now and then held, put off to another day, or after the job before it."""
    shape = SHAPES[bisect(_SHAPES_UP_TO, rng.randrange(_SHAPES_UP_TO[-1]))]
    job_class = rng.choice(_MODEST if shape.family in _LARGE else _CLASSES)
    chance = rng.randrange(1_000)
    is_held, is_later, is_chained = chance < 3, 3 <= chance < 8, number % 2 and chance >= 980
    spec = JobSpec(
        name=f"{shape.family}-{number}",
        user=home.user,
        queue=home.queue,
        groups=shape.groups,
        job_class=job_class,
        spot=Spot.ALLOWED if job_class == BEST_EFFORT else Spot.NEVER,
        time_limit=_time_limit(job_class, rng),
        begin_at=Instant(submitted_at + 3 * DAY) if is_later else None,
        after=(_after(number - 1),) if is_chained else (),
        labels=_LABELS[shape.app],
    )
    return Job(
        id=number,
        spec=spec,
        state=JobState.HELD if is_held else JobState.PENDING,
        why=HeldBy(user=home.user) if is_held else None,
        submitted_at=submitted_at,
    )


def _after(number: int) -> Dependency:
    return Dependency(kind=DependencyKind.AFTER_OK, job=JobId(number))


def _time_limit(job_class: ClassName, rng: Random) -> Duration | None:
    """10 minutes to 3 days: most people like round hours, some count minutes, some say nothing."""
    if job_class == INTERACTIVE:
        return Duration(rng.choice((10, 30, 60, 120, 240, 480)) * MINUTE)
    match rng.randrange(20):
        case 0:
            return None
        case 1 | 2 | 3 | 4:
            return Duration(rng.randint(10, 3 * 24 * 60) * MINUTE)
        case _:
            return Duration(rng.choice(_ROUND_HOURS) * HOUR)


def advance(
    snapshot: Snapshot, plan: Plan, rng: Random, ended: int = 100, arrived: int = 100
) -> Snapshot:
    """Ten seconds later: the plan was carried out, some jobs ended and some arrived.

    What did not change is shared with the snapshot before; what did is named, as by the controller.
    """
    draft = _Draft(snapshot)
    for move in plan.moves:
        draft.follow(move, rng)
    for job in snapshot.jobs.values():
        if job.claim is not None and job.id in plan.waits:
            draft.drop_claim(job, plan.waits[job.id])
    for measure in plan.measures:
        draft.take(measure)
    draft.end(ended, rng)
    draft.submit(arrived, rng)
    return draft.snapshot()


class _Draft:
    """The next snapshot while it is being written."""

    def __init__(self, before: Snapshot) -> None:
        self.before = before
        self.now = Instant(before.now + TICK)
        self.nodes = dict(before.nodes)
        self.jobs = dict(before.jobs)
        self.allocations = dict(before.allocations)
        self.finished = dict(before.finished)
        self.used = {(used.queue, used.user): used for used in before.used_lately}

    def follow(self, decision: Move, rng: Random) -> None:
        job = self.jobs[decision.job]
        match decision:
            case Start():
                self._start(job, decision, rng)
            case Clear():
                claim = Claim(
                    cluster=decision.cluster,
                    placements=decision.placements,
                    victims=decision.victims,
                    until=decision.until,
                )
                self.jobs[job.id] = replace(job, claim=claim)
            case Resume():
                self.jobs[job.id] = replace(job, state=JobState.RUNNING)

    def drop_claim(self, job: Job, wait: Wait) -> None:
        """Room is kept only for jobs that still wait for it to become free."""
        if not isinstance(wait.why, MakingRoom):
            self.jobs[job.id] = replace(job, claim=None)

    def take(self, measure: Measure) -> None:
        match measure:
            case Preempt():
                self._make_room(self.jobs[measure.job], measure.mode)
            case Resize():
                held = self.allocations[measure.job]
                placements = held.placements + measure.placements
                self.allocations[measure.job] = replace(held, placements=placements)
            case Repartition():
                self._cut(measure)

    def end(self, count: int, rng: Random) -> None:
        """Running jobs end at random, are charged for, and remembered if another waits for them."""
        running = [one for one in self.allocations if self.jobs[one].state is JobState.RUNNING]
        named = {on.job for job in self.jobs.values() for on in job.spec.after}
        for number in rng.sample(running, min(count, len(running))):
            job, held = self.jobs.pop(number), self.allocations.pop(number)
            self._charge(job.spec, held)
            if number in named:
                self.finished[number] = Finished(
                    state=JobState.COMPLETED, started_at=held.started_at, ended_at=self.now
                )

    def submit(self, count: int, rng: Random) -> None:
        """More of the same people submit. Their ids carry the version: none is used twice."""
        specs = [job.spec for job in rng.sample(tuple(self.jobs.values()), count)]
        first = (self.before.version + 1) * 10_000_000
        for number, spec in enumerate(specs, start=first):
            home = Home(queue=spec.queue, user=spec.user)
            self.jobs[JobId(number)] = _job(JobId(number), home, self.now, rng)

    def snapshot(self) -> Snapshot:
        return replace(
            self.before,
            version=self.before.version + 1,
            now=self.now,
            nodes=_version(self.before.nodes, self.nodes),
            jobs=_version(self.before.jobs, self.jobs),
            allocations=_version(self.before.allocations, self.allocations),
            finished=self.finished,
            used_lately=tuple(self.used.values()),
        )

    def _start(self, job: Job, start: Start, rng: Random) -> None:
        """The backend takes some seconds to begin, so that no two jobs began at one instant."""
        self.jobs[job.id] = replace(job, state=JobState.RUNNING, attempt=start.attempt, claim=None)
        self.allocations[job.id] = Allocation(
            job=job.id,
            attempt=start.attempt,
            cluster=start.cluster,
            placements=start.placements,
            placed_at=self.before.now,
            started_at=Instant(self.before.now + rng.randrange(TICK)),
        )

    def _make_room(self, victim: Job, mode: PreemptMode) -> None:
        match mode:
            case PreemptMode.REQUEUE | PreemptMode.CHECKPOINT:
                self.jobs[victim.id] = replace(victim, state=JobState.PENDING)
                del self.allocations[victim.id]
            case PreemptMode.SUSPEND:
                self.jobs[victim.id] = replace(victim, state=JobState.SUSPENDED)
            case PreemptMode.CANCEL:
                del self.jobs[victim.id], self.allocations[victim.id]

    def _cut(self, anew: Repartition) -> None:
        node = self.nodes[anew.node]
        devices = (
            replace(device, mig=anew.instances) if device.id == anew.device else device
            for device in node.devices
        )
        self.nodes[node.id] = replace(node, devices=tuple(devices))

    def _charge(self, spec: JobSpec, held: Allocation) -> None:
        used = self.used[spec.queue, spec.user]
        ran = self.now - (held.started_at or self.now)
        gpu_milli = sum(placement.amount.gpu_milli for placement in held.placements)
        left = 0.5 ** ((self.now - used.as_of) / HALF_LIFE)
        self.used[spec.queue, spec.user] = replace(
            used, gpu_milli_ms=int(used.gpu_milli_ms * left) + gpu_milli * ran, as_of=self.now
        )


_LIVE: WeakKeyDictionary[VersionHistory[Any, Any], dict[Any, Any]] = WeakKeyDictionary()
"""The mapping that each history makes versions of."""


def _version(before: Mapping[K, V], after: Mapping[K, V]) -> VersionedMapping[K, V]:
    """The mapping as the controller hands it to the planner: it knows in what it differs."""
    if isinstance(before, VersionedMapping):
        history = before.history
    else:
        live = dict(before)
        history = VersionHistory(live)
        _LIVE[history] = live
        history.version()
    live = _LIVE[history]
    for key in before.keys() | after.keys():
        if before.get(key) is not after.get(key):
            history.note(key)
    live.clear()
    live.update(after)
    return history.version()


def main() -> None:
    """What the world is made of, for those who want to judge the figures."""
    snapshot = world(Size())
    demand: Counter[str] = Counter()
    jobs: Counter[str] = Counter()
    for job in snapshot.jobs.values():
        family = job.spec.name.rpartition("-")[0]
        jobs[family] += 1
        demand[family] += sum(
            group.count * gpu_milli(group.each.gpus, None) for group in job.spec.groups
        )
    table: list[Row] = [
        {"family": family, "jobs": count, "GPUs": demand[family] // WHOLE_GPU_MILLI}
        for family, count in jobs.most_common()
    ]
    gpus = sum(len(node.devices) for node in snapshot.nodes.values())
    print(aligned(table))
    print(f"\n{demand.total() / WHOLE_GPU_MILLI / gpus:.2f} times the {gpus:,} GPUs that exist")


if __name__ == "__main__":
    main()
