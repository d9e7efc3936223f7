"""Nodes, pools, clusters and reservations, and what is held on nodes."""

from collections.abc import Collection, Iterator, Mapping

from muster.controller.messages import Fleet
from muster.controller.world.journal import Clock
from muster.controller.world.record import Record
from muster.model.cluster import Cluster, Node, Pool
from muster.model.job import HOLDING
from muster.model.placement import Placement
from muster.model.value import ClusterName, JobId, NodeId, PoolName

HeldOn = Mapping[NodeId, tuple[tuple[JobId, Placement], ...]]
"""By node, the placements there and whose they are."""


class NodeQueries:
    """The fleet."""

    def __init__(self, record: Record, clock: Clock) -> None:
        self._record = record
        self._clock = clock

    def fleet(self) -> Fleet:
        """Nodes, pools, clusters, reservations and what is held, of one moment."""
        return self._record.fleet(self._clock())

    def all(self) -> Mapping[NodeId, Node]:
        """Every node. The same object until a node changes."""
        return self.fleet().nodes

    def pools(self) -> Mapping[PoolName, Pool]:
        """Every pool: those of the rules, and plain ones for nodes that name another."""
        return self.fleet().pools

    def clusters(self) -> Mapping[ClusterName, Cluster]:
        """Every cluster."""
        return self.fleet().clusters

    def find(self, name: NodeId) -> Node | None:
        """The node of this name."""
        return self._record.nodes.get(name)

    def held(self, nodes: Collection[NodeId]) -> HeldOn:
        """What jobs hold on these nodes."""
        found: dict[NodeId, list[tuple[JobId, Placement]]] = {node: [] for node in nodes}
        for job, placement in self._placements():
            if placement.node in found:
                found[placement.node].append((job, placement))
        return {node: tuple(here) for node, here in found.items()}

    def gpu_milli_held(self) -> int:
        """So much of all GPUs together is held by jobs."""
        return sum(placement.amount.gpu_milli for _, placement in self._placements())

    def _placements(self) -> Iterator[tuple[JobId, Placement]]:
        """Every placement of a job that holds what it was given."""
        jobs = self._record.jobs
        for job_id, allocation in self.fleet().allocations.items():
            job = jobs.get(job_id)
            if job is not None and job.state in HOLDING:
                for placement in allocation.placements:
                    yield job_id, placement
