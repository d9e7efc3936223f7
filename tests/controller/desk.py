"""The language of the stories through the real controller: one small installation in pretend time.

desk = Desk(nodes=1, gpus=4)
job = desk.submits(gpus=4, lasts=60)

desk.lets_pass(10)

assert desk.state(job) == "running"
"""

from collections.abc import Mapping

from muster.backends.simulated.attempt import Behaviour
from muster.backends.simulated.backend import SimulatedBackend
from muster.controller.loop.commit import events_of
from muster.controller.messages import Caller, Outcome
from muster.controller.planner.client import InlinePlanner, PlannerClient
from muster.controller.use_cases.job_actions import JobAction, JobActionRequest, act_on_jobs
from muster.controller.world.transaction import Transaction
from muster.model.cluster import Cluster, Node, Pool
from muster.model.event import Event, SiteChanged
from muster.model.gpu import Device, GpuAsk, Slice
from muster.model.job import Ask, Job, JobSpec, JobState, RetryPolicy, TaskGroup
from muster.model.launch import Launch
from muster.model.placement import Allocation
from muster.model.plan import Plan
from muster.model.policy import Policy
from muster.model.queue import JobClass, Queue
from muster.model.site import Grant, Role, Site, User
from muster.model.snapshot import Snapshot
from muster.model.value import (
    SECOND,
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
from muster.simulator.run import Arrival, Simulation
from muster.stores.base import EndedBy, HistoryQuery

LAB = ClusterName("lab")
MAIN = PoolName("main")

SITE = Site(
    queues={QueuePath(path): Queue(path=QueuePath(path)) for path in ("default", "a", "a/b")},
    classes={
        ClassName(name): JobClass(
            name=ClassName(name),
            priority=priority,
            preempts=(ClassName("low"),) if name == "high" else (),
            grace=Duration(5_000),
        )
        for name, priority in (("low", 0), ("normal", 100), ("high", 1_000))
    },
    pools={MAIN: Pool(name=MAIN, cluster=LAB)},
    users={
        UserName("root"): User(name=UserName("root"), grants=(Grant(role=Role.ADMIN),)),
        UserName("boss"): User(
            name=UserName("boss"), grants=(Grant(role=Role.QUEUE_ADMIN, queue=QueuePath("a")),)
        ),
        UserName("guest"): User(name=UserName("guest"), grants=(Grant(role=Role.VIEWER),)),
    },
    policy=Policy(),
)


MORE = frozenset(
    "after begin_at cancel_if_hopeless deadline labels launch mail max_attempts pools"
    " reservation retry".split()
)


def node(name: str, gpus: int) -> Node:
    return Node(
        id=NodeId(name),
        cluster=LAB,
        pool=MAIN,
        cpu_milli=64_000,
        memory_mib=512_000,
        devices=tuple(
            Device(
                id=DeviceId(f"{name}/gpu{index}"),
                index=index,
                model=GpuModel("A100-40GB"),
                memory_mib=40_960,
            )
            for index in range(gpus)
        ),
    )


def caller(user: str) -> Caller:
    return Caller(user=UserName(user), door="test")


def spec(user: str = "ada", *, gpus: int = 1, queue: str = "default", **fields: object) -> JobSpec:
    """A request; `job_class`, `slice`, `limit_s` and fields of JobSpec by name."""
    part = fields.get("slice")
    limit = fields.get("limit_s")
    ask = GpuAsk(count=gpus, slice=part if isinstance(part, Slice) else None)
    more = {name: fields[name] for name in fields.keys() & MORE}
    plain = JobSpec(
        name=str(fields.get("name", "job")),
        user=UserName(user),
        queue=QueuePath(queue),
        job_class=ClassName(str(fields.get("job_class", ""))),
        groups=(TaskGroup(each=Ask(cpu_milli=1_000, gpus=ask if gpus else None)),),
        time_limit=Duration(limit * SECOND) if isinstance(limit, int) else None,
        retry=RetryPolicy(base=Duration(1_000)),
        launch=Launch(argv=("true",)),
    )
    return replace(plain, **more)


class Desk:
    """An installation with one pool of equal nodes, `n1` and so on."""

    def __init__(
        self,
        nodes: int = 1,
        gpus: int = 4,
        *,
        site: Site = SITE,
        planner: PlannerClient | None = None,
    ) -> None:
        self._fates: dict[JobId, Behaviour] = {}
        self.backend = SimulatedBackend(
            [node(f"n{number}", gpus) for number in range(1, nodes + 1)],
            Cluster(name=LAB),
            self._lasts,
        )
        self.simulation = Simulation(site, {LAB: self.backend}, planner=planner)
        self.record = self.simulation.record

    def submits(self, user: str = "ada", *, lasts: int = 60, **fields: object) -> JobId:
        """A request that is a job afterwards; it lasts so many seconds."""
        request = spec(user, **fields)  # pyright: ignore[reportArgumentType]
        receipt = self.simulation.submit(Arrival(at=self.simulation.now, spec=request))
        self.will_go(receipt.jobs[0], Behaviour(work=Duration(lasts * SECOND)))
        return receipt.jobs[0]

    def will_go(self, job: JobId, behaviour: Behaviour) -> None:
        self._fates[job] = behaviour

    def asks(
        self, user: str, action: JobAction, *jobs: JobId, signal: int = 0, for_owner: bool = False
    ) -> Outcome:
        """Somebody wants something done to jobs."""
        who = Caller(user=UserName(user), door="test", root=user == "root")
        request = JobActionRequest(caller=who, action=action, signal=signal, for_owner=for_owner)
        return self.simulation.journal.write(
            lambda transaction: act_on_jobs(request, jobs, transaction)
        ).result()

    def plans(self) -> tuple[Plan, Snapshot]:
        """A plan that is not carried out yet, and the world that it was made for."""
        snapshot = self.record.snapshot(self.simulation.now)
        return InlinePlanner().plan(snapshot, self.record.site.policy), snapshot

    def carries_out(self, plan: tuple[Plan, Snapshot]) -> list[Event]:
        """What becomes of a plan that was made some time ago."""
        events: list[Event] = []

        def command(transaction: Transaction) -> None:
            events.extend(events_of(*plan, transaction))
            transaction.apply_all(events)

        self.simulation.write(command)
        return events

    def applies(self, event: Event) -> None:
        """Something happens."""
        self.simulation.write(lambda transaction: transaction.apply(event))

    def lets_pass(self, seconds: int) -> None:
        self.simulation.run(until=Instant(self.simulation.now + seconds * SECOND))

    def lets_all_end(self) -> None:
        self.simulation.run()

    def job(self, job: JobId) -> Job:
        """The job, live or over."""
        live = self.record.jobs.get(job)
        if live is not None:
            return live
        query = HistoryQuery(jobs=(job,), order=EndedBy.ID, limit=1)
        return self.simulation.parts.history.ended(query).jobs[0].job

    def state(self, job: JobId) -> JobState:
        return self.job(job).state

    def holds(self) -> Mapping[JobId, Allocation]:
        return self.record.allocations

    def changes_site(self, **fields: object) -> None:
        site = replace(self.record.site, **fields)
        event = SiteChanged(at=self.simulation.now, site=site, by=UserName("root"))
        self.simulation.write(lambda transaction: transaction.apply(event))

    def _lasts(self, job: Job, _: Allocation) -> Behaviour:
        return self._fates[job.id]
