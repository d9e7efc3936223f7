"""Our planner in the same protocol: its ledger, its finders and its score, one task at a time.

It is told what FGD is told: which tasks usually come. Shares of GPUs are MPS shares.
"""

from collections import Counter
from collections.abc import Iterable

from bench.packing.ports import USUAL_PER_CENT
from bench.packing.protocol import Task, Workload
from muster.model.cluster import Cluster, Node, Pool
from muster.model.gpu import Device, GpuAsk, MpsShare
from muster.model.job import Ask, JobSpec, Spot, TaskGroup
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot, UsualAsk
from muster.model.value import (
    ClusterName,
    DeviceId,
    GpuModel,
    Instant,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
)
from muster.schedule.room.find import Bounds
from muster.schedule.room.index import FOR_EVER
from muster.schedule.room.ledger import Ledger
from muster.schedule.room.needs import Need
from muster.simulator.traces.traced import TracedNode

ALL = Pool(name=PoolName("all"), cluster=ClusterName("openb"))
OPENB = Cluster(name=ClusterName("openb"))
DEVICE_MIB = 16_000
NOW = Instant(0)
SOMEBODY = JobSpec(name="pod", user=UserName("openb"), queue=QueuePath("openb"), groups=())


class Planner:
    """The room of all nodes, as the planner keeps it."""

    def __init__(self, workload: Workload) -> None:
        nodes = [_node(node) for node in workload.nodes]
        snapshot = Snapshot(
            now=NOW,
            clusters={OPENB.name: OPENB},
            pools={ALL.name: ALL},
            nodes={node.id: node for node in nodes},
            usual=usual(workload.tasks),
        )
        self._ledger = Ledger(snapshot, Policy())
        self._needs: dict[Task, Need] = {}
        for node in nodes:
            self._ledger.set_node(node)

    def place(self, task: Task) -> bool:
        """Give the task the best room, if there is any."""
        need = self._need(task)
        for tier in self._ledger.catalogue.tiers(need):
            found = self._ledger.finder(need, tier, frozenset()).best(Bounds())
            if found is not None:
                with self._ledger.trial() as trial:
                    self._ledger.take(found[0], need, FOR_EVER)
                    trial.keep()
                return True
        return False

    def _need(self, task: Task) -> Need:
        known = self._needs.get(task)
        if known is None:
            group = TaskGroup(each=_ask(task))
            known = self._needs[task] = self._ledger.needs.of(group, SOMEBODY, Spot.NEVER)
        return known


def usual(tasks: Iterable[Task]) -> tuple[UsualAsk, ...]:
    """The kinds of task that make up 95 % of all; memory does not count, as for FGD."""
    counts = Counter(_ask(task._replace(memory_mib=0)) for task in tasks)
    found: list[UsualAsk] = []
    missing = counts.total() * USUAL_PER_CENT
    for each, count in counts.most_common():
        if missing > 0:
            found.append(UsualAsk(each=each, count=count))
        missing -= 100 * count
    return tuple(found)


def _ask(task: Task) -> Ask:
    if not task.gpus:
        return Ask(cpu_milli=task.cpu_milli, memory_mib=task.memory_mib)
    gpus = GpuAsk(
        count=task.gpus,
        slice=MpsShare(milli=task.gpu_milli) if task.is_share else None,
        models=tuple(sorted({GpuModel(model) for model in task.models})),
    )
    return Ask(cpu_milli=task.cpu_milli, memory_mib=task.memory_mib, gpus=gpus)


def _node(node: TracedNode) -> Node:
    return Node(
        id=NodeId(node.name),
        cluster=OPENB.name,
        pool=ALL.name,
        cpu_milli=node.cpu_milli,
        memory_mib=node.memory_mib,
        devices=tuple(_device(node, index) for index in range(node.gpus)),
    )


def _device(node: TracedNode, index: int) -> Device:
    return Device(
        id=DeviceId(f"{node.name}/{index}"),
        index=index,
        model=node.model,
        memory_mib=DEVICE_MIB,
    )
