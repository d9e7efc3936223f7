"""Which pools the rules about bursting close to a waiting job. Without such rules, none."""

from collections.abc import Mapping

from muster.model.burst import (
    Burst,
    Bursting,
    can_slice,
    expected_hold,
    has_chosen,
    suits,
    takes,
    waits_for,
)
from muster.model.cluster import Node, Pool
from muster.model.gpu import Device
from muster.model.job import Job, JobState, TaskGroup
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.model.value import ClusterName, DeviceId, NodeId, PoolName

NodesByPool = Mapping[PoolName, tuple[Node, ...]]


class BurstRules:
    """The rules as they stand in one snapshot.

    All waiting jobs are looked at, and all nodes of preferred clusters: only where there are rules.
    """

    def __init__(self, snapshot: Snapshot, policy: Policy) -> None:
        self._policy = policy
        self._clusters = snapshot.clusters
        self._pools = dict(sorted(snapshot.pools.items())) if policy.bursts else {}
        self._waiting = {rule: _waiting(rule, snapshot, policy) for rule in policy.bursts}
        self._nodes = _unlike({rule.preferred for rule in policy.bursts}, snapshot)
        self._suited: dict[tuple[PoolName, tuple[TaskGroup, ...]], bool] = {}

    @property
    def key(self) -> tuple[object, ...]:
        """While this is the same, the same pools are closed to the same jobs."""
        is_due = tuple([rule.is_exceeded(amount) for rule, amount in self._waiting.items()])
        slices = [
            self._clusters[each.preferred].abilities
            for each in self._waiting
            if each.preferred in self._clusters
        ]
        return (is_due, slices, self._pools, self._nodes)

    def barred(self, job: Job) -> tuple[PoolName, ...]:
        """The pools that are closed to the job: one rule that opens a pool is enough."""
        said = self.about(job)
        opened = {each.pool for each in said if each.is_open}
        return tuple(sorted({each.pool for each in said} - opened))

    def about(self, job: Job) -> tuple[Bursting, ...]:
        """What the rules say about the job."""
        if not self._waiting or has_chosen(job.spec):
            return ()
        return tuple(each for rule in self._policy.bursts for each in self._said(rule, job))

    def _said(self, rule: Burst, job: Job) -> list[Bursting]:
        spec, pools, policy = job.spec, self._pools.values(), self._policy
        here = [each for each in pools if takes(each, spec, rule.preferred)]
        prices = [each.gpu_hour_micros for each in here if self._suits(each, spec.groups)]
        if not prices or not can_slice(self._clusters.get(rule.preferred), spec):
            # The preferred cluster has nothing for it.
            return []
        hold = expected_hold(job, policy.default_time, policy.preempt.restart_cost)
        return [
            Bursting(
                rule=rule,
                pool=each.name,
                waiting_gpu_milli_ms=self._waiting[rule],
                is_of_class=spec.job_class in rule.classes,
                here_micros=hold.cost(min(prices)),
                there_micros=rule.cost_there(hold, each.gpu_hour_micros),
            )
            for each in pools
            if takes(each, spec, rule.to)
        ]

    def _suits(self, pool: Pool, groups: tuple[TaskGroup, ...]) -> bool:
        key = (pool.name, groups)
        if key not in self._suited:
            nodes = self._nodes.get(pool.name, ())
            self._suited[key] = all(any(suits(node, each) for node in nodes) for each in groups)
        return self._suited[key]


def _waiting(rule: Burst, snapshot: Snapshot, policy: Policy) -> int:
    """GPU-milli-milliseconds that wait for the preferred cluster as the plan begins."""
    pools, now, restart = snapshot.pools, snapshot.now, policy.preempt.restart_cost
    return sum(
        expected_hold(job, policy.default_time, restart).gpu_milli_ms
        for job in snapshot.jobs.values()
        if job.state is JobState.PENDING and waits_for(rule.preferred, job, pools, now)
    )


def _unlike(clusters: set[ClusterName], snapshot: Snapshot) -> NodesByPool:
    """The nodes of these clusters by pool, one of all that are alike."""
    found: dict[PoolName, dict[tuple[object, ...], Node]] = {}
    for _, node in sorted(snapshot.nodes.items()) if clusters else ():
        if node.cluster in clusters:
            plain = _plain(node)
            kind = (
                plain.cpu_milli,
                plain.memory_mib,
                plain.devices,
                plain.taints,
                *sorted(plain.labels.items()),
            )
            found.setdefault(node.pool, {})[kind] = plain
    return {pool: tuple(kinds.values()) for pool, kinds in found.items()}


def _plain(node: Node) -> Node:
    """What the node is, without which one it is and how it fares."""
    devices = [
        Device(id=DeviceId(""), index=0, model=each.model, memory_mib=each.memory_mib)
        for each in node.devices
    ]
    return Node(
        id=NodeId(""),
        cluster=node.cluster,
        pool=node.pool,
        cpu_milli=node.cpu_milli,
        memory_mib=node.memory_mib,
        devices=tuple(devices),
        labels=node.labels,
        taints=node.taints,
    )
