"""The language of the stories: who has what, who asks for what, and what comes of it.

    world = World()
    world.has_nodes("n1", "n2", gpus=8)
    world.submits("small", gpus=4)
    world.submits("big", tasks=2, gpus=8)

    outcome = world.plans()

    assert outcome.started() == ["small"]

One cluster `c`, one pool `main`, one queue `root` and the class `normal` exist from the beginning.
Each plan is checked by `violations`, and is made twice: from nothing, and by a planner that
remembers the plans before.
"""

from typing import TypedDict, Unpack

from muster.model.cluster import AmountReserved, NodesReserved, NodeState
from muster.model.job import ArrayPart, HeldBy, Job, JobState
from muster.model.placement import Allocation, Placement
from muster.model.policy import Policy
from muster.model.queue import Queue, lineage
from muster.model.snapshot import UsualAsk
from muster.model.value import (
    DAY,
    HOUR,
    MINUTE,
    ClassName,
    ClusterName,
    Duration,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    replace,
)
from muster.schedule.plan import Planner
from muster.schedule.verify import violations
from stories.acting import Stopping, carry_out, stop
from stories.outcome import Outcome
from stories.requests import JobAsked, spec_of
from stories.scene import Scene
from stories.seats import seat
from stories.telling import as_text
from stories.things import (
    ClassIs,
    ClusterIs,
    NodesAre,
    PoolIs,
    QueueIs,
    class_of,
    cluster_of,
    node_of,
    pool_of,
    queue_of,
)
from stories.words import GroupAsked, group_of, minutes


