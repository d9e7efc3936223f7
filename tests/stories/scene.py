"""The one mutable world behind a story: everything that exists, until `snapshot` freezes it."""

from copy import copy
from dataclasses import dataclass, field, fields

from muster.model.cluster import Cluster, Node, Pool, Reservation
from muster.model.history import Finished
from muster.model.job import FINAL, HOLDING, Job, JobState
from muster.model.placement import Allocation, Placement
from muster.model.policy import Policy
from muster.model.queue import JobClass, Queue
from muster.model.snapshot import Snapshot, UsedLately, UsualAsk
from muster.model.value import (
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

NEW_YEAR = Instant(1_704_067_200_000)


@dataclass
class Scene:
    """What a store would hold, and what a controller would do to it."""

    policy: Policy
    now: Instant = NEW_YEAR
    version: int = 0
    clusters: dict[ClusterName, Cluster] = field(default_factory=dict[ClusterName, Cluster])
    pools: dict[PoolName, Pool] = field(default_factory=dict[PoolName, Pool])
    nodes: dict[NodeId, Node] = field(default_factory=dict[NodeId, Node])
    queues: dict[QueuePath, Queue] = field(default_factory=dict[QueuePath, Queue])
    classes: dict[ClassName, JobClass] = field(default_factory=dict[ClassName, JobClass])
    jobs: dict[JobId, Job] = field(default_factory=dict[JobId, Job])
    allocations: dict[JobId, Allocation] = field(default_factory=dict[JobId, Allocation])
    finished: dict[JobId, Finished] = field(default_factory=dict[JobId, Finished])
    reservations: list[Reservation] = field(default_factory=list[Reservation])
    used: dict[tuple[QueuePath, UserName], UsedLately] = field(
        default_factory=dict[tuple[QueuePath, UserName], UsedLately]
    )
    usual: list[UsualAsk] = field(default_factory=list[UsualAsk])

    def snapshot(self) -> Snapshot:
        """Freeze what is, under a new version."""
        self.version += 1
        return Snapshot(
            version=self.version,
            now=self.now,
            clusters=dict(self.clusters),
            pools=dict(self.pools),
            nodes=dict(self.nodes),
            queues=dict(self.queues),
            classes=dict(self.classes),
            jobs=dict(self.jobs),
            allocations=dict(self.allocations),
            reservations=tuple(self.reservations),
            finished=dict(self.finished),
            used_lately=tuple(self.used.values()),
            usual=tuple(self.usual),
        )

    def copy(self) -> "Scene":
        """The same world, to be changed without changing this one."""
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        return Scene(**{name: copy(part) for name, part in parts.items()})

    def begin(self, job: JobId, allocation: Allocation) -> None:
        """The job runs on what the allocation names."""
        self.jobs[job] = replace(
            self.jobs[job], state=JobState.RUNNING, attempt=allocation.attempt, claim=None
        )
        self.allocations[job] = allocation

    def end(self, job: JobId, state: JobState) -> None:
        """The job is over; what it held is free."""
        assert state in FINAL
        allocation = self.allocations.pop(job, None)
        self.finished[job] = Finished(
            state=state,
            started_at=None if allocation is None else allocation.started_at,
            ended_at=self.now,
        )
        del self.jobs[job]

    def requeue(self, job: JobId) -> None:
        """The attempt is over and the job waits again."""
        del self.allocations[job]
        self.jobs[job] = replace(self.jobs[job], state=JobState.PENDING, claim=None)

    def pass_time(self, span: Duration) -> None:
        """Move the clock: running jobs are charged, and end when their time limit is over."""
        then = Instant(self.now + span)
        for job in [job for job in self.jobs.values() if job.state is JobState.RUNNING]:
            self._charge(job, until=min(then, self._due(job) or then))
        self.now = then
        for job in [job for job in self.jobs.values() if job.state is JobState.RUNNING]:
            if (self._due(job) or then + 1) <= then:
                self.end(job.id, JobState.FAILED)
        for job in [job for job in self.jobs.values() if job.claim is not None]:
            if job.claim is not None and job.claim.until <= then:
                self.jobs[job.id] = replace(job, claim=None)

    def charge(self, queue: QueuePath, user: UserName, *, gpu_milli_ms: int) -> None:
        """Add to what the user had in the queue, after what is older has faded."""
        old = self.used.get((queue, user))
        faded = 0
        if old is not None:
            half_lives = (self.now - old.as_of) / self.policy.share.half_life
            faded = int(old.gpu_milli_ms * 0.5**half_lives)
        self.used[queue, user] = UsedLately(
            queue=queue, user=user, gpu_milli_ms=faded + gpu_milli_ms, as_of=self.now
        )

    def held(self) -> list[Placement]:
        """Every placement that some job holds, or that is claimed for one."""
        held: list[Placement] = []
        for job in self.jobs.values():
            if job.state in HOLDING:
                held.extend(self.allocations[job.id].placements)
            if job.claim is not None:
                held.extend(job.claim.placements)
        return held

    def time_limit(self, job: Job, pool: PoolName) -> Duration | None:
        """How long the job may run in the pool; None is without end."""
        if job.spec.time_limit is not None:
            return job.spec.time_limit
        default = self.pools[pool].default_time
        return self.policy.default_time if default is None else default

    def _due(self, job: Job) -> Instant | None:
        allocation = self.allocations[job.id]
        limits = [self.time_limit(job, placed.pool) for placed in allocation.placements]
        bounded = [limit for limit in limits if limit is not None]
        if allocation.started_at is None or not bounded:
            return None
        return Instant(allocation.started_at + min(bounded))

    def _charge(self, job: Job, *, until: Instant) -> None:
        held = sum(placed.amount.gpu_milli for placed in self.allocations[job.id].placements)
        span = max(0, until - self.now)
        self.charge(job.spec.queue, job.spec.user, gpu_milli_ms=held * span)
