"""Why a pod waits, in the words of Kubernetes' scheduler: how many nodes lack what. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from muster.controller.messages import Fleet
from muster.doors.kubernetes.pods.pod_of import gpu_resource
from muster.model.cluster import Node, NodeState
from muster.model.gpu import GpuAsk, Mig
from muster.model.job import NODE_LEVEL, JobRule, JobSpec, TaskGroup
from muster.model.placement import Placement
from muster.model.reason import Behind, MakingRoom, NeverFits, NoRoom, WaitReason
from muster.model.resources import Resources
from muster.model.value import Instant, JobId, NodeId, Value
from muster.schedule.explain.words import LACKING

_NO_MATCH = "node(s) didn't match Pod's node affinity/selector"
_TAINTED = "node(s) had untolerated taint(s)"
_CORDONED = "node(s) were unschedulable"
_NO_HELP = "Preemption is not helpful for scheduling"
_NO_VICTIMS = "No preemption victims found for incoming pod"
_CLAIMS = "no new claims to deallocate"
_NEVER = "not eligible due to preemptionPolicy=Never"
_NOT_NEAR = "node(s) didn't match pod affinity rules"
_NOT_APART = "node(s) didn't match pod anti-affinity rules"
_KEPT = "node(s) are kept for others"


class Around(Value):
    """What a pod that waits finds.

    labels: of the jobs that hold something, where the pod has rules about others.
    preempts: may others stop for it? is_clearing: they do.
    """

    fleet: Fleet
    labels: Mapping[JobId, Mapping[str, str]] = {}
    preempts: bool = True
    is_clearing: bool = False


class Shortage(Value):
    """What one node lacks for a task; final: it would lack it if nothing else ran there."""

    reasons: tuple[str, ...]
    final: bool


def message(spec: JobSpec, why: WaitReason, around: Around, now: Instant) -> str:
    """What the condition PodScheduled says: Kubernetes' words for room, ours for all else."""
    if not isinstance(why, NoRoom | NeverFits | MakingRoom | Behind):
        return why.sentence(spec, now)
    named = why.group if isinstance(why, NoRoom | NeverFits) else ""
    group = next((each for each in spec.groups if each.name == named), spec.groups[0])
    found = shortages(group, spec, around)
    if isinstance(why, Behind) and any(each.reasons == (_KEPT,) for each in found):
        return why.sentence(spec, now)
    return nodes_message(found, around)


def shortages(group: TaskGroup, spec: JobSpec, around: Around) -> tuple[Shortage, ...]:
    """Of each node, in the order of their ids, what it lacks for a task of the group."""
    fleet = around.fleet
    held: dict[NodeId, list[Placement]] = {}
    for allocation in fleet.allocations.values():
        for placement in allocation.placements:
            held.setdefault(placement.node, []).append(placement)
    found = (
        (fleet.nodes[name], _shortage(group, spec, fleet, fleet.nodes[name], held.get(name, [])))
        for name in sorted(fleet.nodes)
    )
    return tuple(
        short if short.reasons else _beside_others(group, node, around) for node, short in found
    )


def nodes_message(found: Sequence[Shortage], around: Around) -> str:
    """`0/2 nodes are available: 2 Insufficient nvidia.com/gpu. ...`."""
    count = len(found)
    if not count:
        return "no nodes available to schedule pods"
    reasons = Counter(reason for each in found for reason in each.reasons)
    helps = Counter(_NO_HELP if each.final else _NO_VICTIMS for each in found)
    first = f"0/{count} nodes are available: {_listed(reasons)}."
    if around.is_clearing:
        return first
    if not around.preempts:
        return f"{first} {_CLAIMS}, preemption: {_NEVER}."
    return f"{first} {_CLAIMS}, preemption: 0/{count} nodes are available: {_listed(helps)}."


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))


def _lacking(spec: JobSpec, node: Node, fleet: Fleet) -> str:
    """What its cluster cannot do for the pod."""
    cluster = fleet.clusters.get(node.cluster)
    lacking = None if cluster is None else cluster.abilities.lacking(spec.takes)
    return "" if lacking is None else f"node(s) of cluster {node.cluster}, which {LACKING[lacking]}"


