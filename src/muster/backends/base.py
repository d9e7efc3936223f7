"""The port: what the controller asks of a cluster, and what the cluster reports.

A backend is five methods, `Backend`. What some engines can do besides is a port of its own
(`OutputPort`, `TerminalPort`, `StepsPort`, `VisitPort`, `UsagePort`, `SamplesPort`): a backend that
has its method offers it, and the controller says so to users where one does not.

Nothing here belongs to one kind of engine: no folder, no socket, no process number. Actions on
attempts are keyed by (job, attempt), are committed to the store before they are sent, may be sent
again, and sent twice they happen once.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

from muster.launch.attempt import PlacedAttempt
from muster.model.cluster import Cluster
from muster.model.event import Event
from muster.model.gpu import MigInstance
from muster.model.job import EndReason, Job
from muster.model.launch import Launch
from muster.model.placement import Allocation
from muster.model.running import Measured, Output, TerminalStream, Visit, VisitStream
from muster.model.samples import Samples
from muster.model.value import DeviceId, Duration, Instant, JobId, NodeId, Value

Supplies = Mapping[str, Mapping[str, bytes] | None]
"""By `configmap/NAME`, `secret/NAME` or `token/AUDIENCE`; None for those that are not there."""


class Run(PlacedAttempt):
    """Begin this attempt. `launch.prepare` says what its processes find around them.

    images_on_host: without a container tool, run the command without its image.
    grace: how long it may take to stop when its time is over.
    supplies: what ConfigMaps and Secrets hold that a pod names; see `Supply`.
    """

    images_on_host: bool = False
    grace: Duration = Duration(30_000)
    supplies: Supplies = {}  # noqa: RUF012 -- an alias of Mapping, which the rule does not see


class Stop(Value):
    """End this attempt: warn, SIGTERM, wait for `grace`, SIGKILL; then report `why` as its end.

    checkpoint: first ask for a checkpoint, and let it be written within the grace.
    """

    job: JobId
    attempt: int
    why: EndReason
    grace: Duration
    checkpoint: bool = False


class Suspend(Value, gc=False):
    """Stop the attempt's processes in place; JobSuspended is reported when they stand."""

    job: JobId
    attempt: int


class Continue(Value, gc=False):
    """Resume suspended processes."""

    job: JobId
    attempt: int


class Signal(Value, gc=False):
    """Send a signal to the attempt's processes: to all, to the first one, or to those of a step.

    task: to that task alone, which must be a pod of a gang; SIGTERM ends it, with its grace.
    """

    job: JobId
    attempt: int
    signal: int
    shell_only: bool = False
    step: int | None = None
    task: int | None = None


class Limit(Value, gc=False):
    """The attempt must end by then, or need not end at all."""

    job: JobId
    attempt: int
    ends_at: Instant | None


class Supply(Value):
    """What the containers of an attempt may read is this from now on, all of it."""

    job: JobId
    attempt: int
    sources: Supplies


class Cut(Value):
    """Cut a device into these MIG instances (None: MIG mode off), before the Run that needs it."""

    node: NodeId
    device: DeviceId
    instances: tuple[MigInstance, ...] | None


class Mend(Value, gc=False):
    """An administrator says that the node is well: faults found before no longer count."""

    node: NodeId


class Forget(Value, gc=False):
    """The attempt's end is recorded: nothing about it need be kept, nothing of it may still run."""

    job: JobId
    attempt: int


AttemptAction = Run | Stop | Suspend | Continue | Signal | Limit | Supply | Forget
NodeAction = Cut | Mend
"""Cut comes only to clusters whose abilities include `repartition`; Mend may mean nothing there."""

Action = AttemptAction | NodeAction

Wake = Callable[[], None]
"""A backend calls this, from any thread, when there is something to observe."""


class Backend(Protocol):
    """One cluster. One thread calls, except where a method says that any may."""

    @property
    def cluster(self) -> Cluster:
        """What it is called and what it can do: the planner plans by its abilities."""
        ...

    def adopt(self, allocations: tuple[Allocation, ...]) -> None:
        """Called first: these attempts go on, and whatever else of ours runs there must end.

        After this `observe` reports everything again, also what was reported to an earlier
        controller; an attempt that ran and is gone is reported as ended (NodeFailed).
        """
        ...

    def do(self, action: Action) -> None:
        """Carry out, quickly; the result is observed. BackendDownError: it is sent again later."""
        ...

    def observe(self, now: Instant) -> tuple[Event, ...]:
        """What happened since the last call: ClusterSeen, NodeSeen, NodeGone and what jobs did."""
        ...

    def close(self) -> None:
        """Release everything; the jobs run on."""
        ...


class OutputQuery(Value):
    """A part of what a job wrote: of one task, from `offset` on (below zero: from the end).

    container: of a pod, whose log it is, and previous: of its run before the last one.
    """

    job: Job
    launch: Launch
    attempt: int
    nodes: tuple[NodeId, ...]
    stderr: bool = False
    task: int = 0
    offset: int = 0
    limit: int = 65_536
    container: str = ""
    previous: bool = False


@runtime_checkable
class OutputPort(Protocol):
    """Shows what jobs write."""

    def output(self, query: OutputQuery) -> Output:
        """What the job wrote; UnknownError when there is nothing to read. Any thread may call."""
        ...


@runtime_checkable
class TerminalPort(Protocol):
    """Connects users to the terminals of their jobs."""

    def attach(self, job: JobId, attempt: int) -> TerminalStream:
        """A stream to the job's terminal; UnknownError when it has none. Any thread may call."""
        ...


@runtime_checkable
class StepsPort(Protocol):
    """Starts steps (`srun`) inside running attempts."""

    def step_address(self, job: JobId, attempt: int) -> str:
        """Where a client asks for steps, as a URL whose scheme says how (`unix://...`).

        UnknownError when the attempt does not run. Any thread may call.
        """
        ...


@runtime_checkable
class VisitPort(Protocol):
    """Lets users into the containers of running pods."""

    def visit(self, job: JobId, attempt: int, task: int, wanted: Visit) -> VisitStream:
        """Begin a visit to the pod of a task: 0, but of a gang. Any thread may call.

        UnknownError when there is nothing to visit.
        """
        ...


@runtime_checkable
class UsagePort(Protocol):
    """Looks at what running attempts have and use."""

    def usage(self, job: JobId, attempt: int) -> tuple[Measured, ...]:
        """What the attempt's processes use now, the script first. Any thread may call."""
        ...

    def pinned_cpus(self, job: JobId, attempt: int) -> Mapping[NodeId, tuple[int, ...]]:
        """The CPUs that a running attempt has for itself on each node; empty where not known."""
        ...


@runtime_checkable
class SamplesPort(Protocol):
    """Measures devices, jobs and machines."""

    def samples(self, now: Instant) -> Samples:
        """What is known to be so now; what does not answer is left out. One thread may call."""
        ...
