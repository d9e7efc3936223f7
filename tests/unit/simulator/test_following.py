"""In a simulation little is looked at twice; plans are those of somebody who knows nothing."""

import random

import pytest

from muster.backends.simulated.attempt import Behaviour
from muster.backends.simulated.backend import SimulatedBackend
from muster.controller.planner.client import InlinePlanner, verified
from muster.model.cluster import Cluster, Node, Pool
from muster.model.gpu import Device, GpuAsk
from muster.model.job import Ask, JobSpec, TaskGroup
from muster.model.plan import Plan
from muster.model.policy import Policy
from muster.model.queue import JobClass, Queue
from muster.model.site import Site
from muster.model.snapshot import Snapshot
from muster.model.value import (
    MINUTE,
    ClassName,
    ClusterName,
    DeviceId,
    Duration,
    GpuModel,
    Instant,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    replace,
)
from muster.schedule.plan import plan
from muster.schedule.verify import Register
from muster.simulator.run import Arrival, Simulation

CLUSTER, POOL, QUEUE = ClusterName("c"), PoolName("p"), QueuePath("q")
LOW, HIGH = ClassName("low"), ClassName("high")
SITE = Site(
    queues={QUEUE: Queue(path=QUEUE)},
    classes={
        LOW: JobClass(name=LOW),
        HIGH: JobClass(name=HIGH, priority=10, preempts=(LOW,)),
    },
    pools={POOL: Pool(name=POOL, cluster=CLUSTER)},
    default_queue=QUEUE,
)


class Doubter(InlinePlanner):
    """Thinks, and then asks somebody without memory."""

    def __init__(self) -> None:
        super().__init__()
        self.register = Register()
        self.plans = 0

    def plan(self, snapshot: Snapshot, policy: Policy) -> Plan:
        made = super().plan(snapshot, policy)
        complete = replace(
            snapshot,
            nodes=dict(snapshot.nodes),
            jobs=dict(snapshot.jobs),
            allocations=dict(snapshot.allocations),
        )
        assert made == verified(complete, plan(complete, policy))
        self.register.follow(snapshot)
        fresh = Register()
        fresh.follow(complete)
        assert self.register.holding == fresh.holding
        assert self.register.claiming == fresh.claiming
        for node in snapshot.nodes:
            assert set(self.register.on(node)) == set(fresh.on(node))
        self.plans += 1
        return made


@pytest.mark.parametrize("seed", range(4))
def test_following_what_changed_gives_the_same_plans_as_starting_over(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - repeatable, not secret
    lasting = [dice.choice((1, 5, 20)) * MINUTE for _ in range(60)]
    backend = SimulatedBackend(
        [_node(number) for number in range(3)],
        Cluster(name=CLUSTER),
        lambda job, _: Behaviour(work=Duration(lasting[job.id - 1])),
    )
    doubter = Doubter()
    simulation = Simulation(SITE, {CLUSTER: backend}, planner=doubter)

    simulation.run(_arrival(number, dice) for number in range(60))

    assert not simulation.record.jobs
    assert doubter.plans > 60


def _node(number: int) -> Node:
    name = NodeId(f"n{number}")
    devices = tuple(
        Device(id=DeviceId(f"{name}/{place}"), index=place, model=GpuModel("G"), memory_mib=1_024)
        for place in range(4)
    )
    return Node(
        id=name, cluster=CLUSTER, pool=POOL, cpu_milli=8_000, memory_mib=8_192, devices=devices
    )


def _arrival(number: int, dice: random.Random) -> Arrival:
    gpus = dice.choice((1, 1, 2, 4))
    group = TaskGroup(each=Ask(cpu_milli=1_000, gpus=GpuAsk(count=gpus)), count=dice.choice((1, 2)))
    spec = JobSpec(
        name=f"job{number}",
        user=UserName(dice.choice(("ann", "bob"))),
        queue=QUEUE,
        job_class=dice.choice((LOW, LOW, HIGH)),
        groups=(group,),
        time_limit=dice.choice((None, None, Duration(30 * MINUTE))),
    )
    return Arrival(at=Instant(number * MINUTE // 2), spec=spec)
