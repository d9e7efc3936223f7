"""What a plan adds: the tasks that its decisions and measures put somewhere."""

from collections.abc import Iterable
from enum import StrEnum

from muster.model.cluster import Node
from muster.model.gpu import Device
from muster.model.job import Job, TaskGroup
from muster.model.placement import Placement
from muster.model.plan import Clear, Resize, Resume, Start
from muster.model.snapshot import Snapshot
from muster.model.value import ClusterName, GpuModel, Value, replace


class Kind(StrEnum):
    """How something new comes to a job."""

    START = "start"
    RESUME = "resume"
    CLEAR = "clear"
    RESIZE = "resize"


class Task(Value):
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


class Addition(Value):
    """What one decision or measure adds for its job; `beside` is what a resized job has already."""

    kind: Kind
    job: Job
    cluster: ClusterName
    placements: tuple[Placement, ...]
    tasks: list[Task]
    beside: tuple[Task, ...] = ()


def additions_of(
    snapshot: Snapshot, acts: Iterable[Start | Resume | Clear | Resize]
) -> list[Addition]:
    """What each adds, in the same order; nothing is known of a job that does not exist."""
    jobs = snapshot.jobs
    return [_addition(snapshot, jobs[act.job], act) for act in acts if act.job in jobs]


def group_of(job: Job, name: str) -> TaskGroup | None:
    """The job's group of this name."""
    for group in job.spec.groups:
        if group.name == name:
            return group
    return None


def _addition(snapshot: Snapshot, job: Job, act: Start | Resume | Clear | Resize) -> Addition:
    match act:
        case Start(cluster=cluster, placements=placements):
            return _placed(snapshot, job, Kind.START, cluster, placements)
        case Clear(cluster=cluster, placements=placements):
            return _placed(snapshot, job, Kind.CLEAR, cluster, placements)
        case Resume():
            return _resumed(snapshot, job)
        case Resize(placements=placements):
            return _resized(snapshot, job, placements)


def _placed(
    snapshot: Snapshot,
    job: Job,
    kind: Kind,
    cluster: ClusterName,
    placements: tuple[Placement, ...],
) -> Addition:
    tasks = _tasks(snapshot, job, kind, placements)
    return Addition(kind=kind, job=job, cluster=cluster, placements=placements, tasks=tasks)


def _resumed(snapshot: Snapshot, job: Job) -> Addition:
    """Everything it had but the memory, which it never gave up."""
    allocation = snapshot.allocations.get(job.id)
    if allocation is None:
        return _placed(snapshot, job, Kind.RESUME, ClusterName(""), ())
    back = tuple(
        replace(each, amount=replace(each.amount, memory_mib=0)) for each in allocation.placements
    )
    return _placed(snapshot, job, Kind.RESUME, allocation.cluster, back)


def _resized(snapshot: Snapshot, job: Job, placements: tuple[Placement, ...]) -> Addition:
    allocation = snapshot.allocations.get(job.id)
    if allocation is None:
        return _placed(snapshot, job, Kind.RESIZE, ClusterName(""), placements)
    more = _placed(snapshot, job, Kind.RESIZE, allocation.cluster, placements)
    beside = _tasks(snapshot, job, Kind.RESIZE, allocation.placements)
    return replace(more, beside=tuple(beside))


def _tasks(
    snapshot: Snapshot, job: Job, kind: Kind, placements: tuple[Placement, ...]
) -> list[Task]:
    nodes = snapshot.nodes
    found: list[Task] = []
    for placement in placements:
        node = nodes.get(placement.node)
        group = group_of(job, placement.group)
        if node is None or group is None:
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
    if not placement.devices:
        return ()
    named = {share.device for share in placement.devices}
    return tuple([device for device in node.devices if device.id in named])
