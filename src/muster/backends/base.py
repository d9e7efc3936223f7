"""The port: what a backend is told, and what it tells.

Every action is keyed by (job, attempt). It is committed to the store before it is sent, it may be
sent again, and sent twice it happens once.
"""

from collections.abc import Callable, Mapping
from socket import socket
from typing import Protocol

from muster.model.cluster import Cluster, Node
from muster.model.event import Event
from muster.model.gpu import MigInstance
from muster.model.history import Used
from muster.model.job import EndReason, Job
from muster.model.launch import Launch
from muster.model.placement import Allocation
from muster.model.value import DeviceId, Duration, Instant, JobId, NodeId, Value


class Run(Value):
    """Begin this attempt. `job.spec.launch` is empty; `launch` has it.

    nodes: those of the placements, as they are known now.
    checkpoint: the newest checkpoint that an earlier attempt really wrote, if any.
    restarts: how many attempts there were before this one.
    images_on_host: without a container tool, run the command without its image.
    grace: how long it may take to stop when its time is over.
    """

    job: Job
    allocation: Allocation
    launch: Launch
    nodes: Mapping[NodeId, Node]
    checkpoint: str | None = None
    restarts: int = 0
    images_on_host: bool = False
    grace: Duration = Duration(30_000)


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
    """Let suspended processes go on."""

    job: JobId
    attempt: int


class Signal(Value, gc=False):
    """Send a signal to the attempt's processes (only to the first one, or to a step, if told)."""

    job: JobId
    attempt: int
    signal: int
    shell_only: bool = False
    step: int | None = None


class Limit(Value, gc=False):
    """The attempt must end by then, or need not end at all."""

    job: JobId
    attempt: int
    ends_at: Instant | None


class Cut(Value):
    """Cut a device into these MIG instances (None: MIG mode off), before the Run that needs it."""

    node: NodeId
    device: DeviceId
    instances: tuple[MigInstance, ...] | None


class Mend(Value, gc=False):
    """An administrator says that the node is well: what was found wrong with it counts no more."""

    node: NodeId


class Forget(Value, gc=False):
    """The attempt's end is recorded: nothing about it need be kept, nothing of it may still run."""

    job: JobId
    attempt: int


Action = Run | Stop | Suspend | Continue | Signal | Limit | Cut | Mend | Forget


class OutputAsked(Value):
    """A part of what a job wrote: of one task, from `offset` on (below zero: from the end)."""

    job: Job
    launch: Launch
    attempt: int
    nodes: tuple[NodeId, ...]
    stderr: bool = False
    task: int = 0
    offset: int = 0
    limit: int = 65_536


class Output(Value):
    """The part, and where the next one begins. `where` is the file, if there is one."""

    content: bytes
    next: int
    where: str | None = None


class Measured(Value):
    """What runs of an attempt just now: the processes of one step, or of the job's own script.

    step: its number; None for the script. resident_kib is what all of them hold now together,
    peak_kib and virtual_kib the most that one of them held.
    """

    step: int | None
    pids: tuple[int, ...]
    used: Used
    resident_kib: int
    peak_kib: int
    virtual_kib: int


class Backend(Protocol):
    """One cluster."""

    @property
    def cluster(self) -> Cluster: ...

    def adopt(self, allocations: tuple[Allocation, ...]) -> None:
        """Called once, before anything else: these attempts go on. Whatever else runs must end."""
        ...

    def do(self, action: Action) -> None:
        """Carry out, quickly; what comes of it is observed. BackendDownError: tried again later."""
        ...

    def observe(self, now: Instant) -> tuple[Event, ...]:
        """What happened since the last call: ClusterSeen, NodeSeen, NodeGone and what jobs did.

        What is not committed after this is told again by the next backend that adopts.
        """
        ...

    def output(self, asked: OutputAsked) -> Output:
        """What the job wrote; UnknownError when there is nothing to read. Any thread may call."""
        ...

    def attach(self, job: JobId, attempt: int) -> socket:
        """A connected stream to the job's terminal; UnknownError when it has none."""
        ...

    def steps_at(self, job: JobId, attempt: int) -> str:
        """The folder of this machine with the socket where steps are asked for.

        UnknownError where there is none: the job does not run, or runs elsewhere.
        """
        ...

    def cpus(self, job: JobId, attempt: int) -> tuple[int, ...]:
        """The CPUs that a running attempt has for itself, by their numbers on its node.

        Empty where it has none of its own, or nobody knows which. Any thread may call.
        """
        ...

    def usage(self, job: JobId, attempt: int) -> tuple[Measured, ...]:
        """What the attempt's processes use now, the script first. Any thread may call.

        UnknownError where nobody can see it.
        """
        ...

    def close(self) -> None:
        """Let go of everything; the jobs run on."""
        ...


Wake = Callable[[], None]
"""A backend calls this, from any thread, when there is something to observe."""
