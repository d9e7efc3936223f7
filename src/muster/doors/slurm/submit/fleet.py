"""The nodes as requests are read against them."""

from collections.abc import Mapping

from muster.model.cluster import Node
from muster.model.value import GpuModel, NodeId, Value


class Machines(Value):
    """The nodes as a request needs to know them."""

    nodes: Mapping[NodeId, Node]
    models: tuple[GpuModel, ...]
    labels: tuple[Mapping[str, str], ...]
    most_cpus: int
    most_gpus: int
    most_memory_mib: int = 0


def machines_of(nodes: Mapping[NodeId, Node]) -> Machines:
    labels = {tuple(sorted(node.labels.items())) for node in nodes.values()}
    return Machines(
        nodes=nodes,
        models=tuple(sorted({each.model for node in nodes.values() for each in node.devices})),
        labels=tuple(dict(each) for each in sorted(labels)),
        most_cpus=max((node.cpu_milli // 1_000 for node in nodes.values()), default=1),
        most_gpus=max((len(node.devices) for node in nodes.values()), default=0),
        most_memory_mib=max((node.memory_mib for node in nodes.values()), default=0),
    )
