"""The wire between the controller and the planner's process: only what changed goes over it.

Plans go over one pipe, one after the other. Every other question has a connection of its own, to a
copy of the process that answers it and ends: first the copy says which plan it knows, then the
question is asked.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

import msgspec

from muster.model.cluster import Cluster, Node, Pool, Reservation
from muster.model.explanation import Alternative, Explanation
from muster.model.history import Finished
from muster.model.job import EndReason, HeldBy, Job, JobSpec, JobState
from muster.model.levels import Levels
from muster.model.placement import Allocation, Claim, Placement
from muster.model.plan import Measure, Move, NoEstimate, Prospect, Start, Wait
from muster.model.policy import Policy
from muster.model.queue import JobClass, Queue
from muster.model.shared_spec import OwnSpec, are_parts_of_one, joined, own_spec, shared_spec
from muster.model.snapshot import Snapshot, UsedLately, UsualAsk
from muster.model.value import (
    ClassName,
    ClusterName,
    Duration,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    Value,
)
from muster.model.versioned import changed_keys

K = TypeVar("K", JobId, NodeId)
V = TypeVar("V")
W = TypeVar("W")

WAITS_AT_ONCE = 2_000
"""So many waits go into one frame: decoding them must not hold up the other threads."""

Placements = tuple[Placement, ...]

NOTHING_OWN = OwnSpec()
NOTHING_GIVEN: Mapping[JobId, Placements] = {}


class MovedJob(Value, kw_only=True, array_like=True):
    """A job without its spec, which is the largest part and seldom changes."""

    id: JobId
    state: JobState
    why: EndReason | HeldBy | None
    submitted_at: Instant
    attempt: int
    claim: Claim | None
    failures: int
    not_before: Instant | None
    checkpoint: str | None
    expected: Duration | None
    ran: Duration


class NewJob(Value, kw_only=True, array_like=True, gc=False):
    """A job whose spec is new to the other side, or another one.

    spec: the place of what it shares with others in the `specs` of the delta. own: the rest of it.
    """

    spec: int
    own: OwnSpec
    moved: MovedJob


class MovedAllocation(Value, kw_only=True, array_like=True):
    """An allocation without its placements."""

    job: JobId
    attempt: int
    cluster: ClusterName
    placed_at: Instant
    started_at: Instant | None
    checkpointed_at: Instant | None
    resumed_at: Instant | None
    handle: str | None
    stands_since: Instant | None
    stood: Duration


class SnapshotDelta(Value):
    """How a snapshot differs from the one before. None stands for what is as it was.

    specs: what the new jobs ask for, once for all that share it.
    moved_jobs: those with the spec that they had before.
    moved_allocations: those with the placements that they had before.
    placed_allocations: those with the placements that the last plan gave them.
    """

    version: int
    now: Instant
    clusters: Mapping[ClusterName, Cluster] | None = None
    pools: Mapping[PoolName, Pool] | None = None
    queues: Mapping[QueuePath, Queue] | None = None
    classes: Mapping[ClassName, JobClass] | None = None
    nodes: Mapping[NodeId, Node] = {}
    gone_nodes: tuple[NodeId, ...] = ()
    specs: tuple[JobSpec, ...] = ()
    new_jobs: tuple[NewJob, ...] = ()
    moved_jobs: tuple[MovedJob, ...] = ()
    gone_jobs: tuple[JobId, ...] = ()
    allocations: Mapping[JobId, Allocation] = {}
    moved_allocations: tuple[MovedAllocation, ...] = ()
    placed_allocations: tuple[MovedAllocation, ...] = ()
    gone_allocations: tuple[JobId, ...] = ()
    finished: Mapping[JobId, Finished] = {}
    gone_finished: tuple[JobId, ...] = ()
    reservations: tuple[Reservation, ...] | None = None
    used_lately: tuple[UsedLately, ...] = ()
    usual: tuple[UsualAsk, ...] | None = None
    levels: Levels | None = None


class PlanRequest(Value, tag="plan"):
    """Plan the world that this delta leads to. number: counts the plans of one process, from 1."""

    number: int
    delta: SnapshotDelta
    policy: Policy


class RehearsalRequest(Value, tag="rehearsal"):
    """Plan the world as it is now, and then the changed one.

    usual: how now differs from the last planned world. changed: how the changed one does from now.
    job: whose expected start is asked for.
    """

    usual: SnapshotDelta
    usual_policy: Policy
    changed: SnapshotDelta
    changed_policy: Policy
    job: JobId | None = None


class ExplanationRequest(Value, tag="explanation"):
    """Explain a job by the last plan."""

    job: JobId


class BacklogRequest(Value, tag="backlog"):
    """Where the jobs stand that wait after the last plan."""


Question = RehearsalRequest | ExplanationRequest | BacklogRequest


class WaitsReply(Value, tag="waits"):
    """Some waits that are new or different; more frames follow."""

    waits: tuple[Wait, ...]


class PlanReply(Value, tag="planned"):
    """The rest of a plan: what moves, and which jobs wait no longer."""

    version: int
    moves: tuple[Move, ...]
    measures: tuple[Measure, ...]
    no_longer: tuple[JobId, ...] = ()


class ReadyReply(Value, tag="ready"):
    """A copy of the process can be asked. number: that of the last plan it knows."""

    number: int


class RehearsalReply(Value, tag="rehearsed"):
    """What moves in both worlds. wait and what follows: of the job that was asked about."""

    version: int
    usual_moves: tuple[Move, ...]
    usual_measures: tuple[Measure, ...]
    changed_moves: tuple[Move, ...]
    changed_measures: tuple[Measure, ...]
    wait: Wait | None = None
    expected: Instant | NoEstimate | None = None
    placements: tuple[Placement, ...] = ()
    alternatives: tuple[Alternative, ...] = ()


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


Reply = (
    WaitsReply
    | PlanReply
    | ReadyReply
    | RehearsalReply
    | BacklogReply
    | ExplanationReply
    | ErrorReply
)


encode = msgspec.msgpack.Encoder().encode
decode_plan_request = msgspec.msgpack.Decoder(PlanRequest).decode
decode_question = msgspec.msgpack.Decoder(Question).decode
decode_reply = msgspec.msgpack.Decoder(Reply).decode


def given_by(moves: Iterable[Move]) -> dict[JobId, Placements]:
    """What a plan gives to jobs that start."""
    return {move.job: move.placements for move in moves if isinstance(move, Start)}


def snapshot_delta(
    old: Snapshot, new: Snapshot, given: Mapping[JobId, Placements] = NOTHING_GIVEN
) -> SnapshotDelta:
    """How they differ. Versions of one mapping know it; others are compared value by value.

    given: what the plan of the old one gave to jobs that start; the other side knows it too.
    """
    nodes, gone_nodes = _difference(old.nodes, new.nodes)
    jobs, gone_jobs = _difference(old.jobs, new.jobs)
    moved_jobs = [
        moved_job(jobs.pop(job.id))
        for job in list(jobs.values())
        if (known := old.jobs.get(job.id)) is not None and known.spec is job.spec
    ]
    specs, new_jobs = _new_jobs(jobs.values())
    allocations, gone_allocations = _difference(old.allocations, new.allocations)
    moved_allocations = [
        moved_allocation(allocations.pop(each.job))
        for each in list(allocations.values())
        if (held := old.allocations.get(each.job)) is not None
        and held.placements is each.placements
    ]
    placed_allocations = [
        moved_allocation(allocations.pop(each.job))
        for each in list(allocations.values() if given else ())
        if given.get(each.job) is each.placements
    ]
    finished, gone_finished = _difference(old.finished, new.finished)
    return SnapshotDelta(
        version=new.version,
        now=new.now,
        clusters=_whole(old.clusters, new.clusters),
        pools=_whole(old.pools, new.pools),
        queues=_whole(old.queues, new.queues),
        classes=_whole(old.classes, new.classes),
        nodes=nodes,
        gone_nodes=gone_nodes,
        specs=specs,
        new_jobs=new_jobs,
        moved_jobs=tuple(moved_jobs),
        gone_jobs=gone_jobs,
        allocations=allocations,
        moved_allocations=tuple(moved_allocations),
        placed_allocations=tuple(placed_allocations),
        gone_allocations=gone_allocations,
        finished=finished,
        gone_finished=gone_finished,
        reservations=None if old.reservations == new.reservations else new.reservations,
        used_lately=new.used_lately,
        usual=None if old.usual is new.usual else new.usual,
        levels=None if old.levels is new.levels else new.levels,
    )


def _new_jobs(jobs: Iterable[Job]) -> tuple[tuple[JobSpec, ...], tuple[NewJob, ...]]:
    """Those that follow each other and differ only in what is their own share a spec."""
    specs: list[JobSpec] = []
    new_jobs: list[NewJob] = []
    last: JobSpec | None = None
    for job in jobs:
        spec, own = job.spec, NOTHING_OWN
        if spec.array is None:
            specs.append(spec)
            last = None
        else:
            own = own_spec(spec)
            if last is None or not are_parts_of_one(last, spec):
                specs.append(shared_spec(spec))
            last = spec
        new_jobs.append(NewJob(spec=len(specs) - 1, own=own, moved=moved_job(job)))
    return tuple(specs), tuple(new_jobs)


def job_made(specs: tuple[JobSpec, ...], new: NewJob) -> Job:
    """The job again, with what it shares and what is its own of its spec."""
    shared = specs[new.spec]
    spec = shared if new.own.array is None else joined(shared, new.own)
    return job_moved(spec, new.moved)


def moved_job(job: Job) -> MovedJob:
    return MovedJob(
        id=job.id,
        state=job.state,
        why=job.why,
        submitted_at=job.submitted_at,
        attempt=job.attempt,
        claim=job.claim,
        failures=job.failures,
        not_before=job.not_before,
        checkpoint=job.checkpoint,
        expected=job.expected,
        ran=job.ran,
    )


def job_moved(spec: JobSpec, moved: MovedJob) -> Job:
    """The job again, with the spec that it had before."""
    return Job(
        id=moved.id,
        spec=spec,
        state=moved.state,
        why=moved.why,
        submitted_at=moved.submitted_at,
        attempt=moved.attempt,
        claim=moved.claim,
        failures=moved.failures,
        not_before=moved.not_before,
        checkpoint=moved.checkpoint,
        expected=moved.expected,
        ran=moved.ran,
    )


def moved_allocation(allocation: Allocation) -> MovedAllocation:
    return MovedAllocation(
        job=allocation.job,
        attempt=allocation.attempt,
        cluster=allocation.cluster,
        placed_at=allocation.placed_at,
        started_at=allocation.started_at,
        checkpointed_at=allocation.checkpointed_at,
        resumed_at=allocation.resumed_at,
        handle=allocation.handle,
        stands_since=allocation.stands_since,
        stood=allocation.stood,
    )


def allocation_moved(placements: tuple[Placement, ...], moved: MovedAllocation) -> Allocation:
    """The allocation again, with the placements that it had before."""
    return Allocation(
        job=moved.job,
        attempt=moved.attempt,
        cluster=moved.cluster,
        placements=placements,
        placed_at=moved.placed_at,
        started_at=moved.started_at,
        checkpointed_at=moved.checkpointed_at,
        resumed_at=moved.resumed_at,
        handle=moved.handle,
        stands_since=moved.stands_since,
        stood=moved.stood,
    )


def _whole(old: Mapping[W, V], new: Mapping[W, V]) -> Mapping[W, V] | None:
    return None if old is new or old == new else new


def _difference(old: Mapping[K, V], new: Mapping[K, V]) -> tuple[dict[K, V], tuple[K, ...]]:
    """What is new or another object, and which keys are gone."""
    known = old.get
    keys = changed_keys(old, new)
    if keys is None:
        changed = {key: value for key, value in new.items() if known(key) is not value}
        return changed, tuple(key for key in old if key not in new)
    # Sorted, so that the other side's mapping has the same order whenever it is sent the same.
    changed, gone = dict[K, V](), list[K]()
    for key in sorted(keys):
        had, has = known(key), new.get(key)
        if has is None:
            if had is not None:
                gone.append(key)
        elif has is not had:
            changed[key] = has
    return changed, tuple(gone)


class Readable(Protocol):
    """Where frames come from: a pipe or a socket."""

    def read(self, size: int, /) -> bytes: ...


class Writable(Protocol):
    """Where frames go to."""

    def write(self, frame: bytes, /) -> object: ...

    def flush(self) -> None: ...


class Wire(Readable, Writable, Protocol):
    """Both directions."""


def write_frame(wire: Writable, frame: bytes) -> None:
    """The length, and then the frame."""
    wire.write(len(frame).to_bytes(8, "big"))
    wire.write(frame)
    wire.flush()


def read_frame(wire: Readable) -> bytes | None:
    """The next frame; None when the other side has closed."""
    size = wire.read(8)
    if len(size) < 8:
        return None
    return wire.read(int.from_bytes(size, "big"))
