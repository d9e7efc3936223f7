"""`--exclusive`: a job that has its nodes to itself has all of their CPUs and GPUs. Pure."""

from collections.abc import Collection, Sequence

from muster.doors.slurm.fleet import Machines
from muster.doors.slurm.shape import Shape
from muster.model.cluster import Node
from muster.model.gpu import GpuAsk
from muster.model.job import Ask, TaskGroup, Where
from muster.model.value import PoolName, replace


def widened(shape: Shape, pools: Collection[PoolName], machines: Machines) -> Shape:
    """With all that every node has on which it could run: they may be of several sizes."""
    groups = tuple(
        replace(group, each=_whole(group.each, _suitable(group, pools, machines)))
        for group in shape.groups
    )
    return replace(shape, groups=groups)


def _suitable(group: TaskGroup, pools: Collection[PoolName], machines: Machines) -> list[Node]:
    return [
        node
        for node in machines.nodes.values()
        if (not pools or node.pool in pools)
        and _is_meant(node, group.where)
        and node.cpu_milli >= group.each.cpu_milli
        and _gpus(node, group.each.gpus) >= (group.each.gpus.count if group.each.gpus else 0)
    ]


def _is_meant(node: Node, where: Where) -> bool:
    return (
        (not where.nodes or node.id in where.nodes)
        and node.id not in where.not_nodes
        and all(rule.accepts(node.labels) for rule in where.require)
    )


def _gpus(node: Node, ask: GpuAsk | None) -> int:
    """How many it has, of those that would do."""
    models = ask.models if ask is not None else ()
    return sum(
        device.healthy and device.mig is None and (not models or device.model in models)
        for device in node.devices
    )


def _whole(ask: Ask, nodes: Sequence[Node]) -> Ask:
    if not nodes:
        return ask
    cpu_milli = min(node.cpu_milli for node in nodes)
    return replace(ask, cpu_milli=cpu_milli, gpus=_whole_gpus(ask.gpus, nodes))


def _whole_gpus(ask: GpuAsk | None, nodes: Sequence[Node]) -> GpuAsk | None:
    """Slices stay as they were asked for."""
    if ask is not None and ask.slice is not None:
        return ask
    count = min(_gpus(node, ask) for node in nodes)
    if ask is not None:
        return replace(ask, count=count)
    return GpuAsk(count=count) if count else None
