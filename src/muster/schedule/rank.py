"""Nodes by how well they suit one task: for schedulers that decide themselves, and only ask us."""

from collections.abc import Mapping

from muster.model.cluster import Cluster, Node, NodeState, Pool
from muster.model.job import Ask, JobSpec, Spot, TaskGroup
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.model.value import (
    ClusterName,
    Instant,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    replace,
)
from muster.schedule.policy.search import ALL_OPEN
from muster.schedule.state.follow import PlannerState

_CLUSTER, _POOL = ClusterName("cluster"), PoolName("pool")


class Ranking:
    """Remembers the nodes that it was last asked about: that saves time and changes no answer."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._kept: PlannerState | None = None
        self._version = 0

    def numbers(self, nodes: Mapping[NodeId, Node], ask: Ask) -> dict[NodeId, int]:
        """Each node that has room for the task, with a number: the least suits best.

        nodes: with what is free of them. Where a node is, and who may use it, is not asked.
        """
        kept = self._followed(nodes)
        ledger, found = kept.ledger, dict[NodeId, int]()
        need = ledger.needs.of(TaskGroup(each=ask), _spec(ask), Spot.ALLOWED)
        for tier in ledger.catalogue.tiers(need):
            found |= ledger.finder(need, tier, ALL_OPEN).numbers()
        return found

    def _followed(self, nodes: Mapping[NodeId, Node]) -> PlannerState:
        self._version += 1
        snapshot = Snapshot(
            version=self._version,
            now=Instant(0),
            clusters={_CLUSTER: Cluster(name=_CLUSTER)},
            pools={_POOL: Pool(name=_POOL, cluster=_CLUSTER)},
            nodes={name: _plain(node) for name, node in nodes.items()},
        )
        if self._kept is None:
            self._kept = PlannerState(snapshot, self._policy)
        self._kept.follow(snapshot)
        return self._kept


def _plain(node: Node) -> Node:
    return replace(
        node, cluster=_CLUSTER, pool=_POOL, state=NodeState.UP, labels={}, taints=(), where=()
    )


def _spec(ask: Ask) -> JobSpec:
    nobody, nowhere = UserName("nobody"), QueuePath("none")
    return JobSpec(name="", user=nobody, queue=nowhere, groups=(TaskGroup(each=ask),))
