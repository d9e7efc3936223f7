"""Jobs, events and a small world to tell the lifecycle's tests with."""

from typing import Any

from muster.lifecycle.step import step
from muster.model.cluster import Abilities, Cluster, Node, Pool
from muster.model.event import (
    CancelAsked,
    ClaimDropped,
    JobCheckpointed,
    JobClaimed,
    JobEnded,
    JobEvent,
    JobHeld,
    JobPlaced,
    JobPreempted,
    JobReleased,
    JobRequeued,
    JobResized,
    JobResumed,
    JobStarted,
    JobSuspended,
    JobUpdated,
    RequeueAsked,
)
from muster.model.gpu import Device, GpuAsk, Slice
from muster.model.job import Ask, EndReason, Job, JobSpec, RetryPolicy, TaskGroup
from muster.model.placement import Claim, Placement
from muster.model.queue import JobClass, PreemptMode, Queue
from muster.model.resources import Resources
from muster.model.snapshot import Snapshot
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

NOW = Instant(1_000_000)
JOB = JobId(7)
OTHER = JobId(8)
ANN = UserName("ann")
BOB = UserName("bob")
HERE = ClusterName("here")
A100 = GpuModel("A100-40GB")
H100 = GpuModel("H100-80GB")


def spec(**asked: Any) -> JobSpec:
    """A job of one whole GPU in queue `acme/nlp`, unless named otherwise."""
    usual = JobSpec(name="train", user=ANN, queue=QueuePath("acme/nlp"), groups=(group(gpus=1),))
    return replace(usual, **asked)


def group(
    name: str = "main",
    *,
    tasks: int = 1,
    gpus: int = 0,
    part: Slice | None = None,
    models: tuple[GpuModel, ...] = (),
) -> TaskGroup:
    """Tasks of 4 cores, 8 GiB and so many GPUs each."""
    asked = GpuAsk(count=gpus, slice=part, models=models) if gpus else None
    return TaskGroup(
        name=name, count=tasks, each=Ask(cpu_milli=4_000, memory_mib=8_192, gpus=asked)
    )


def job(*, max_attempts: int = 1, requeue: bool = True, after: tuple[JobEvent, ...] = ()) -> Job:
    """A job to which these events have happened."""
    retry = RetryPolicy(base=Duration(100), factor=3, cap=Duration(1_000), requeue=requeue)
    made = Job(id=JOB, spec=spec(max_attempts=max_attempts, retry=retry), submitted_at=NOW)
    for event in after:
        made = step(made, event)
    return made


def placement(index: int = 0, node: str = "n1") -> Placement:
    return Placement(
        group="main",
        index=index,
        node=NodeId(node),
        pool=PoolName("a100"),
        amount=Resources(gpu_milli=1_000),
    )


CLAIM = Claim(cluster=HERE, placements=(placement(),), victims=(OTHER,), until=Instant(2_000_000))


def held(by: UserName = ANN, *, as_admin: bool = False) -> JobHeld:
    return JobHeld(at=NOW, job=JOB, by=by, as_admin=as_admin)


def released() -> JobReleased:
    return JobReleased(at=NOW, job=JOB, by=ANN)


def claimed() -> JobClaimed:
    return JobClaimed(at=NOW, job=JOB, claim=CLAIM)


def claim_dropped() -> ClaimDropped:
    return ClaimDropped(at=NOW, job=JOB)


def placed(attempt: int = 1) -> JobPlaced:
    return JobPlaced(at=NOW, job=JOB, attempt=attempt, cluster=HERE, placements=(placement(),))


def started(attempt: int = 1) -> JobStarted:
    return JobStarted(at=NOW, job=JOB, attempt=attempt, handle="h")


def checkpointed(attempt: int = 1) -> JobCheckpointed:
    return JobCheckpointed(at=NOW, job=JOB, attempt=attempt)


def resized(attempt: int = 1) -> JobResized:
    return JobResized(at=NOW, job=JOB, attempt=attempt, placements=(placement(1),))


def suspended(attempt: int = 1) -> JobSuspended:
    return JobSuspended(at=NOW, job=JOB, attempt=attempt)


def resumed(attempt: int = 1) -> JobResumed:
    return JobResumed(at=NOW, job=JOB, attempt=attempt)


def preempted(mode: PreemptMode = PreemptMode.REQUEUE, attempt: int = 1) -> JobPreempted:
    return JobPreempted(
        at=NOW, job=JOB, attempt=attempt, by=OTHER, mode=mode, grace=Duration(30_000)
    )


def cancel_asked(by: UserName = ANN) -> CancelAsked:
    return CancelAsked(at=NOW, job=JOB, by=by)


def requeue_asked(by: UserName = ANN) -> RequeueAsked:
    return RequeueAsked(at=NOW, job=JOB, by=by)


def updated(**asked: Any) -> JobUpdated:
    """Ann wants a job like `spec(**asked)` instead."""
    return JobUpdated(at=NOW, job=JOB, spec=spec(**asked), by=ANN)


def ended(why: EndReason, attempt: int = 1) -> JobEnded:
    return JobEnded(at=NOW, job=JOB, attempt=attempt, why=why)


def requeued(attempt: int = 1) -> JobRequeued:
    return JobRequeued(at=NOW, job=JOB, attempt=attempt)


def world(*queues: Queue, **more: Any) -> Snapshot:
    """Two pools: `a100`, two nodes of 8 GPUs, and `spot`, one node of 4 H100."""
    nodes = (node("n1", "a100", A100, 8), node("n2", "a100", A100, 8), node("s1", "spot", H100, 4))
    usual = Snapshot(
        now=NOW,
        clusters={HERE: Cluster(name=HERE)},
        pools={pool.name: pool for pool in (pool_of("a100"), pool_of("spot", spot=True))},
        nodes={each.id: each for each in nodes},
        queues={each.path: each for each in queues or (queue("acme"), queue("acme/nlp"))},
        classes={ClassName("normal"): JobClass(name=ClassName("normal"))},
    )
    return replace(usual, **more)


def queue(path: str, **more: Any) -> Queue:
    return replace(Queue(path=QueuePath(path)), **more)


def pool_of(name: str, **more: Any) -> Pool:
    return replace(Pool(name=PoolName(name), cluster=HERE, levels=("zone", "rack")), **more)


def node(name: str, pool: str, model: GpuModel, gpus: int) -> Node:
    devices = tuple(
        Device(id=DeviceId(f"{name}-{index}"), index=index, model=model, memory_mib=40_960)
        for index in range(gpus)
    )
    return Node(
        id=NodeId(name),
        cluster=HERE,
        pool=PoolName(pool),
        cpu_milli=64_000,
        memory_mib=512 * 1_024,
        devices=devices,
    )


def without(**abilities: bool) -> dict[ClusterName, Cluster]:
    return {HERE: Cluster(name=HERE, abilities=Abilities(**abilities))}
