"""Whom the benchmark's machines are shared between: the queue tree, its users, the job classes."""

from collections.abc import Iterator, Mapping
from random import Random

from bench._shapes import CORE
from muster.model.gpu import WHOLE_GPU_MILLI
from muster.model.queue import Ceiling, JobClass, Meter, Percent, PreemptMode, Queue, Quota, Scope
from muster.model.snapshot import UsedLately
from muster.model.value import (
    HOUR,
    MINUTE,
    ClassName,
    Duration,
    Instant,
    PoolName,
    QueuePath,
    UserName,
    Value,
)

DEPARTMENTS = 9
TEAMS = 10
PER_ORGANISATION = 1 + DEPARTMENTS * (1 + TEAMS)
USERS_PER_TEAM = 5

URGENT = ClassName("urgent")
INTERACTIVE = ClassName("interactive")
NORMAL = ClassName("normal")
BEST_EFFORT = ClassName("besteffort")


class Home(Value, gc=False):
    """Where somebody submits to."""

    queue: QueuePath
    user: UserName


def classes() -> dict[ClassName, JobClass]:
    found = (
        JobClass(
            name=URGENT,
            priority=1_000,
            preempts=(BEST_EFFORT,),
            preemptible=False,
            per_queue=Ceiling(gpu_milli=64 * WHOLE_GPU_MILLI),
        ),
        JobClass(
            name=INTERACTIVE,
            priority=700,
            max_time=Duration(8 * HOUR),
            per_user=Ceiling(gpu_milli=16 * WHOLE_GPU_MILLI, jobs=8),
        ),
        JobClass(name=NORMAL, priority=500, min_run=Duration(30 * MINUTE)),
        JobClass(name=BEST_EFFORT, priority=100, preempt_mode=PreemptMode.CHECKPOINT),
    )
    return {one.name: one for one in found}


def queues(count: int, gpus: int, rng: Random) -> dict[QueuePath, Queue]:
    """Organisations, departments and teams; 1,000 queues are ten equal organisations.

    90 % of all GPUs are guaranteed to organisations, that of an organisation to its departments,
    and 60 % of that to its teams: guarantees never add up to more than what is above them.
    """
    organisations = max(1, count // PER_ORGANISATION)
    per_cent = max(1, 90 // organisations)
    found: dict[QueuePath, Queue] = {}
    for queue in _tree(organisations, per_cent, gpus, rng):
        if len(found) == count:
            break
        found[queue.path] = queue
    return found


def homes(found: Mapping[QueuePath, Queue]) -> list[Home]:
    """Every user of every team; teams are the queues with nothing below them."""
    parents = {path.rpartition("/")[0] for path in found}
    teams = [path for path in found if path not in parents]
    return [
        Home(queue=path, user=UserName(f"u{team * USERS_PER_TEAM + who:04d}"))
        for team, path in enumerate(teams)
        for who in range(USERS_PER_TEAM)
    ]


def used_lately(found: list[Home], now: Instant, rng: Random) -> tuple[UsedLately, ...]:
    """Most people had a few GPU-hours this week, a few had thousands."""
    return tuple(
        UsedLately(
            queue=home.queue,
            user=home.user,
            gpu_milli_ms=int(rng.paretovariate(1.1) * WHOLE_GPU_MILLI * HOUR),
            as_of=Instant(now - rng.randrange(HOUR)),
        )
        for home in found
    )


def _tree(organisations: int, per_cent: int, gpus: int, rng: Random) -> Iterator[Queue]:
    department = max(1, per_cent // DEPARTMENTS)
    team_milli = gpus * WHOLE_GPU_MILLI * department * 60 // (100 * 100 * TEAMS)
    for org in range(organisations + 1):
        yield _organisation(f"org{org}", per_cent, rng)
        for dept in range(DEPARTMENTS):
            path = f"org{org}/dept{dept}"
            yield _department(path, department, rng)
            for team in range(TEAMS):
                yield _team(f"{path}/team{team}", team_milli, rng)


def _organisation(path: str, per_cent: int, rng: Random) -> Queue:
    """A nominal part of everything with a ceiling of three times that, and the like in one pool."""
    ceiling = Percent(percent=min(100, 3 * per_cent))
    nominal = Percent(percent=per_cent)
    big = Scope(pool=PoolName("h100"))
    return Queue(
        path=QueuePath(path),
        weight=rng.randint(1, 4),
        quotas=(
            Quota(guaranteed=nominal, limit=ceiling),
            Quota(scope=big, guaranteed=Percent(percent=per_cent // 2), limit=ceiling),
        ),
    )


def _department(path: str, per_cent: int, rng: Random) -> Queue:
    """One in nine lends only half of its guarantee, one in nine borrows only as much again."""
    rule = rng.randrange(9)
    nominal = Percent(percent=per_cent)
    quota = Quota(
        guaranteed=nominal,
        lend_limit=Percent(percent=per_cent // 2) if rule == 0 else None,
        borrow_limit=nominal if rule == 1 else None,
    )
    return Queue(path=QueuePath(path), weight=rng.randint(1, 4), quotas=(quota,))


def _team(path: str, guaranteed: int, rng: Random) -> Queue:
    """Half of the teams may not go beyond some times their guarantee, but always to 64 GPUs."""
    times = rng.choice((None, None, 4, 8))
    limit = None if times is None else max(64 * WHOLE_GPU_MILLI, times * guaranteed)
    quotas = [Quota(guaranteed=guaranteed, limit=limit)]
    if rng.randrange(20) == 0:
        quotas.append(Quota(scope=Scope(meter=Meter.MIG, profile="1g.5gb"), limit=5))
    if rng.randrange(20) == 0:
        quotas.append(Quota(scope=Scope(meter=Meter.CPU), limit=1_000 * CORE))
    return Queue(
        path=QueuePath(path),
        quotas=tuple(quotas),
        weight=rng.randint(1, 4),
        max_jobs=rng.choice((50, 100, 200)) if rng.randrange(10) == 0 else None,
    )
