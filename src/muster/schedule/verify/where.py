"""Nodes that a group wants, and does not want."""

from collections import Counter
from collections.abc import Iterator

from muster.model.cluster import Node, Taint
from muster.model.job import ANYWHERE, NODE_LEVEL, Toleration, Where
from muster.model.snapshot import Snapshot
from muster.model.value import ClusterName, NodeId
from muster.schedule.verify.case import Case
from muster.schedule.verify.place import by_group
from muster.schedule.verify.violation import Violation

Domain = tuple[ClusterName, tuple[str, ...]] | NodeId
"""A part of a cluster at some level of its topology, the lowest being one node."""


def labels_and_lists_hold(case: Case) -> Iterator[Violation]:
    """Required label rules hold, and node lists are kept to."""
    for addition in case.placed:
        for task in addition.tasks:
            where = task.group.where
            # Nearly every group goes anywhere.
            if where is ANYWHERE:
                continue
            for text in _label_faults(where, task.node):
                yield Violation(rule="labels", subject=f"job {task.job.id}", text=text)


def taints_are_tolerated(case: Case) -> Iterator[Violation]:
    """Every taint of a task's node is tolerated by its group."""
    for addition in case.placed:
        for task in addition.tasks:
            for taint in task.node.taints:
                if _tolerates(task.group.where.tolerate, taint):
                    continue
                text = f"It does not tolerate {taint.key}={taint.value} on {task.node.id}."
                yield Violation(rule="taints", subject=f"job {task.job.id}", text=text)


def nodes_are_not_crowded(case: Case) -> Iterator[Violation]:
    """At most `max_per_node` tasks of the group are on one node."""
    for addition in case.placed:
        if all(task.group.where.max_per_node is None for task in addition.tasks):
            continue
        for group, tasks in by_group(addition):
            most = group.where.max_per_node
            for node_id, count in Counter(task.node.id for task in tasks).items():
                if most is not None and count > most:
                    text = (
                        f"{count} tasks of group {group.name} are on {node_id}, of at most {most}."
                    )
                    yield Violation(rule="per node", subject=f"job {addition.job.id}", text=text)


def groups_stand_together(case: Case) -> Iterator[Violation]:
    """Tasks of a group with a required topology level lie in one domain of it.

    Tasks on one node are together at every level, even one that their pool does not have.
    """
    for addition in case.placed:
        if all(task.group.together is None for task in addition.tasks):
            continue
        for group, tasks in by_group(addition):
            together = group.together
            if together is None or not together.required:
                continue
            nodes = {task.node.id: task.node for task in tasks}
            domains = {domain_of(case.snapshot, each, together.level) for each in nodes.values()}
            if len(nodes) > 1 and (len(domains) > 1 or None in domains):
                text = (
                    f"Group {group.name} must be in one {together.level}, "
                    f"and its {len(nodes)} nodes are not."
                )
                yield Violation(rule="together", subject=f"job {addition.job.id}", text=text)


def domain_of(snapshot: Snapshot, node: Node, level: str) -> Domain | None:
    """Where the node lies at this level: the same `where` up to it in the same cluster."""
    if level == NODE_LEVEL:
        return node.id
    pool = snapshot.pools.get(node.pool)
    if pool is None or level not in pool.levels:
        return None
    depth = pool.levels.index(level) + 1
    return (node.cluster, node.where[:depth]) if len(node.where) >= depth else None


def _label_faults(where: Where, node: Node) -> Iterator[str]:
    for rule in where.require:
        if not rule.accepts(node.labels):
            wanted = " ".join((rule.key, rule.operator, *rule.values))
            yield f"Node {node.id} does not satisfy {wanted!r}."
    if where.nodes and node.id not in where.nodes:
        yield f"Node {node.id} is not among the {len(where.nodes)} nodes that it names."
    if node.id in where.not_nodes:
        yield f"It asks not to be on {node.id}."


def _tolerates(tolerations: tuple[Toleration, ...], taint: Taint) -> bool:
    return any(
        each.key in (None, taint.key) and each.value in (None, taint.value) for each in tolerations
    )
