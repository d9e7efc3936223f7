"""What `scontrol` says of nodes and partitions, as nodes of ours. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence

from muster.model.cluster import Node, NodeState
from muster.model.gpu import Device
from muster.model.gpu_products import memory_of, sizes_of
from muster.model.value import (
    ClusterName,
    DeviceId,
    Duration,
    GpuModel,
    NodeId,
    PoolName,
    Value,
)

_PAIR = re.compile(r"(?:^|\s)([A-Za-z][\w/:]*)=")
_GRES = re.compile(r"gpu(?::(?P<type>[^:()]+))?:(?P<count>\d+)")
_DOWN = frozenset({"DOWN", "FAIL", "ERROR", "UNKNOWN", "FUTURE", "INVAL", "POWERED_DOWN"})
_DRAINS = frozenset(
    {"DRAIN", "FAILING", "REBOOT_REQUESTED", "MAINT", "POWERING_DOWN", "INVALID_REG"}
)
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<clock>\d+(?::\d+){0,2})")


class Partition(Value):
    """A partition, which is a pool of ours. max_time: None where it has no limit."""

    name: str
    is_default: bool = False
    max_time: Duration | None = None


class Fleet(Value):
    """Whose nodes they are, and how they are named.

    partitions: as Slurm has them. models: which GPU a type of gres is, where its name does not say.
    only: the partitions whose nodes are ours to use; empty for all.
    """

    cluster: ClusterName
    partitions: tuple[Partition, ...] = ()
    models: Mapping[str, GpuModel] = {}
    only: tuple[str, ...] = ()


def fields(line: str) -> dict[str, str]:
    """`Name=value` pairs of one line of `scontrol -o`; values may hold spaces."""
    found = list(_PAIR.finditer(line))
    ends = [each.start() for each in found[1:]] + [len(line)]
    return {each[1]: line[each.end() : end].strip() for each, end in zip(found, ends, strict=True)}


def partitions(text: str) -> tuple[Partition, ...]:
    """Every partition of `scontrol -o show partition`, the default one first."""
    rows = (fields(line) for line in text.splitlines() if line.startswith("PartitionName="))
    found = [
        Partition(
            name=row["PartitionName"],
            is_default=row.get("Default") == "YES",
            max_time=duration(row.get("MaxTime", "")),
        )
        for row in rows
    ]
    return tuple(sorted(found, key=lambda each: (not each.is_default, each.name)))


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


def nodes(text: str, fleet: Fleet) -> tuple[Node, ...]:
    """Every node of `scontrol -o show node` that is in a partition that we may use."""
    return tuple(_nodes(text, fleet))


def _nodes(text: str, fleet: Fleet) -> Iterator[Node]:
    for line in text.splitlines():
        if not line.startswith("NodeName="):
            continue
        row = fields(line)
        partition = _partition(row.get("Partitions", ""), fleet)
        if partition is not None:
            yield _node(row, partition, fleet)


def _partition(text: str, fleet: Fleet) -> str | None:
    """The one that the node counts as: of several the default one, else the first by name."""
    named = set(text.split(","))
    for each in fleet.partitions:
        if each.name in named and (not fleet.only or each.name in fleet.only):
            return each.name
    return None


def _node(row: Mapping[str, str], partition: str, fleet: Fleet) -> Node:
    name = row["NodeName"]
    state, why = _state(row)
    features = row.get("ActiveFeatures", "(null)")
    labels = {each: "" for each in features.split(",") if each and each != "(null)"}
    return Node(
        id=NodeId(name),
        cluster=fleet.cluster,
        pool=PoolName(partition),
        cpu_milli=1_000 * int(row.get("CPUEfctv") or row.get("CPUTot") or 0),
        memory_mib=int(row.get("RealMemory") or 0),
        devices=_devices(name, row.get("Gres", ""), fleet.models),
        state=state,
        labels=labels,
        reason=why,
    )


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


def _devices(node: str, gres: str, models: Mapping[str, GpuModel]) -> tuple[Device, ...]:
    found: list[Device] = []
    for match in _GRES.finditer(gres):
        model = _model(match["type"] or "gpu", models)
        for _ in range(int(match["count"])):
            index = len(found)
            found.append(
                Device(
                    id=DeviceId(f"{node}/gpu{index}"),
                    index=index,
                    model=model,
                    memory_mib=memory_of(model) or 0,
                )
            )
    return tuple(found)


def _model(kind: str, models: Mapping[str, GpuModel]) -> GpuModel:
    """`a100` is the smallest A100 that there is, unless the administrator says which it is."""
    if kind in models:
        return models[kind]
    name = kind.upper().replace("NVIDIA_", "").replace("TESLA_", "").replace("_", "-")
    known: Sequence[GpuModel] = sizes_of(name) or sizes_of(name.partition("-")[0])
    exact = [each for each in known if each == name]
    return (
        exact[0]
        if exact
        else min(known, key=lambda each: memory_of(each) or 0, default=GpuModel(name))
    )