class World:
    """A cluster and its people, built step by step."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self.scene = Scene(policy=self.policy)
        self.names: dict[str, JobId] = {}
        self._planner = Planner(self.policy)
        self._stopping: Stopping = {}
        self.has_cluster("c")
        self.has_pool("main")
        self.has_queue("root")
        self.has_class("normal")

    def __repr__(self) -> str:
        """All that is unusual about this world, so that a failing example can be read."""
        return as_text(self.scene.copy().snapshot()) + " under " + as_text(self.policy)

    # What there is.

    def has_cluster(self, name: str, **fields: Unpack[ClusterIs]) -> None:
        """A cluster with no pools yet, or other rules for one that exists."""
        self.scene.clusters[ClusterName(name)] = cluster_of(name, fields)

    def has_pool(self, name: str, **fields: Unpack[PoolIs]) -> None:
        """A pool with no nodes yet, or other rules for one that exists."""
        self.scene.pools[PoolName(name)] = pool_of(name, fields)

    def has_nodes(self, *names: str, **fields: Unpack[NodesAre]) -> None:
        """Nodes that are all alike."""
        pool = PoolName(fields.get("pool", "main"))
        if pool not in self.scene.pools:
            self.has_pool(pool)
        for name in names:
            self.scene.nodes[NodeId(name)] = node_of(name, self.scene.pools[pool], fields)

    def has_queue(self, path: str, **fields: Unpack[QueueIs]) -> None:
        """A queue, and the queues above it where they are missing."""
        for ancestor in lineage(QueuePath(path)):
            self.scene.queues.setdefault(ancestor, Queue(path=ancestor))
        self.scene.queues[QueuePath(path)] = queue_of(path, fields)

    def has_class(self, name: str, **fields: Unpack[ClassIs]) -> None:
        """A job class, or other rules for one that exists."""
        self.scene.classes[ClassName(name)] = class_of(name, fields)

    def usually_sees(self, count: int, **asked: Unpack[GroupAsked]) -> None:
        """Such tasks come `count` times as often as others."""
        self.scene.usual.append(UsualAsk(each=group_of(asked).each, count=count))

    def uses(self, queue: str, user: str, *, gpu_hours: int) -> None:
        """The user has had that much in the queue, up to now."""
        self.scene.charge(QueuePath(queue), UserName(user), gpu_milli_ms=gpu_hours * 1_000 * HOUR)

    # What people do.

    def submits(self, name: str, **asked: Unpack[JobAsked]) -> JobId:
        """Somebody asks for a job: one task with one GPU, unless named otherwise."""
        job = JobId(len(self.names) + 1)
        assert name not in self.names, f"there is a job {name} already"
        self.names[name] = job
        held = asked.get("held", False)
        self.scene.jobs[job] = Job(
            id=job,
            spec=spec_of(name, asked, now=self.scene.now, names=self.names),
            state=JobState.HELD if held else JobState.PENDING,
            why=HeldBy(user=UserName("admin")) if held else None,
            submitted_at=self.scene.now,
            expected=minutes(asked.get("expected_minutes")),
        )
        return job

    def submits_many(self, name: str, count: int, **asked: Unpack[JobAsked]) -> None:
        """Somebody asks for the same job many times: `name1`, `name2` and so on."""
        for number in range(1, count + 1):
            self.submits(f"{name}{number}", **asked)

    def submits_array(
        self, name: str, *, parts: int, at_once: int | None, **asked: Unpack[JobAsked]
    ) -> None:
        """Somebody asks for an array of jobs, called `name[0]`, `name[1]` and so on."""
        first = JobId(len(self.names) + 1)
        for index in range(parts):
            asked["array"] = ArrayPart(array=first, index=index, at_once=at_once)
            self.submits(f"{name}[{index}]", **asked)

    def runs(
        self,
        name: str,
        *,
        on: str,
        ran: int = 0,
        checkpointed: int | None = None,
        **asked: Unpack[JobAsked],
    ) -> None:
        """A job that has run for `ran` minutes; its tasks sit on the named nodes in turn."""
        job = self.submits(name, **asked)
        nodes = [self.scene.nodes[NodeId(node)] for node in on.split()]
        placements: list[Placement] = []
        for task in self.scene.jobs[job].spec.groups:
            for index in range(task.fewest):
                node = nodes[len(placements) % len(nodes)]
                placed = seat(task, index, node, held=[*self.scene.held(), *placements])
                assert placed is not None, f"there is no room for {name} on {on}"
                placements.append(placed)
        self.sits(name, placements, ran=ran, checkpointed=checkpointed)

    def sits(
        self, name: str, placements: list[Placement], *, ran: int, checkpointed: int | None
    ) -> None:
        """A job has run for `ran` minutes on these placements."""
        began = self._at(-ran)
        job = self.scene.jobs[self.names[name]]
        self.scene.jobs[job.id] = replace(job, submitted_at=began)
        allocation = Allocation(
            job=job.id,
            attempt=1,
            cluster=self.scene.nodes[placements[0].node].cluster,
            placements=tuple(placements),
            placed_at=began,
            started_at=began,
            checkpointed_at=None if checkpointed is None else self._at(-checkpointed),
        )
        self.scene.begin(job.id, allocation)

    def runs_many(self, name: str, count: int, *, on: str, **asked: Unpack[JobAsked]) -> None:
        """The same job runs many times: `name1`, `name2` and so on."""
        for number in range(1, count + 1):
            self.runs(f"{name}{number}", on=on, **asked)

    def holds(self, *names: str) -> None:
        """An administrator holds waiting jobs back."""
        for job in self._jobs(names):
            self.scene.jobs[job.id] = replace(
                job, state=JobState.HELD, why=HeldBy(user=UserName("admin"))
            )

    def releases(self, *names: str) -> None:
        """Held jobs may start again."""
        for job in self._jobs(names):
            self.scene.jobs[job.id] = replace(job, state=JobState.PENDING, why=None)

    def reserves(self, name: str, *, nodes: str, begins: int, ends: int, **whose: str) -> None:
        """Nodes are kept from minute `begins` to minute `ends`.

        whose: a `queue`, `users`, and `by_name` for jobs that ask for it; without, for no user.
        `flexible`: these may begin before it.
        """
        self.scene.reservations.append(
            NodesReserved(
                name=name,
                nodes=tuple(NodeId(node) for node in nodes.split()),
                begins_at=self._at(begins),
                ends_at=self._at(ends),
                **_guests(**whose),
            )
        )

    def promises(self, gpus: int, *, begins: int, ends: int, **whose: str) -> None:
        """GPUs of the pool `main` are promised for some time."""
        self.scene.reservations.append(
            AmountReserved(
                name=f"for {whose.get('queue') or whose.get('users')}",
                pool=PoolName("main"),
                gpu_milli=gpus * 1_000,
                begins_at=self._at(begins),
                ends_at=self._at(ends),
                **_guests(**whose),
            )
        )

    # What happens.

    def passes(self, *, minutes: int = 0, hours: int = 0, days: int = 0) -> None:
        """Time goes by; jobs end at their time limit."""
        self.scene.pass_time(Duration(minutes * MINUTE + hours * HOUR + days * DAY))

    def finishes(self, *names: str, state: JobState = JobState.COMPLETED) -> None:
        """Jobs come to their end."""
        for job in self._jobs(names):
            self._stopping.pop(job.id, None)
            self.scene.end(job.id, state)

    def checkpoints(self, *names: str) -> None:
        """Running jobs have written a checkpoint just now."""
        for job in self._jobs(names):
            allocation = self.scene.allocations[job.id]
            self.scene.allocations[job.id] = replace(allocation, checkpointed_at=self.scene.now)

    def stops(self, *names: str) -> None:
        """Victims that were ordered to stop have stopped."""
        for job in self._jobs(names):
            stop(self.scene, job.id, self._stopping.pop(job.id))

    def stopping(self) -> list[str]:
        """Victims that were ordered to stop and have not stopped yet."""
        return [name for name, job in self.names.items() if job in self._stopping]

    def drains(self, *nodes: str) -> None:
        """Nodes keep what runs and take nothing new."""
        self._set_state(nodes, NodeState.DRAINING)

    def loses(self, *nodes: str) -> None:
        """Nodes go down; what ran there waits again."""
        self._set_state(nodes, NodeState.DOWN)
        for allocation in list(self.scene.allocations.values()):
            if any(placed.node in nodes for placed in allocation.placements):
                self._stopping.pop(allocation.job, None)
                self.scene.requeue(allocation.job)

    def restores(self, *nodes: str) -> None:
        """Nodes take work again."""
        self._set_state(nodes, NodeState.UP)

    def breaks(self, node: str, *, device: int) -> None:
        """A GPU is not healthy any more."""
        old = self.scene.nodes[NodeId(node)]
        devices = tuple(
            replace(one, healthy=one.healthy and one.index != device) for one in old.devices
        )
        self.scene.nodes[NodeId(node)] = replace(old, devices=devices)

    # What comes of it.

    def plans(self) -> Outcome:
        """Decide. The plan keeps to all rules, and memory does not change it."""
        snapshot = self.scene.snapshot()
        fresh = Planner(self.policy)
        made, backlog = fresh.plan(snapshot), fresh.backlog()
        broken = violations(snapshot, made)
        assert broken == [], broken
        assert self._planner.plan(snapshot) == made
        assert self._planner.backlog() == backlog
        return Outcome(snapshot=snapshot, plan=made, backlog=backlog, names=dict(self.names))

    def goes_on(self, *, slowly: bool = False) -> Outcome:
        """Decide and do it. Victims are gone at once or, slowly, when the story `stops` them."""
        outcome = self.plans()
        self._stopping |= carry_out(self.scene, outcome.plan)
        if not slowly:
            for job in list(self._stopping):
                stop(self.scene, job, self._stopping.pop(job))
        return outcome

    def _jobs(self, names: tuple[str, ...]) -> list[Job]:
        return [self.scene.jobs[self.names[name]] for name in names]

    def _set_state(self, nodes: tuple[str, ...], state: NodeState) -> None:
        for node in nodes:
            old = self.scene.nodes[NodeId(node)]
            self.scene.nodes[NodeId(node)] = replace(old, state=state)

    def _at(self, minutes: int) -> Instant:
        return Instant(self.scene.now + minutes * MINUTE)


class Guests(TypedDict):
    """Whom a reservation is for."""

    for_queue: QueuePath | None
    for_users: tuple[UserName, ...]
    by_name: bool
    flexible: bool


def _guests(queue: str = "", users: str = "", by_name: str = "", flexible: str = "") -> Guests:
    return Guests(
        for_queue=QueuePath(queue) if queue else None,
        for_users=tuple(map(UserName, users.split())),
        by_name=bool(by_name),
        flexible=bool(flexible),
    )
