"""What `scontrol` says of nodes and partitions, as nodes of ours. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping

from muster.backends.slurm.fields import fields
from muster.backends.slurm.gres import Gres, devices, gres_in
from muster.model.cluster import Node, NodeState
from muster.model.value import (
    ClusterName,
    Duration,
    GpuModel,
    NodeId,
    PoolName,
    Value,
)

_DOWN = frozenset({"DOWN", "FAIL", "ERROR", "UNKNOWN", "FUTURE", "INVAL", "POWERED_DOWN"})
_DRAINS = frozenset(
    {"DRAIN", "FAILING", "REBOOT_REQUESTED", "MAINT", "POWERING_DOWN", "INVALID_REG"}
)
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<clock>\d+(?::\d+){0,2})")


class Partition(Value):
    """A partition, which is a pool of ours. max_time: None where it has no limit.

    state: only in one that is UP are jobs started.
    """

    name: str
    state: str = "UP"
    is_default: bool = False
    max_time: Duration | None = None


class SlurmNode(Value):
    """A node as the planner sees it. name, gres: what Slurm calls it, and what it has."""

    node: Node
    name: NodeId
    gres: tuple[Gres, ...] = ()


class Fleet(Value):
    """Whose nodes they are, and how they are named.

    partitions: as Slurm has them. models: which GPU a type of gres is, where its name does not say.
    only: the partitions whose nodes are ours to use; empty for all. places: where in the topology.
    prefix: what our names of nodes and pools begin with, before Slurm's own.
    """

    cluster: ClusterName
    partitions: tuple[Partition, ...] = ()
    models: Mapping[str, GpuModel] = {}
    only: tuple[str, ...] = ()
    places: Mapping[NodeId, tuple[str, ...]] = {}
    prefix: str = ""


def partitions(text: str) -> tuple[Partition, ...]:
    """Every partition of `scontrol -o show partition`, the default one first."""
    rows = (fields(line) for line in text.splitlines() if line.startswith("PartitionName="))
    found = [
        Partition(
            name=row["PartitionName"],
            state=row.get("State", "UP"),
            is_default=row.get("Default") == "YES",
            max_time=duration(row.get("MaxTime", "")),
        )
        for row in rows
    ]
    return in_order(found)


def duration(text: str) -> Duration | None:
    """`1-00:00:00`, `30:00` or `60` (minutes) as Slurm writes them; None for UNLIMITED."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    parts = [int(each) for each in match["clock"].split(":")]
    days = int(match["days"] or 0)
    if len(parts) == 1:
        seconds = 3_600 * parts[0] if match["days"] else 60 * parts[0]
    elif len(parts) == 2:
        high, low = parts
        seconds = 3_600 * high + 60 * low if match["days"] else 60 * high + low
    else:
        seconds = 3_600 * parts[0] + 60 * parts[1] + parts[2]
    return Duration(1_000 * (86_400 * days + seconds))


def nodes(text: str, fleet: Fleet) -> tuple[SlurmNode, ...]:
    """Every node of `scontrol -o show node` that is in a partition that we may use."""
    rows = (fields(line) for line in text.splitlines() if line.startswith("NodeName="))
    return nodes_of(rows, fleet)


def nodes_of(rows: Iterable[Mapping[str, str]], fleet: Fleet) -> tuple[SlurmNode, ...]:
    """The same of rows, by the names of `scontrol show node`."""
    return tuple(_nodes(rows, fleet))


def in_order(found: Iterable[Partition]) -> tuple[Partition, ...]:
    """The default one first, the others by name."""
    return tuple(sorted(found, key=lambda each: (not each.is_default, each.name)))


def _nodes(rows: Iterable[Mapping[str, str]], fleet: Fleet) -> Iterator[SlurmNode]:
    for row in rows:
        partition = _partition(row.get("Partitions", ""), fleet)
        if partition is not None:
            yield _node(row, partition, fleet)


def _partition(text: str, fleet: Fleet) -> Partition | None:
    """The one that the node counts as: of several the default one, else the first by name."""
    named = set(text.split(","))
    for each in fleet.partitions:
        if each.name in named and (not fleet.only or each.name in fleet.only):
            return each
    return None


def _node(row: Mapping[str, str], partition: Partition, fleet: Fleet) -> SlurmNode:
    name = NodeId(row["NodeName"])
    state, why = _state(row)
    if state is NodeState.UP and partition.state != "UP":
        state, why = NodeState.DRAINING, f"partition {partition.name} is {partition.state}"
    features = row.get("ActiveFeatures", "(null)")
    labels = {each: "" for each in features.split(",") if each and each != "(null)"}
    gres = gres_in(row.get("Gres", ""))
    node = Node(
        id=NodeId(fleet.prefix + name),
        cluster=fleet.cluster,
        pool=PoolName(fleet.prefix + partition.name),
        cpu_milli=1_000 * _whole(row.get("CPUEfctv") or row.get("CPUTot")),
        memory_mib=_whole(row.get("RealMemory")),
        devices=devices(fleet.prefix + name, gres, fleet.models),
        state=state,
        labels=labels,
        reason=why,
        where=fleet.places.get(name, ()),
    )
    return SlurmNode(node=node, name=name, gres=gres)


def _whole(text: str | None) -> int:
    """A number that is none counts as nothing: no work goes there."""
    return int(text) if text is not None and text.isdecimal() else 0


def _state(row: Mapping[str, str]) -> tuple[NodeState, str]:
    """`IDLE+DRAIN`, `DOWN*`: a star says that the node does not answer."""
    text = row.get("State", "UNKNOWN")
    flags = {each.rstrip("*~#!%$@^-") for each in text.split("+")}
    reason = re.sub(r"\s*\[[^\]]*\]$", "", row.get("Reason", ""))
    if text.endswith("*") or "*" in text or flags & (_DOWN | {"NOT_RESPONDING"}):
        return NodeState.DOWN, reason or f"Slurm says {text}"
    if any(flag in _DRAINS or flag.startswith("DRAIN") for flag in flags):
        return NodeState.DRAINING, reason or f"Slurm says {text}"
    return NodeState.UP, ""
