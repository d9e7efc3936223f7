"""Lines of a listing and attempts to tell the tests of the Slurm backend with."""

from muster.backends.base import Run
from muster.backends.slurm.listing import FORMAT, Listing, QueuedJob
from muster.model.cluster import Node
from muster.model.gpu import Device
from muster.model.job import Job, JobSpec, JobState, TaskGroup
from muster.model.launch import Launch
from muster.model.placement import Allocation, DeviceShare, Placement
from muster.model.resources import Resources
from muster.model.value import (
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
)

WIDTHS = [(each.split(":")[0], int(each.split(":")[1])) for each in FORMAT.split(",")]

USUAL = {
    "JobID": "12",
    "HetJobID": "N/A",
    "State": "RUNNING",
    "UserID": "1000",
    "exit_code": "0",
    "StartTime": "100",
    "EndTime": "N/A",
    "NumCPUs": "4",
    "tres-alloc": "cpu=4,mem=8G,node=1,billing=4,gres/gpu=2,gres/gpu:a100=2",
    "tres-per-node": "gres:gpu:2",
    "Comment": "muster:here:7.1",
    "NodeList": "node1",
}


def line(**fields: str) -> str:
    """One line as `squeue -O` prints it; `tres_alloc` and so on stand for names with a dash."""
    said = USUAL | {
        name.replace("_", "-") if name.startswith("tres") else name: value
        for name, value in fields.items()
    }
    return "".join(said[name].ljust(width) for name, width in WIDTHS)


def listed(text: str) -> tuple[QueuedJob, ...]:
    return Listing().read(text)


def only(text: str) -> QueuedJob:
    (job,) = listed(text)
    return job


def node(name: str, gpus: int = 4) -> Node:
    devices = tuple(
        Device(
            id=DeviceId(f"{name}/gpu{index}"),
            index=index,
            model=GpuModel("A100-40GB"),
            memory_mib=40_960,
        )
        for index in range(gpus)
    )
    return Node(
        id=NodeId(name),
        cluster=ClusterName("lab"),
        pool=PoolName("gpu"),
        cpu_milli=64_000,
        memory_mib=512_000,
        devices=devices,
    )


def run(launch: Launch, *where: tuple[str, int], cpu_milli: int = 2_000) -> Run:
    """An attempt with one task for each (node, GPUs)."""
    placements = tuple(
        Placement(
            group="main",
            index=index,
            node=NodeId(name),
            pool=PoolName("gpu"),
            amount=Resources(cpu_milli=cpu_milli, memory_mib=1_024, gpu_milli=1_000 * gpus),
            devices=tuple(
                DeviceShare(device=DeviceId(f"{name}/gpu{number}")) for number in range(gpus)
            ),
        )
        for index, (name, gpus) in enumerate(where)
    )
    spec = JobSpec(
        name="train",
        user=UserName("ann"),
        queue=QueuePath("nlp"),
        groups=(TaskGroup(count=len(where)),),
        time_limit=Duration(3_600_000),
    )
    job = Job(id=JobId(7), spec=spec, state=JobState.STARTING, submitted_at=Instant(0), attempt=1)
    allocation = Allocation(
        job=job.id,
        attempt=1,
        cluster=ClusterName("lab"),
        placements=placements,
        placed_at=Instant(0),
    )
    nodes = {NodeId(name): node(name) for name, _ in where}
    return Run(job=job, allocation=allocation, launch=launch, nodes=nodes)
