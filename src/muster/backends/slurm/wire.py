"""What is asked of a Slurm cluster, whichever way it is reached."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from muster.backends.attempts import Deed
from muster.backends.slurm.listing import QueuedJob
from muster.backends.slurm.nodes import Fleet, Partition, SlurmNode
from muster.backends.slurm.submission import Submission
from muster.backends.slurm.topology import Topology
from muster.backends.slurm.usage import Usage
from muster.model.value import UserName


class SlurmDownError(Exception):
    """The cluster did not answer; whether it did what was asked is not known."""


class SlurmRefusedError(Exception):
    """Slurm understood, and said no."""


class SlurmNotYetError(SlurmRefusedError):
    """Slurm said no, as it also does of good jobs while it comes back: soon it may say yes."""


Submitted = str | SlurmDownError | SlurmRefusedError
"""The number that Slurm gave a job, or why there is none, or none that is known."""


class Wire(Protocol):
    """One cluster. Every method may raise the errors above; an answer is waited for so long."""

    def jobs(self) -> tuple[QueuedJob, ...]:
        """Every job that the cluster lists, ours and those of others."""
        ...

    def partitions(self) -> tuple[Partition, ...]:
        """Every partition, the default one first."""
        ...

    def nodes(self, fleet: Fleet) -> tuple[SlurmNode, ...]:
        """The nodes that we may use."""
        ...

    def topology(self) -> Topology:
        """Where the nodes are, if the cluster says so."""
        ...

    def finished(self, handle: str) -> QueuedJob | None:
        """How a job ended that the queue no longer lists, if accounting knows."""
        ...

    def usage(self, handles: Sequence[str]) -> Mapping[str, Usage]:
        """What these running jobs use; without those of which nothing is measured."""
        ...

    def submit(self, asked: Sequence[tuple[Submission, UserName]]) -> Sequence[Submitted]:
        """Submit each as its user, some at a time; in the same order, what came of them."""
        ...

    def do(self, handle: str, deed: Deed) -> None: ...

    def signal_step(self, handle: str, step: int, number: int) -> None: ...

    def suspend(self, handle: str) -> None: ...

    def limit(self, handle: str, minutes: int | None) -> None:
        """Slurm's own limit; None: there is none."""
        ...


class WholeWire(Wire, Protocol):
    """And what is asked only when a cluster is added, or looked after."""

    def version(self) -> str:
        """Which Slurm it says that it is."""
        ...

    def accounts(self) -> tuple[str, ...]:
        """Those in whose name jobs can be; none where Slurm keeps no accounts."""
        ...

    def qualities(self) -> tuple[str, ...]:
        """Every QOS; none where Slurm keeps no accounts."""
        ...
