"""What a plan adds: the tasks that its decisions and measures put somewhere."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from muster.model.cluster import Node
from muster.model.gpu import Device
from muster.model.job import Job, TaskGroup
from muster.model.placement import Placement
from muster.model.plan import Clear, Resize, Resume, Start
from muster.model.snapshot import Snapshot
from muster.model.value import ClusterName, GpuModel, PoolName, QueuePath, Value, replace

Act = Start | Resume | Clear | Resize
"""What puts tasks somewhere."""

Placements = tuple[Placement, ...]


class Kind(StrEnum):
    """How something new comes to a job."""

    START = "start"
    RESUME = "resume"
    CLEAR = "clear"
    RESIZE = "resize"


FRESH = frozenset({Kind.START, Kind.CLEAR})
"""How a job gets a place that has none."""

KINDS: Mapping[type[Act], Kind] = {
    Start: Kind.START,
    Resume: Kind.RESUME,
    Clear: Kind.CLEAR,
    Resize: Kind.RESIZE,
}


class Task(Value, gc=False):
    """A placement whose node and group exist, with those of its devices that exist there."""

    kind: Kind
    job: Job
    group: TaskGroup
    placement: Placement
    node: Node
    devices: tuple[Device, ...]

    @property
    def model(self) -> GpuModel | None:
        """The GPU model that the task landed on."""
        return self.devices[0].model if self.devices else None


class Addition(Value, gc=False):
    """What one decision or measure adds for its job, with the job's queue and the pools it names.

    `beside` is what a resized job has already.
    """

    act: Act
    kind: Kind
    job: Job
    queue: QueuePath
    cluster: ClusterName
    pools: tuple[PoolName, ...]
    placements: tuple[Placement, ...]
    tasks: list[Task]
    beside: tuple[Task, ...] = ()


def additions_of(snapshot: Snapshot, acts: Iterable[Act]) -> list[Addition]:
    """What each adds, in the same order; nothing is known of a job that does not exist."""
    jobs = snapshot.jobs
    return [_addition(snapshot, jobs[act.job], act) for act in acts if act.job in jobs]


def group_of(job: Job, name: str) -> TaskGroup | None:
    """The job's group of this name."""
    for group in job.spec.groups:
        if group.name == name:
            return group
    return None


def _addition(snapshot: Snapshot, job: Job, act: Act) -> Addition:
    match act:
        case Start() | Clear():
            return _placed(snapshot, job, act, act.cluster, act.placements)
        case Resume():
            return _resumed(snapshot, job, act)
        case Resize():
            return _resized(snapshot, job, act)


def _placed(
    snapshot: Snapshot, job: Job, act: Act, cluster: ClusterName, placements: Placements
) -> Addition:
    kind = KINDS[type(act)]
    return Addition(
        act=act,
        kind=kind,
        job=job,
        queue=job.spec.queue,
        cluster=cluster,
        pools=_pools(placements),
        placements=placements,
        tasks=_tasks(snapshot, job, kind, placements),
    )


def _resumed(snapshot: Snapshot, job: Job, act: Resume) -> Addition:
    """Everything it had but the memory, which it never gave up."""
    allocation = snapshot.allocations.get(job.id)
    if allocation is None:
        return _placed(snapshot, job, act, ClusterName(""), ())
    back = tuple(
        replace(each, amount=replace(each.amount, memory_mib=0)) for each in allocation.placements
    )
    return _placed(snapshot, job, act, allocation.cluster, back)


def _resized(snapshot: Snapshot, job: Job, act: Resize) -> Addition:
    allocation = snapshot.allocations.get(job.id)
    if allocation is None:
        return _placed(snapshot, job, act, ClusterName(""), act.placements)
    more = _placed(snapshot, job, act, allocation.cluster, act.placements)
    beside = _tasks(snapshot, job, Kind.RESIZE, allocation.placements)
    return replace(more, beside=tuple(beside))


def _tasks(snapshot: Snapshot, job: Job, kind: Kind, placements: Placements) -> list[Task]:
    nodes, groups = snapshot.nodes, job.spec.groups
    found: list[Task] = []
    for placement in placements:
        node = nodes.get(placement.node)
        # Nearly all jobs have one group.
        group = groups[0] if len(groups) == 1 else group_of(job, placement.group)
        if node is None or group is None or group.name != placement.group:
            continue
        task = Task(
            kind=kind,
            job=job,
            group=group,
            placement=placement,
            node=node,
            devices=_devices(placement, node),
        )
        found.append(task)
    return found


def _devices(placement: Placement, node: Node) -> tuple[Device, ...]:
    shares = placement.devices
    if not shares:
        return ()
    if len(shares) == 1:
        only = shares[0].device
        return tuple([device for device in node.devices if device.id == only])
    named = {share.device for share in shares}
    return tuple([device for device in node.devices if device.id in named])


def _pools(placements: Placements) -> tuple[PoolName, ...]:
    if len(placements) == 1:
        return (placements[0].pool,)
    return tuple(sorted({placement.pool for placement in placements}))
