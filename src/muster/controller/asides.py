"""What goes over the wire between the controller and the planner's process: only what changed."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from muster.controller.thinking import Move
from muster.model.cluster import Cluster, Node, Pool, Reservation
from muster.model.explanation import Explanation
from muster.model.job import Job
from muster.model.levels import Levels
from muster.model.placement import Allocation
from muster.model.plan import Measure, Wait
from muster.model.policy import Policy
from muster.model.queue import JobClass, Queue
from muster.model.snapshot import Finished, Snapshot, UsedLately, UsualAsk
from muster.model.value import (
    ClassName,
    ClusterName,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    Value,
    replace,
)

K = TypeVar("K")
V = TypeVar("V")

WAITS_AT_ONCE = 2_000
"""So many waits go into one frame: decoding them must not hold up the other threads."""


class Delta(Value):
    """A snapshot by how it differs from the one before. Tuples of None are as they were."""

    version: int
    now: Instant
    clusters: Mapping[ClusterName, Cluster] | None = None
    pools: Mapping[PoolName, Pool] | None = None
    queues: Mapping[QueuePath, Queue] | None = None
    classes: Mapping[ClassName, JobClass] | None = None
    nodes: Mapping[NodeId, Node] = {}
    gone_nodes: tuple[NodeId, ...] = ()
    jobs: Mapping[JobId, Job] = {}
    gone_jobs: tuple[JobId, ...] = ()
    allocations: Mapping[JobId, Allocation] = {}
    gone_allocations: tuple[JobId, ...] = ()
    finished: Mapping[JobId, Finished] | None = None
    reservations: tuple[Reservation, ...] | None = None
    used_lately: tuple[UsedLately, ...] = ()
    usual: tuple[UsualAsk, ...] | None = None
    levels: Levels | None = None


class AskPlan(Value, tag="plan"):
    """Plan the world that this delta leads to."""

    delta: Delta
    policy: Policy


class AskRehearsal(Value, tag="rehearsal"):
    """Plan a world that differs so from the last planned one, and forget it again."""

    delta: Delta
    policy: Policy


class AskExplanation(Value, tag="explanation"):
    """Explain a job by the last plan."""

    job: JobId


Question = AskPlan | AskRehearsal | AskExplanation


class Waits(Value, tag="waits"):
    """Some waits that are new or different; more frames follow."""

    waits: tuple[Wait, ...]


class Planned(Value, tag="planned"):
    """The rest of a plan: what moves, and who waits no longer."""

    version: int
    moves: tuple[Move, ...]
    measures: tuple[Measure, ...]
    no_longer: tuple[JobId, ...] = ()


class Explained(Value, tag="explained"):
    """The explanation."""

    explanation: Explanation


class Failed(Value, tag="failed"):
    """No answer: an UnknownError, a BadPlanError, or a bug, by its class name."""

    kind: str
    text: str


Answer = Waits | Planned | Explained | Failed

encode = msgspec.msgpack.Encoder().encode
decode_question = msgspec.msgpack.Decoder(Question).decode
decode_answer = msgspec.msgpack.Decoder(Answer).decode


def delta(old: Snapshot, new: Snapshot) -> Delta:
    """How they differ: values that are the same objects are the same."""
    return Delta(
        version=new.version,
        now=new.now,
        clusters=_whole(old.clusters, new.clusters),
        pools=_whole(old.pools, new.pools),
        queues=_whole(old.queues, new.queues),
        classes=_whole(old.classes, new.classes),
        nodes=_changed(old.nodes, new.nodes),
        gone_nodes=_gone(old.nodes, new.nodes),
        jobs=_changed(old.jobs, new.jobs),
        gone_jobs=_gone(old.jobs, new.jobs),
        allocations=_changed(old.allocations, new.allocations),
        gone_allocations=_gone(old.allocations, new.allocations),
        finished=_whole(old.finished, new.finished),
        reservations=None if old.reservations is new.reservations else new.reservations,
        used_lately=new.used_lately,
        usual=None if old.usual is new.usual else new.usual,
        levels=None if old.levels is new.levels else new.levels,
    )


def after(old: Snapshot, told: Delta) -> Snapshot:
    """The snapshot that the delta leads to; what did not change is shared."""
    return replace(
        old,
        version=told.version,
        now=told.now,
        clusters=old.clusters if told.clusters is None else told.clusters,
        pools=old.pools if told.pools is None else told.pools,
        queues=old.queues if told.queues is None else told.queues,
        classes=old.classes if told.classes is None else told.classes,
        nodes=_merged(old.nodes, told.nodes, told.gone_nodes),
        jobs=_merged(old.jobs, told.jobs, told.gone_jobs),
        allocations=_merged(old.allocations, told.allocations, told.gone_allocations),
        finished=old.finished if told.finished is None else told.finished,
        reservations=old.reservations if told.reservations is None else told.reservations,
        used_lately=told.used_lately,
        usual=old.usual if told.usual is None else told.usual,
        levels=old.levels if told.levels is None else told.levels,
    )


def _whole(old: Mapping[K, V], new: Mapping[K, V]) -> Mapping[K, V] | None:
    return None if old is new or old == new else new


def _changed(old: Mapping[K, V], new: Mapping[K, V]) -> dict[K, V]:
    known = old.get
    return {key: value for key, value in new.items() if known(key) is not value}


def _gone(old: Mapping[K, V], new: Mapping[K, V]) -> tuple[K, ...]:
    return tuple(key for key in old if key not in new)


def _merged(old: Mapping[K, V], new: Mapping[K, V], gone: tuple[K, ...]) -> Mapping[K, V]:
    if not new and not gone:
        return old
    merged = dict(old)
    merged.update(new)
    for key in gone:
        merged.pop(key, None)
    return merged
