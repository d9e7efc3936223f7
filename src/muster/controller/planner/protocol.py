"""What goes over the wire between the controller and the planner's process: only what changed."""

from collections.abc import Mapping
from typing import IO, TypeVar

import msgspec

from muster.model.cluster import Cluster, Node, Pool, Reservation
from muster.model.explanation import Explanation
from muster.model.job import Job
from muster.model.levels import Levels
from muster.model.placement import Allocation
from muster.model.plan import Measure, Move, NoEstimate, Prospect, Wait
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


class SnapshotDelta(Value):
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


class PlanRequest(Value, tag="plan"):
    """Plan the world that this delta leads to."""

    delta: SnapshotDelta
    policy: Policy


class RehearsalRequest(Value, tag="rehearsal"):
    """Plan a world that differs so from the last planned one, and forget it again.

    job: whose expected start is asked for.
    """

    delta: SnapshotDelta
    policy: Policy
    job: JobId | None = None


class ExplanationRequest(Value, tag="explanation"):
    """Explain a job by the last plan."""

    job: JobId


class BacklogRequest(Value, tag="backlog"):
    """Where the jobs stand that wait after the last plan."""


Request = PlanRequest | RehearsalRequest | ExplanationRequest | BacklogRequest


class WaitsReply(Value, tag="waits"):
    """Some waits that are new or different; more frames follow."""

    waits: tuple[Wait, ...]


class PlanReply(Value, tag="planned"):
    """The rest of a plan: what moves, and who waits no longer."""

    version: int
    moves: tuple[Move, ...]
    measures: tuple[Measure, ...]
    no_longer: tuple[JobId, ...] = ()
    expected: Instant | NoEstimate | None = None


class BacklogReply(Value, tag="backlog"):
    """Part of a backlog; more frames follow until the last."""

    prospects: Mapping[JobId, Prospect]
    is_last: bool


class ExplanationReply(Value, tag="explained"):
    """The explanation."""

    explanation: Explanation


class ErrorReply(Value, tag="failed"):
    """No answer: an UnknownError, a BadPlanError, or a bug, by its class name."""

    kind: str
    text: str


Reply = WaitsReply | PlanReply | BacklogReply | ExplanationReply | ErrorReply

encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(Request).decode
decode_reply = msgspec.msgpack.Decoder(Reply).decode


def snapshot_delta(old: Snapshot, new: Snapshot) -> SnapshotDelta:
    """How they differ: values that are the same objects are the same."""
    return SnapshotDelta(
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


def snapshot_after(old: Snapshot, change: SnapshotDelta) -> Snapshot:
    """The snapshot that the delta leads to; what did not change is shared."""
    return replace(
        old,
        version=change.version,
        now=change.now,
        clusters=old.clusters if change.clusters is None else change.clusters,
        pools=old.pools if change.pools is None else change.pools,
        queues=old.queues if change.queues is None else change.queues,
        classes=old.classes if change.classes is None else change.classes,
        nodes=_merged(old.nodes, change.nodes, change.gone_nodes),
        jobs=_merged(old.jobs, change.jobs, change.gone_jobs),
        allocations=_merged(old.allocations, change.allocations, change.gone_allocations),
        finished=old.finished if change.finished is None else change.finished,
        reservations=old.reservations if change.reservations is None else change.reservations,
        used_lately=change.used_lately,
        usual=old.usual if change.usual is None else change.usual,
        levels=old.levels if change.levels is None else change.levels,
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


def write_frame(pipe: IO[bytes], frame: bytes) -> None:
    pipe.write(len(frame).to_bytes(8, "big"))
    pipe.write(frame)
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> bytes | None:
    size = pipe.read(8)
    if len(size) < 8:
        return None
    return pipe.read(int.from_bytes(size, "big"))
