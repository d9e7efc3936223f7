"""Jobs, as a story asks for them."""

from collections.abc import Mapping

from muster.model.cluster import Ability
from muster.model.job import (
    ArrayPart,
    Dependency,
    DependencyKind,
    JobSpec,
    Spot,
    TaskGroup,
)
from muster.model.queue import PreemptMode
from muster.model.value import (
    MINUTE,
    ClassName,
    ClusterName,
    Duration,
    Instant,
    JobId,
    PoolName,
    QueuePath,
    UserName,
    replace,
)
from stories.words import GroupAsked, group_of, minutes


class JobAsked(GroupAsked, total=False):
    """What a job asks for; instants are minutes from now, `after` is in Slurm's words."""

    groups: tuple[TaskGroup, ...]
    named: str
    user: str
    queue: str
    job_class: str
    pools: tuple[str, ...]
    clusters: tuple[str, ...]
    spot: str
    takes: tuple[str, ...]
    priority: int
    minutes: int
    expected_minutes: int
    begins: int
    deadline: int
    reservation: str
    after: str
    array: ArrayPart
    preemptible: bool
    mode: str
    restart_minutes: int
    labels: dict[str, str]
    held: bool


def spec_of(name: str, asked: JobAsked, *, now: Instant, names: Mapping[str, JobId]) -> JobSpec:
    """The request: one task with one GPU, by ann, in the queue `root`, unless given."""
    return JobSpec(
        name=asked.get("named", name),
        user=UserName(asked.get("user", "ann")),
        queue=QueuePath(asked.get("queue", "root")),
        groups=asked.get("groups", (group_of(asked),)),
        job_class=ClassName(asked.get("job_class", "normal")),
        pools=tuple(PoolName(pool) for pool in asked.get("pools", ())),
        clusters=tuple(ClusterName(cluster) for cluster in asked.get("clusters", ())),
        spot=Spot(asked.get("spot", "never")),
        takes=tuple(Ability(each) for each in asked.get("takes", ())),
        priority=asked.get("priority", 0),
        time_limit=minutes(asked.get("minutes")),
        begin_at=_instant(now, asked.get("begins")),
        deadline=_instant(now, asked.get("deadline")),
        reservation=asked.get("reservation"),
        after=dependencies(asked.get("after", ""), names),
        array=asked.get("array"),
        preemptible=asked.get("preemptible", True),
        preempt_mode=PreemptMode(asked["mode"]) if "mode" in asked else None,
        restart_cost=Duration(asked.get("restart_minutes", 0) * MINUTE),
        max_attempts=1_000,
        labels=asked.get("labels", {}),
    )


def dependencies(text: str, names: Mapping[str, JobId]) -> tuple[Dependency, ...]:
    """`"afterok:prep,after:other"`: all of them; of ways with `?` between them one is enough."""
    found = ((way, part) for way, parts in enumerate(text.split("?")) for part in parts.split(","))
    return tuple(replace(dependency(part, names), way=way) for way, part in found if part)


def dependency(text: str, names: Mapping[str, JobId]) -> Dependency:
    """`"afterok:prep"`, `"after:prep+10"` (minutes) or `"singleton"`."""
    kind, _, rest = text.partition(":")
    other, _, delay = rest.partition("+")
    return Dependency(
        kind=DependencyKind(kind),
        job=names[other] if other else None,
        delay=Duration(int(delay or 0) * MINUTE),
    )


def _instant(now: Instant, said: int | None) -> Instant | None:
    return None if said is None else Instant(now + said * MINUTE)
