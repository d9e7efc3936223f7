"""Attempts that share a device are as slow together as their behaviours say, and only then."""

from muster.backends.base import Continue, Run, Stop, Suspend
from muster.backends.simulated.attempt import Behaviour
from muster.backends.simulated.backend import SimulatedBackend
from muster.model.cluster import Cluster, Node
from muster.model.event import JobEnded
from muster.model.gpu import Device, TimeShare
from muster.model.job import Ask, Cancelled, Job, JobSpec, TaskGroup
from muster.model.launch import NO_LAUNCH
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

LAB, NODE, MAIN = ClusterName("lab"), NodeId("n1"), PoolName("main")
DEVICES = tuple(
    Device(id=DeviceId(f"n1/{index}"), index=index, model=GpuModel("V100"), memory_mib=1)
    for index in range(2)
)
ONE = Node(id=NODE, cluster=LAB, pool=MAIN, cpu_milli=1, memory_mib=1, devices=DEVICES)
UNTIL_THE_END = Instant(10**9)


def half_beside_others(job: JobId, beside: frozenset[JobId]) -> int:
    del job
    return 1_000 // (1 + len(beside))


def backend(*, work: int) -> SimulatedBackend:
    made = SimulatedBackend([ONE], Cluster(name=LAB), lambda _, __: Behaviour(work=Duration(work)))
    made.share_by(half_beside_others)
    return made


def run(job: int, *devices: int, at: int = 0) -> Run:
    shares = tuple(
        DeviceShare(device=DEVICES[each].id, slice=TimeShare(replicas=2)) for each in devices
    )
    placement = Placement(
        group="main", index=0, node=NODE, pool=MAIN, amount=Resources(), devices=shares
    )
    spec = JobSpec(
        name="job", user=UserName("ada"), queue=QueuePath("q"), groups=(TaskGroup(each=Ask()),)
    )
    return Run(
        job=Job(id=JobId(job), spec=spec, submitted_at=Instant(0)),
        allocation=Allocation(
            job=JobId(job), attempt=1, cluster=LAB, placements=(placement,), placed_at=Instant(at)
        ),
        launch=NO_LAUNCH,
        nodes={NODE: ONE},
    )


def ends(backend: SimulatedBackend) -> dict[int, int]:
    """When each job ends, once everything has happened."""
    events = backend.observe(UNTIL_THE_END)
    return {event.job: event.at for event in events if isinstance(event, JobEnded)}


def test_who_is_alone_is_as_fast_as_ever() -> None:
    pretended = backend(work=100)
    pretended.do(run(1, 0))
    pretended.do(run(2, 1))

    assert ends(pretended) == {1: 100, 2: 100}


def test_two_on_a_device_take_twice_as_long_and_the_rest_is_done_alone() -> None:
    pretended = backend(work=100)
    pretended.do(run(1, 0))
    pretended.do(run(2, 0, at=50))

    # Together from 50 to 150, when the first is done; the second has done half by then.
    assert ends(pretended) == {1: 150, 2: 200}


def test_a_job_on_several_devices_is_as_slow_as_the_slowest() -> None:
    pretended = backend(work=100)
    pretended.do(run(1, 0, 1))
    pretended.do(run(2, 1))

    assert ends(pretended) == {1: 200, 2: 200}


def test_who_is_suspended_or_stopped_slows_nobody() -> None:
    pretended = backend(work=100)
    pretended.do(run(1, 0))
    pretended.do(run(2, 0))
    pretended.observe(Instant(40))
    pretended.do(Suspend(job=JobId(2), attempt=1))
    pretended.observe(Instant(80))
    pretended.do(Continue(job=JobId(2), attempt=1))
    pretended.observe(Instant(100))
    stop = Stop(job=JobId(2), attempt=1, why=Cancelled(by=UserName("ada")), grace=Duration(0))
    pretended.do(stop)

    # 20 by 40, 60 by 80, 70 by 100, and alone from then on.
    assert ends(pretended) == {2: 100, 1: 130}


def test_without_a_word_nobody_is_slower() -> None:
    pretended = SimulatedBackend(
        [ONE], Cluster(name=LAB), lambda _, __: Behaviour(work=Duration(100))
    )
    pretended.do(run(1, 0))
    pretended.do(run(2, 0))

    assert ends(pretended) == {1: 100, 2: 100}
