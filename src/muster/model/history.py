"""What is kept of what is over: attempts, ended jobs, and who changed what."""

from collections.abc import Mapping

from muster.model.job import EndReason, Job, JobState
from muster.model.resources import Resources
from muster.model.value import (
    ClusterName,
    Duration,
    Instant,
    JobId,
    NodeId,
    PoolName,
    UserName,
    Value,
)


class Used(Value, gc=False):
    """What an attempt's processes really used, as far as the backend could see.

    system_ms: how much of `cpu_ms` the kernel worked for them. faults: pages read from disk.
    """

    cpu_ms: int = 0
    max_memory_mib: int = 0
    system_ms: int = 0
    read_kib: int = 0
    written_kib: int = 0
    faults: int = 0


class Attempt(Value):
    """One attempt of a job that is over. lost_gpu_ms counts what the next one must do again.

    stood is how long it was suspended. nodes_of: the nodes of each group, where there are several.
    """

    job: JobId
    number: int
    cluster: ClusterName
    pools: tuple[PoolName, ...]
    nodes: tuple[NodeId, ...]
    amount: Resources
    placed_at: Instant
    started_at: Instant | None
    ended_at: Instant
    why: EndReason | None
    checkpointed_at: Instant | None = None
    lost_gpu_ms: int = 0
    stood: Duration = Duration(0)
    nodes_of: Mapping[str, tuple[NodeId, ...]] = {}
    used: Used | None = None


class Ended(Value):
    """A job that is over; it started when its last attempt did, or never."""

    job: Job
    started_at: Instant | None
    ended_at: Instant

    @property
    def outcome(self) -> "Finished":
        """What those need to know who depend on it."""
        return Finished(state=self.job.state, started_at=self.started_at, ended_at=self.ended_at)


class RequestMade(Value, gc=False):
    """What came of a submission that had a key: so many jobs from this one on."""

    key: str
    first: JobId
    count: int


class AuditEntry(Value):
    """Who asked for a change of state, through which door, and what it was about.

    token: the id of the token that they used, if they used one.
    request: by which a submission that is sent again is known.
    """

    at: Instant
    user: UserName
    door: str
    action: str
    subject: str
    detail: str = ""
    token: str | None = None
    request: RequestMade | None = None


class Finished(Value, gc=False):
    """How a job that others depend on came out."""

    state: JobState
    started_at: Instant | None
    ended_at: Instant
