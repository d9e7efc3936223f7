"""What backends can show of attempts besides running them, where they can.

Each of these is an optional port. A cluster without one is an answer, not a fault: users are
told what that cluster cannot do.
"""

from collections.abc import Mapping

from muster.backends.base import (
    Backend,
    OutputPort,
    OutputQuery,
    StepsPort,
    TerminalPort,
    UsagePort,
    VisitPort,
)
from muster.model.errors import UnknownError
from muster.model.placement import Allocation
from muster.model.running import Measured, Output, TerminalStream, Visit, VisitStream
from muster.model.value import ClusterName, NodeId


class RunningAttempts:
    """Finds the backend of an attempt and asks it. Any thread may call."""

    def __init__(self, backends: Mapping[ClusterName, Backend]) -> None:
        self._backends = backends

    def output(self, cluster: ClusterName, query: OutputQuery) -> Output:
        """A part of what a job wrote."""
        backend = self._backend(cluster)
        if not isinstance(backend, OutputPort):
            raise _unable(cluster, "show what jobs write")
        return backend.output(query)

    def attach(self, held: Allocation) -> TerminalStream:
        """A stream to the terminal of a running job."""
        backend = self._backend(held.cluster)
        if not isinstance(backend, TerminalPort):
            raise _unable(held.cluster, "connect to terminals of jobs")
        return backend.attach(held.job, held.attempt)

    def step_address(self, held: Allocation) -> str:
        """Where steps of a running job are asked for, as a URL."""
        backend = self._backend(held.cluster)
        if not isinstance(backend, StepsPort):
            raise _unable(held.cluster, "start steps inside jobs")
        return backend.step_address(held.job, held.attempt)

    def visit(self, held: Allocation, task: int, wanted: Visit) -> VisitStream:
        """Into the containers of a running pod."""
        backend = self._backend(held.cluster)
        if not isinstance(backend, VisitPort):
            raise _unable(held.cluster, "let anybody into containers")
        return backend.visit(held.job, held.attempt, task, wanted)

    def usage(self, held: Allocation) -> tuple[Measured, ...]:
        """What the processes of a running job use now."""
        return self._usage_port(held.cluster).usage(held.job, held.attempt)

    def pinned_cpus(self, held: Allocation) -> Mapping[NodeId, tuple[int, ...]]:
        """The CPUs that a running job has for itself on each node, where they are known."""
        return self._usage_port(held.cluster).pinned_cpus(held.job, held.attempt)

    def _usage_port(self, cluster: ClusterName) -> UsagePort:
        backend = self._backend(cluster)
        if not isinstance(backend, UsagePort):
            raise _unable(cluster, "show what jobs use")
        return backend

    def _backend(self, cluster: ClusterName) -> Backend:
        backend = self._backends.get(cluster)
        if backend is None:
            raise UnknownError(f"cluster {cluster} is not at hand here; ask the Muster that leads")
        return backend


def _unable(cluster: ClusterName, to: str) -> UnknownError:
    return UnknownError(f"cluster {cluster} cannot {to}")