def _shortage(
    group: TaskGroup, spec: JobSpec, fleet: Fleet, node: Node, held: Iterable[Placement]
) -> Shortage:
    if node.state is not NodeState.UP:
        word = _CORDONED if node.state is NodeState.DRAINING else _TAINTED
        return Shortage(reasons=(word,), final=True)
    if not _is_tolerated(group, node):
        return Shortage(reasons=(_TAINTED,), final=True)
    if not _matches(group, spec, node):
        return Shortage(reasons=(_NO_MATCH,), final=True)
    if lacking := _lacking(spec, node, fleet):
        return Shortage(reasons=(lacking,), final=True)
    placements = tuple(held)
    short = tuple(_insufficient(group, node, placements))
    whole = tuple(_insufficient(group, node, ()))
    return Shortage(reasons=short, final=bool(whole))


def _beside_others(group: TaskGroup, node: Node, around: Around) -> Shortage:
    """There is room, but not beside those who are there."""
    where = group.where
    if not all(_has_neighbour(rule, node, around) for rule in where.near):
        return Shortage(reasons=(_NOT_NEAR,), final=True)
    if any(_has_neighbour(rule, node, around) for rule in where.apart):
        return Shortage(reasons=(_NOT_APART,), final=False)
    return Shortage(reasons=(_KEPT,), final=False)


def _has_neighbour(rule: JobRule, node: Node, around: Around) -> bool:
    fleet, here = around.fleet, _domain(rule.level, node, around.fleet)
    return here is not None and any(
        around.labels.get(job, {}).get(rule.key) == rule.value
        and any(
            _domain(rule.level, fleet.nodes[placed.node], fleet) == here
            for placed in allocation.placements
            if placed.node in fleet.nodes
        )
        for job, allocation in fleet.allocations.items()
    )


def _domain(level: str, node: Node, fleet: Fleet) -> tuple[str, ...] | None:
    """What counts as one place with this node; None where its pool has no such level."""
    if level == NODE_LEVEL:
        return (node.id,)
    pool = fleet.pools.get(node.pool)
    levels = () if pool is None else pool.levels
    if level not in levels:
        return None
    return (node.pool, *node.where[: levels.index(level) + 1])


def _is_tolerated(group: TaskGroup, node: Node) -> bool:
    return all(
        any(
            each.key in (None, taint.key) and each.value in (None, taint.value)
            for each in group.where.tolerate
        )
        for taint in node.taints
    )


def _matches(group: TaskGroup, spec: JobSpec, node: Node) -> bool:
    where = group.where
    models = group.each.gpus.models if group.each.gpus is not None else ()
    return (
        (not where.nodes or node.id in where.nodes)
        and node.id not in where.not_nodes
        and (not spec.pools or node.pool in spec.pools)
        and (not models or any(each.model in models for each in node.devices))
        and all(rule.accepts(node.labels) for rule in where.require)
    )


def _insufficient(group: TaskGroup, node: Node, held: Sequence[Placement]) -> Iterator[str]:
    used = sum((each.amount for each in held), Resources())
    ask = group.each
    if ask.cpu_milli > node.cpu_milli - used.cpu_milli:
        yield "Insufficient cpu"
    if ask.memory_mib > node.memory_mib - used.memory_mib:
        yield "Insufficient memory"
    if ask.gpus is not None and ask.gpus.count > _free_gpus(ask.gpus, node, held):
        yield f"Insufficient {gpu_resource(ask.gpus)}"


def _free_gpus(asked: GpuAsk, node: Node, held: Sequence[Placement]) -> int:
    taken = [share for placement in held for share in placement.devices]
    if isinstance(asked.slice, Mig):
        profile = asked.slice.profile
        there = sum(
            part.profile == profile
            for device in node.devices
            if device.healthy
            for part in device.mig or ()
        )
        gone = sum(
            isinstance(share.slice, Mig) and share.slice.profile == profile for share in taken
        )
        return there - gone
    busy = {share.device for share in taken}
    whole = [each for each in node.devices if each.healthy and each.mig is None]
    return sum(each.id not in busy for each in whole)
