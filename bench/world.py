"""The world that the planner is measured in.

Everything comes from the seed: the same size and seed give the same world.
"""

from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random

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
)

NOW = Instant(1_780_000_000_000)

TICK = Duration(10 * SECOND)
FIRST_ID = 1_000

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
