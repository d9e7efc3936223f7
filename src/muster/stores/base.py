"""The port: what a store keeps, and the three small faces that its users see.

The store does not decide anything. `controller.record` works out what events make of the world;
a store writes the events and the values they led to in one transaction, and gives them back.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from muster.model.cluster import Cluster, Node
from muster.model.dates import KeptDate
from muster.model.event import Event
from muster.model.history import Attempt, AuditEntry, Ended, Finished
from muster.model.job import Job, JobState
from muster.model.kept_object import KeptObject, RemovedObject
from muster.model.launch import Launch
from muster.model.placement import Allocation
from muster.model.site import Site, Token
from muster.model.snapshot import UsedLately, UsualAsk
from muster.model.steps import Step
from muster.model.value import Instant, JobId, NodeId, QueuePath, UserName, Value


class LaunchOf(Value):
    """What a job runs. The parts of an array share the launch that is kept for the first."""

    job: JobId
    launch: Launch


class Batch(Value):
    """What one transaction writes: facts, and every value that they changed.

    version: the store's version afterwards; one higher than before.
    jobs: as they are now, none of them ended. ended: leave the live jobs and enter the history.
    freed: jobs whose allocation is over. gone: nodes that do not exist any more.
    steps: as they are now, running or over; they stay until their job is forgotten.
    usual: all of them, when any changed.
    objects: those of the Kubernetes API that were written; removed: those that left.
    dates: those of jobs that started now; they stay until their job is forgotten.
    """

    version: int
    next_job: JobId
    events: tuple[Event, ...] = ()
    jobs: tuple[Job, ...] = ()
    ended: tuple[Ended, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    freed: tuple[JobId, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    steps: tuple[Step, ...] = ()
    launches: tuple[LaunchOf, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    nodes: tuple[Node, ...] = ()
    gone: tuple[NodeId, ...] = ()
    site: Site | None = None
    used: tuple[UsedLately, ...] = ()
    usual: tuple[UsualAsk, ...] = ()
    tokens: tuple[Token, ...] = ()
    audit: tuple[AuditEntry, ...] = ()
    objects: tuple[KeptObject, ...] = ()
    removed: tuple[RemovedObject, ...] = ()
    dates: tuple[KeptDate, ...] = ()


class LiveState(Value):
    """Everything that is live, as a process finds it when it starts.

    last_event: the number of the newest event, so that who follows batches can count on.
    steps: those of attempts that hold an allocation, running or over.
    """

    version: int = 0
    last_event: int = 0
    next_job: JobId = JobId(1)
    jobs: tuple[Job, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    steps: tuple[Step, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    nodes: tuple[Node, ...] = ()
    site: Site | None = None
    used: tuple[UsedLately, ...] = ()
    usual: tuple[UsualAsk, ...] = ()
    tokens: tuple[Token, ...] = ()
    objects: tuple[KeptObject, ...] = ()


class Store(Protocol):
    """The live side. All is called from one thread, but for launches, which any may ask for."""

    def load(self) -> LiveState:
        """Everything live."""
        ...

    def append(self, batch: Batch) -> None:
        """Write the batch whole, durably, or raise and write nothing.

        StaleSnapshotError: the store is not at `batch.version - 1`: another process wrote.
        StoreFullError, StoreLockedError, StoreDownError: nothing was written; try again later.
        """
        ...

    def since(self, version: int) -> tuple[Batch, ...]:
        """What others wrote after this version, in order; values may be newer than their batch.

        One batch may stand for several, as long as its version is the last of theirs. Launches,
        attempts, dates and audit entries are left out: they are read when they are asked for. Only
        entries about requests with a key are there, for these must be known at once.
        StaleSnapshotError: that is too long ago; load everything again.
        """
        ...

    def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake` soon after something was written, by whomever this store can hear of.

        It comes from any thread, sometimes for nothing, and must be quick. Writers in other
        processes are heard with PostgreSQL; the others hear what this object wrote.
        """
        ...

    def launch(self, job: JobId) -> Launch | None:
        """What was kept for this job by `LaunchOf`."""
        ...

    def launches(self, jobs: tuple[JobId, ...]) -> dict[JobId, Launch]:
        """The same for many at once; those of whom nothing was kept are left out."""
        ...

    def close(self) -> None: ...


class EndedBy(StrEnum):
    """In which order ended jobs are listed; the newest first in both."""

    ID = "id"
    END = "end"


class HistoryQuery(Value):
    """Which ended jobs. Everything that is given must hold; a queue stands for those below it too.

    after: the `next` of the page before.
    """

    jobs: tuple[JobId, ...] = ()
    arrays: tuple[JobId, ...] = ()
    users: tuple[UserName, ...] = ()
    queues: tuple[QueuePath, ...] = ()
    nodes: tuple[NodeId, ...] = ()
    states: tuple[JobState, ...] = ()
    name: str | None = None
    ended_from: Instant | None = None
    ended_to: Instant | None = None
    order: EndedBy = EndedBy.END
    limit: int = 100
    after: str | None = None


class EndedPage(Value):
    """Some ended jobs, and where the next page begins, if there is one."""

    jobs: tuple[Ended, ...]
    next: str | None = None


class Stored(Value):
    """An event and its place in the log, counted from 1 without gaps."""

    number: int
    event: Event


class EventQuery(Value):
    """Events of the log after a place, oldest first; of one job, if given."""

    after: int = 0
    job: JobId | None = None
    limit: int = 1_000


class History(Protocol):
    """The past. Any thread may call, and no call holds up the live side."""

    def ended(self, query: HistoryQuery) -> EndedPage: ...

    def finished(self, jobs: tuple[JobId, ...]) -> dict[JobId, Finished]:
        """How these jobs came out, as far as they are known and over."""
        ...

    def attempts(self, jobs: tuple[JobId, ...]) -> tuple[Attempt, ...]:
        """The attempts of these jobs that are over, by job and number."""
        ...

    def steps(self, jobs: tuple[JobId, ...]) -> tuple[Step, ...]:
        """All steps of these jobs, running or over, by job, attempt and number."""
        ...

    def events(self, query: EventQuery) -> tuple[Stored, ...]: ...

    def audit(self, *, before: Instant | None, limit: int) -> tuple[AuditEntry, ...]:
        """Who changed what, newest first; `limit` never splits what happened at one instant."""
        ...

    def dates(self, *, since: Instant, limit: int) -> tuple[KeptDate, ...]:
        """Dates of jobs that started since then, the latest first."""
        ...

    def forget(self, before: Instant, *, limit: int) -> int:
        """Drop at most `limit` jobs that ended before, with all that is kept of them; how many."""
        ...


class Leadership(Protocol):
    """Which process leads. On one machine the first one does; with PostgreSQL there is a lock.

    In a Kubernetes cluster its holder must hold a Lease as well.
    """

    def lead(self) -> bool:
        """Am I the leader? Takes the lead when it is free. Quick; called about once a second."""
        ...

    def step_down(self) -> None:
        """Nothing is done as the leader any more: another may lead. Also after it was lost."""
        ...
