"""Values to keep, and short ways to write them."""

import time
from collections.abc import Callable
from typing import Any

from muster.model.cluster import Cluster, Node, Pool
from muster.model.dates import Foreseen, KeptDate
from muster.model.event import JobEnded, JobSubmitted
from muster.model.gpu import Device
from muster.model.history import Attempt, AuditEntry, Ended, Used
from muster.model.job import ArrayPart, Ask, Exited, Job, JobSpec, JobState, TaskGroup
from muster.model.kept_object import KeptObject, ObjectKey, RemovedObject
from muster.model.launch import Launch
from muster.model.placement import Allocation, Placement
from muster.model.queue import JobClass, Queue
from muster.model.resources import Resources
from muster.model.site import Grant, Role, Site, Token, User
from muster.model.snapshot import UsedLately, UsualAsk
from muster.model.steps import Step
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
from muster.stores.base import Batch, LaunchOf
from muster.stores.opening import WholeStore

CLUSTER = ClusterName("here")
POOL = PoolName("main")
ANN = UserName("ann")


def spec(**more: Any) -> JobSpec:
    asked: dict[str, Any] = {
        "name": "train",
        "user": ANN,
        "queue": QueuePath("acme/nlp"),
        "groups": (TaskGroup(),),
    }
    return JobSpec(**(asked | more))


def job(number: int, *, state: JobState = JobState.PENDING, **more: Any) -> Job:
    return Job(id=JobId(number), spec=spec(**more), state=state, submitted_at=Instant(number))


def part(array: int, index: int) -> ArrayPart:
    return ArrayPart(array=JobId(array), index=index)


def ended(number: int, at: int, *, state: JobState = JobState.COMPLETED, **more: Any) -> Ended:
    started_at = Instant(at - 1)
    return Ended(job=job(number, state=state, **more), started_at=started_at, ended_at=Instant(at))


def attempt(number: int, *nodes: str, attempt_number: int = 1) -> Attempt:
    return Attempt(
        job=JobId(number),
        number=attempt_number,
        cluster=CLUSTER,
        pools=(POOL,),
        nodes=tuple(NodeId(name) for name in nodes),
        amount=Resources(cpu_milli=1_000),
        placed_at=Instant(1),
        started_at=Instant(2),
        ended_at=Instant(3),
        why=Exited(code=0),
        used=Used(cpu_ms=7, max_memory_mib=9),
    )


def step(number: int, step_number: int = 0, *, attempt_number: int = 1, **more: Any) -> Step:
    return Step(
        job=JobId(number),
        attempt=attempt_number,
        number=step_number,
        name="train",
        command="python train.py",
        tasks=2,
        nodes=(NodeId("n1"),),
        amount=Resources(cpu_milli=1_000),
        began_at=Instant(3),
        **more,
    )


def allocation(number: int, node_name: str = "n1") -> Allocation:
    placement = Placement(
        group="main", index=0, node=NodeId(node_name), pool=POOL, amount=Resources(cpu_milli=1_000)
    )
    return Allocation(
        job=JobId(number),
        attempt=1,
        cluster=CLUSTER,
        placements=(placement,),
        placed_at=Instant(5),
    )


def node(name: str, **more: Any) -> Node:
    device = Device(
        id=DeviceId(f"{name}-gpu0"), index=0, model=GpuModel("A100-40GB"), memory_mib=40_960
    )
    return Node(
        id=NodeId(name),
        cluster=CLUSTER,
        pool=POOL,
        cpu_milli=8_000,
        memory_mib=64_000,
        devices=(device,),
        **more,
    )


def cluster(name: str = "here", **more: Any) -> Cluster:
    return Cluster(name=ClusterName(name), **more)


def site(**more: Any) -> Site:
    acme = Queue(path=QueuePath("acme"))
    normal = JobClass(name=ClassName("normal"))
    user = User(name=ANN, grants=(Grant(role=Role.ADMIN),))
    return Site(
        queues={acme.path: acme},
        classes={normal.name: normal},
        pools={POOL: Pool(name=POOL, cluster=CLUSTER)},
        users={ANN: user},
        **more,
    )


def token(name: str, **more: Any) -> Token:
    at = Instant(1)
    return Token(id=name, user=ANN, hashed="h", made_at=at, expires_at=Instant(2), **more)


def used(user: str = "ann", amount: int = 5) -> UsedLately:
    return UsedLately(
        queue=QueuePath("acme/nlp"), user=UserName(user), gpu_milli_ms=amount, as_of=Instant(9)
    )


def usual(count: int) -> UsualAsk:
    return UsualAsk(each=Ask(cpu_milli=1_000), count=count)


def audit(at: int, action: str = "submit") -> AuditEntry:
    return AuditEntry(at=Instant(at), user=ANN, door="rest", action=action, subject="job 1")


def date(number: int, started_at: int) -> KeptDate:
    foreseen = Foreseen(
        queue=QueuePath("acme"),
        job_class=ClassName("normal"),
        wait=Duration(5),
        spread_milli=100,
        waiting=3,
        gpu_milli=1_000,
    )
    return KeptDate(
        job=JobId(number),
        told_at=Instant(1),
        early=Instant(2),
        middle=Instant(5),
        late=Instant(9),
        foreseen=foreseen,
        started_at=Instant(started_at),
    )


def launch_of(number: int, script: str = "echo hello") -> LaunchOf:
    return LaunchOf(job=JobId(number), launch=Launch(script=script, env={"A": "1"}))


def object_key(name: str, namespace: str = "nlp") -> ObjectKey:
    return ObjectKey(group="", resource="configmaps", namespace=namespace, name=name)


def kept(name: str, version: int = 7, text: str = "x") -> KeptObject:
    return KeptObject(key=object_key(name), version=version, body=f'{{"data":{{"a":"{text}"}}}}')


def removed(name: str, version: int = 8) -> RemovedObject:
    return RemovedObject(key=object_key(name), version=version)


def submitted(number: int, **more: Any) -> JobSubmitted:
    return JobSubmitted(at=Instant(number), job=JobId(number), spec=spec(**more))


def over(number: int, at: int = 1) -> JobEnded:
    return JobEnded(at=Instant(at), job=JobId(number), attempt=1, why=Exited(code=0))


def write(store: WholeStore, **what: Any) -> Batch:
    """Append this as the next version; next_job stays unless it is given."""
    state = store.load()
    next_job: JobId = what.pop("next_job", state.next_job)
    batch = Batch(version=state.version + 1, next_job=next_job, **what)
    store.append(batch)
    return batch


def soon(is_so: Callable[[], bool], *, within_s: float = 10) -> bool:
    """Does it become so before the deadline?"""
    until = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True
