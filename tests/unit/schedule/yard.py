"""A small cluster in which plans are judged: `yard.judge(...)` names the rules they break."""

from collections.abc import Iterable
from typing import Any

from muster.model.cluster import Cluster, Node, Pool, Reservation
from muster.model.gpu import Device, GpuAsk, Mig, MpsShare, Slice, TimeShare, enforcement
from muster.model.history import Finished
from muster.model.job import WAITING, Ask, Job, JobSpec, JobState, TaskGroup
from muster.model.mig import mig_milli
from muster.model.placement import Allocation, Claim, DeviceShare, Placement
from muster.model.plan import (
    Clear,
    Decision,
    Measure,
    Plan,
    Preempt,
    Repartition,
    Resize,
    Resume,
    Start,
    Wait,
)
from muster.model.policy import Policy
from muster.model.queue import JobClass, PreemptMode, Queue
from muster.model.reason import NotBefore
from muster.model.resources import Resources
from muster.model.snapshot import Snapshot
from muster.model.value import (
    HOUR,
    MINUTE,
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
from muster.schedule.verify import violations

NOW = Instant(1_000 * HOUR)
H100 = GpuModel("H100-80GB")
CPU_MILLI, MEMORY_MIB = 1_000, 1_024

ONE_GPU = Ask(cpu_milli=CPU_MILLI, memory_mib=MEMORY_MIB, gpus=GpuAsk(count=1))


def asking(count: int, part: Slice | None = None, **fields: Any) -> Ask:
    """One core, one GiB, and so many GPUs or slices."""
    gpus = GpuAsk(count=count, slice=part, **fields) if count else None
    return replace(ONE_GPU, gpus=gpus)


def group(count: int = 1, each: Ask = ONE_GPU, **fields: Any) -> TaskGroup:
    """So many tasks, with one GPU each unless given."""
    return TaskGroup(count=count, each=each, **fields)


def at(
    node: str,
    devices: str = "g0",
    part: Slice | None = None,
    starts: Iterable[int | None] = (),
    **fields: Any,
) -> Placement:
    """A task on a node with devices, each whole or cut: `at("n1", "g0 g1")`."""
    names = devices.split()
    places = [*starts, *[None] * len(names)]
    shares = tuple(
        DeviceShare(device=DeviceId(name), slice=part, start=start, enforced=enforcement(part))
        for name, start in zip(names, places, strict=False)
    )
    amount = Resources(
        cpu_milli=CPU_MILLI, memory_mib=MEMORY_MIB, gpu_milli=len(names) * _milli(part)
    )
    placed = Placement(
        group="main",
        index=0,
        node=NodeId(node),
        pool=PoolName("main"),
        amount=amount,
        devices=shares,
    )
    return replace(placed, **fields)


def start(job: int, *placements: Placement, **fields: Any) -> Start:
    begun = Start(
        job=JobId(job), attempt=1, cluster=ClusterName("c"), placements=_numbered(placements)
    )
    return replace(begun, **fields)


def clear(job: int, *placements: Placement, victims: Iterable[int] = (), **fields: Any) -> Clear:
    cleared = Clear(
        job=JobId(job),
        cluster=ClusterName("c"),
        placements=_numbered(placements),
        victims=tuple(map(JobId, victims)),
        until=Instant(NOW + 5 * MINUTE),
    )
    return replace(cleared, **fields)


def preempt(job: int, for_job: int, **fields: Any) -> Preempt:
    stopped = Preempt(
        job=JobId(job),
        attempt=1,
        for_job=JobId(for_job),
        mode=PreemptMode.REQUEUE,
        grace=Duration(0),
        lost_gpu_ms=0,
    )
    return replace(stopped, **fields)


def resize(job: int, *placements: Placement, attempt: int = 1) -> Resize:
    return Resize(job=JobId(job), attempt=attempt, placements=placements)


def resume(job: int) -> Resume:
    return Resume(job=JobId(job), attempt=1)


class Yard:
    """Nodes n1 and n2 with two GPUs each, the queue `a` and the class `normal`."""

    def __init__(self) -> None:
        self.policy = Policy()
        self.clusters: dict[ClusterName, Cluster] = {}
        self.pools: dict[PoolName, Pool] = {}
        self.nodes: dict[NodeId, Node] = {}
        self.queues: dict[QueuePath, Queue] = {}
        self.classes: dict[ClassName, JobClass] = {}
        self.jobs: dict[JobId, Job] = {}
        self.allocations: dict[JobId, Allocation] = {}
        self.finished: dict[JobId, Finished] = {}
        self.reservations: list[Reservation] = []
        self.cluster()
        self.pool("main")
        self.node("n1")
        self.node("n2")
        self.queue("a")
        self.job_class("normal")

    def cluster(self, name: str = "c", **fields: Any) -> None:
        self.clusters[ClusterName(name)] = Cluster(name=ClusterName(name), **fields)

    def pool(self, name: str, **fields: Any) -> None:
        made = Pool(name=PoolName(name), cluster=ClusterName("c"))
        self.pools[PoolName(name)] = replace(made, **fields)

    def node(self, name: str, *, gpus: int = 2, model: str = H100, **fields: Any) -> None:
        devices = tuple(
            Device(id=DeviceId(f"g{i}"), index=i, model=GpuModel(model), memory_mib=81_920)
            for i in range(gpus)
        )
        made = Node(
            id=NodeId(name),
            cluster=ClusterName("c"),
            pool=PoolName("main"),
            cpu_milli=4 * CPU_MILLI,
            memory_mib=4 * MEMORY_MIB,
            devices=devices,
        )
        self.nodes[NodeId(name)] = replace(made, **fields)

    def device(self, node: str, index: int, **fields: Any) -> None:
        """One device of a node is otherwise."""
        old = self.nodes[NodeId(node)]
        devices = list(old.devices)
        devices[index] = replace(devices[index], **fields)
        self.nodes[NodeId(node)] = replace(old, devices=tuple(devices))

    def queue(self, path: str, **fields: Any) -> None:
        self.queues[QueuePath(path)] = Queue(path=QueuePath(path), **fields)

    def job_class(self, name: str, **fields: Any) -> None:
        self.classes[ClassName(name)] = JobClass(name=ClassName(name), **fields)

    def waits(
        self,
        job: int,
        *groups: TaskGroup,
        state: JobState = JobState.PENDING,
        claim: Claim | None = None,
        **fields: Any,
    ) -> None:
        """A job that waits, with one task and one GPU unless given."""
        spec = JobSpec(
            name=f"job{job}",
            user=UserName("ann"),
            queue=QueuePath("a"),
            groups=groups or (group(),),
        )
        self.jobs[JobId(job)] = Job(
            id=JobId(job),
            spec=replace(spec, **fields),
            state=state,
            submitted_at=Instant(0),
            claim=claim,
        )

    def runs(
        self,
        job: int,
        *placements: Placement,
        groups: tuple[TaskGroup, ...] = (),
        state: JobState = JobState.RUNNING,
        started_at: int | None = NOW - HOUR,
        **fields: Any,
    ) -> None:
        """A job that holds these placements, for an hour unless given."""
        self.waits(job, *(groups or (group(len(placements)),)), state=state, **fields)
        self.jobs[JobId(job)] = replace(self.jobs[JobId(job)], attempt=1)
        self.allocations[JobId(job)] = Allocation(
            job=JobId(job),
            attempt=1,
            cluster=ClusterName("c"),
            placements=_numbered(placements),
            placed_at=Instant(NOW - HOUR),
            started_at=None if started_at is None else Instant(started_at),
        )

    def snapshot(self) -> Snapshot:
        return Snapshot(
            version=7,
            now=NOW,
            clusters=self.clusters,
            pools=self.pools,
            nodes=self.nodes,
            queues=self.queues,
            classes=self.classes,
            jobs=self.jobs,
            allocations=self.allocations,
            reservations=tuple(self.reservations),
            finished=self.finished,
        )

    def plan(self, *parts: Decision | Measure) -> Plan:
        """A plan in which everyone of whom nothing is said waits."""
        moves = [each for each in parts if isinstance(each, Start | Resume | Clear)]
        waits = [each for each in parts if isinstance(each, Wait)]
        decided = {decision.job for decision in (*moves, *waits)}
        waits += [
            Wait(job=job.id, why=NotBefore(at=NOW))
            for job in self.jobs.values()
            if job.state in WAITING and job.id not in decided
        ]
        measures = [each for each in parts if isinstance(each, Preempt | Resize | Repartition)]
        return Plan(
            snapshot_version=7,
            policy=self.policy,
            moves=tuple(moves),
            waits={wait.job: wait for wait in waits},
            measures=tuple(measures),
        )

    def judge(self, *parts: Decision | Measure) -> list[str]:
        """The names of the rules that the plan breaks, each once."""
        found = violations(self.snapshot(), self.plan(*parts))
        return sorted({each.rule for each in found})


def claim_on(*placements: Placement, victims: Iterable[int] = (), until: int = NOW + HOUR) -> Claim:
    return Claim(
        cluster=ClusterName("c"),
        placements=_numbered(placements),
        victims=tuple(map(JobId, victims)),
        until=Instant(until),
    )


def _milli(part: Slice | None) -> int:
    match part:
        case None:
            return 1_000
        case Mig(profile=profile):
            return mig_milli(H100, profile)
        case MpsShare(milli=milli):
            return milli
        case TimeShare(replicas=replicas):
            return 1_000 // replicas


def _numbered(placements: tuple[Placement, ...]) -> tuple[Placement, ...]:
    """Tasks count from 0 in their group, unless a number is given."""
    counts: dict[str, int] = {}
    numbered: list[Placement] = []
    for each in placements:
        index = counts.get(each.group, 0)
        numbered.append(each if each.index else replace(each, index=index))
        counts[each.group] = index + 1
    return tuple(numbered)
