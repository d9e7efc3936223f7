"""One trace through the simulator: every virtual cluster is an installation of its own.

Jobs have no time limits, because the traces name none; the site has one queue and no preemption.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench._jct_trace import GPUS_PER_NODE, Park, Row
from muster.backends.simulated.attempt import Behaviour
from muster.backends.simulated.backend import SimulatedBackend
from muster.model.cluster import Cluster, Node, Pool
from muster.model.gpu import Device, GpuAsk
from muster.model.job import Ask, Job, JobSpec, TaskGroup
from muster.model.placement import Allocation
from muster.model.queue import JobClass, Queue
from muster.model.site import Site
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
)
from muster.simulator.run import Arrival, Simulation

CLUSTER, POOL = ClusterName("traced"), PoolName("traced")
QUEUE, CLASS = QueuePath("all"), ClassName("normal")
CPU_MILLI_PER_GPU = 8_000
SITE = Site(
    queues={QUEUE: Queue(path=QUEUE)},
    classes={CLASS: JobClass(name=CLASS, priority=100)},
    pools={POOL: Pool(name=POOL, cluster=CLUSTER)},
    default_queue=QUEUE,
)


@dataclass(frozen=True, slots=True)
class Ride:
    """What it took: jobs that came and ended, events, seconds of the processor and by the clock."""

    jobs: int
    ended: int
    events: int
    cpu_s: float
    wall_s: float


def ride(parks: Sequence[Park]) -> Ride:
    """Simulate all of them, one after the other; reading the trace is not counted."""
    begun_s, began_s = time.process_time(), time.perf_counter()
    ended = events = 0
    for park in parks:
        simulation = _simulated(park)
        simulation.run(_arrivals(park.rows))
        ended += len(park.rows) - len(simulation.record.jobs)
        events += simulation.journal.last_event
    return Ride(
        jobs=sum(len(park.rows) for park in parks),
        ended=ended,
        events=events,
        cpu_s=time.process_time() - begun_s,
        wall_s=time.perf_counter() - began_s,
    )


def _simulated(park: Park) -> Simulation:
    rows = {JobId(number): row for number, row in enumerate(park.rows, start=1)}

    def behaviour(job: Job, _: Allocation) -> Behaviour:
        return Behaviour(work=Duration(rows[job.id].lasts_s * 1_000))

    nodes = [_node(number) for number in range(park.nodes)]
    backend = SimulatedBackend(nodes, Cluster(name=CLUSTER), behaviour)
    return Simulation(SITE, {CLUSTER: backend})


def _arrivals(rows: Sequence[Row]) -> Iterator[Arrival]:
    for row in rows:
        spec = JobSpec(
            name=str(row.number),
            user=UserName(row.user or "all"),
            queue=QUEUE,
            job_class=CLASS,
            groups=(_group(row.gpus),),
        )
        yield Arrival(at=Instant(row.at_s * 1_000), spec=spec)


def _group(gpus: int) -> TaskGroup:
    """One task, or for jobs larger than a node as few equal ones as there can be."""
    tasks = next(each for each in range(1, gpus + 1) if gpus % each == 0 and _fits(gpus // each))
    each = Ask(cpu_milli=CPU_MILLI_PER_GPU * gpus // tasks, gpus=GpuAsk(count=gpus // tasks))
    return TaskGroup(each=each, count=tasks)


def _fits(gpus: int) -> bool:
    return gpus <= GPUS_PER_NODE


def _node(number: int) -> Node:
    name = NodeId(f"node{number:04}")
    devices = tuple(
        Device(
            id=DeviceId(f"{name}/{place}"), index=place, model=GpuModel("V100"), memory_mib=32768
        )
        for place in range(GPUS_PER_NODE)
    )
    return Node(
        id=name,
        cluster=CLUSTER,
        pool=POOL,
        cpu_milli=CPU_MILLI_PER_GPU * GPUS_PER_NODE,
        memory_mib=1 << 19,
        devices=devices,
    )
