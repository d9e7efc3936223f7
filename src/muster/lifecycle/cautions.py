"""What is accepted, but worth a word to its user."""

from collections.abc import Iterator

from muster.lifecycle.refusal import Caution, EscapesQuota, NeverReady, NoNodeMatches
from muster.lifecycle.submission import Submission, options
from muster.model.cluster import Node, Taint
from muster.model.job import Dependency, DependencyKind, JobState, Toleration, Where
from muster.model.queue import Meter

CANNOT_FOLLOW = {
    DependencyKind.AFTER_OK: frozenset({JobState.FAILED, JobState.CANCELLED}),
    DependencyKind.AFTER_NOT_OK: frozenset({JobState.COMPLETED}),
}
"""Which ends make a dependency impossible for ever."""


def quota_is_escaped(asked: Submission) -> Iterator[Caution]:
    """A task that asks for no CPU or memory runs beside a quota that should count it."""
    counted = {
        quota.scope.meter: queue.path for queue in asked.queues[::-1] for quota in queue.quotas
    }
    for group in asked.spec.groups:
        asks = {Meter.CPU: group.each.cpu_milli, Meter.MEMORY: group.each.memory_mib}
        for meter, amount in asks.items():
            if meter in counted and not amount:
                yield Caution(
                    reason=EscapesQuota(group=group.name, queue=counted[meter], meter=meter),
                    advice=f"Queue {counted[meter]} counts {meter}, and group {group.name} asks "
                    f"for none. Say how much {meter} a task needs.",
                )


def no_node_matches(asked: Submission) -> Iterator[Caution]:
    for group in asked.spec.groups:
        nodes = (node for kind in options(asked, group) for node in kind.nodes)
        if not any(_is_allowed(node, group.where) for node in nodes):
            yield Caution(
                reason=NoNodeMatches(group=group.name),
                advice=f"No node has the labels, names and taints that group {group.name} goes by. "
                "The job waits until one does.",
            )


def dependency_is_hopeless(asked: Submission) -> Iterator[Caution]:
    """Where there are several ways, all of them must be."""
    after = asked.spec.after
    found = [(each, caution) for each in after if (caution := _hopeless(each, asked)) is not None]
    if {each.way for each in after} == {each.way for each, _ in found}:
        yield from (caution for _, caution in found)


def _hopeless(dependency: Dependency, asked: Submission) -> Caution | None:
    kind, job = dependency.kind, dependency.job
    if job is None or job not in asked.snapshot.finished:
        return None
    state = asked.snapshot.finished[job].state
    if state not in CANNOT_FOLLOW.get(kind, frozenset()):
        return None
    return Caution(
        reason=NeverReady(kind=kind, job=job),
        advice=f"Job {job} ended as {state}, so {kind} cannot come true. "
        "The job waits for ever unless its dependency is changed.",
    )


def _is_allowed(node: Node, where: Where) -> bool:
    return (
        (not where.nodes or node.id in where.nodes)
        and node.id not in where.not_nodes
        and all(rule.accepts(node.labels) for rule in where.require)
        and all(any(_accepts(each, taint) for each in where.tolerate) for taint in node.taints)
    )


def _accepts(toleration: Toleration, taint: Taint) -> bool:
    return toleration.key in {None, taint.key} and toleration.value in {None, taint.value}
