"""Nodes and partitions as Slurm's lists show them: rows of one node or of several alike."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import ceil

from muster.doors.slurm.lists.jobs import by_number
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.words import times
from muster.doors.slurm.words.hostlist import compressed, ranges_text
from muster.doors.slurm.words.sizes import memory_text
from muster.model.cluster import Node, NodeState, Pool
from muster.model.placement import Placement
from muster.model.resources import NOTHING, Resources
from muster.model.value import DeviceId, NodeId

SHORT = {
    "allocated": "alloc",
    "completing": "comp",
    "down": "down",
    "drained": "drain",
    "draining": "drng",
    "idle": "idle",
    "maint": "maint",
    "mixed": "mix",
    "reserved": "resv",
}
RANK = {
    name: place
    for place, name in enumerate(
        "down idle reserved maint allocated mixed drained draining".split()
    )
}
"""The order in which Slurm numbers states; sinfo lists the highest first."""


class NodeRow:
    """One node, and what jobs hold of it."""

    __slots__ = ("listing", "node", "placements", "state", "used")

    def __init__(self, node: Node, listing: Listing, placements: Sequence[Placement]) -> None:
        self.node = node
        self.listing = listing
        self.placements = placements
        self.used: Resources = sum((each.amount for each in placements), NOTHING)
        self.state = _state(node, self.used, has_work=bool(placements))
        if self.state == "idle":
            self.state = listing.kept.get(node.id, self.state)

    @property
    def cpus(self) -> int:
        return self.node.cpu_milli // 1_000

    @property
    def cpus_used(self) -> int:
        return min(self.cpus, ceil(self.used.cpu_milli / 1_000))

    @property
    def takes_work(self) -> bool:
        """Is it counted as idle or allocated, and not as something else?"""
        return self.node.state is NodeState.UP


class NodeGroup:
    """Nodes of one partition that are shown in one row."""

    __slots__ = ("listing", "pool", "rows")

    def __init__(self, pool: Pool, rows: Sequence[NodeRow], listing: Listing) -> None:
        self.pool = pool
        self.rows = rows
        self.listing = listing

    def names(self) -> list[str]:
        return sorted((row.node.id for row in self.rows), key=by_number)


def node_rows(listing: Listing) -> list[NodeRow]:
    """All nodes, in the order of their names and numbers."""
    there: dict[NodeId, list[Placement]] = {}
    for allocation in listing.allocations.values():
        for placed in allocation.placements:
            there.setdefault(placed.node, []).append(placed)
    nodes = sorted(listing.nodes.values(), key=lambda node: by_number(node.id))
    return [NodeRow(node, listing, there.get(node.id, ())) for node in nodes]


def grouped(
    listing: Listing, rows: Iterable[NodeRow], key: Callable[[NodeRow], tuple[str, ...]]
) -> list[NodeGroup]:
    """Rows of nodes that are alike, by partition; partitions without nodes have one of none."""
    found: dict[tuple[str, tuple[str, ...]], list[NodeRow]] = {}
    for row in rows:
        found.setdefault((row.node.pool, key(row)), []).append(row)
    groups = [
        NodeGroup(listing.pools[row[0].node.pool], row, listing)
        for row in found.values()
        if row[0].node.pool in listing.pools
    ]
    empty = sorted(listing.pools.keys() - {group.pool.name for group in groups})
    groups += [NodeGroup(listing.pools[name], (), listing) for name in empty]
    first = listing.default_pool
    return sorted(groups, key=lambda group: _order(group, first))


def partition_text(group: NodeGroup, *, star: bool = True) -> str:
    is_default = star and group.pool.name == group.listing.default_pool
    return group.pool.name + ("*" if is_default else "")


def limit_text(group: NodeGroup, *, default: bool = False) -> str:
    limit = group.pool.default_time if default else group.pool.max_time
    if limit is None:
        return "n/a" if default else "infinite"
    return times.short_text(limit)


def state_text(group: NodeGroup, *, short: bool) -> str:
    if not group.rows:
        return "n/a"
    state = group.rows[0].state
    return SHORT[state] if short else state


def node_list(group: NodeGroup) -> str:
    return compressed(group.names())


def least(group: NodeGroup, of: Callable[[NodeRow], int]) -> str:
    """What all of them have, with a `+` where some have more."""
    found = [of(row) for row in group.rows]
    if not found:
        return "0"
    return f"{min(found)}{'+' if max(found) > min(found) else ''}"


def cpu_states(group: NodeGroup) -> str:
    """CPUs that are allocated, idle, out of service, and all: `5/59/0/64`."""
    used = sum(row.cpus_used for row in group.rows)
    total = sum(row.cpus for row in group.rows)
    other = sum(row.cpus - row.cpus_used for row in group.rows if not row.takes_work)
    return f"{used}/{total - used - other}/{other}/{total}"


def node_states(group: NodeGroup, *, all_four: bool = True) -> str:
    count = Counter(_kind(row) for row in group.rows)
    text = f"{count['allocated']}/{count['idle']}"
    return f"{text}/{count['other']}/{len(group.rows)}" if all_four else text


def gres(row: NodeRow) -> str:
    """`gpu:a100:8`, with several types one after the other."""
    kinds = sorted(gpu_types(row).items())
    return ",".join(f"gpu:{kind}:{many}" for kind, many in kinds) or "(null)"


def gpu_types(row: NodeRow, *, taken: bool = False) -> Counter[str]:
    """How many GPUs of which type it has, or how many of them jobs hold."""
    held = _taken(row) if taken else ()
    return Counter(
        row.listing.gpu_type(device.model)
        for device in row.node.devices
        if not taken or device.id in held
    )


def tres(row: NodeRow) -> str:
    """All that it has: `cpu=64,mem=500G,billing=64,gres/gpu=8,gres/gpu:a100=8`."""
    billing = f"billing={row.cpus}"
    return _tres(row.cpus, row.node.memory_mib, gpu_types(row), billing)


def tres_used(row: NodeRow) -> str:
    """What jobs hold of it; nothing where nothing is held."""
    return _tres(row.cpus_used, row.used.memory_mib, gpu_types(row, taken=True))


def gres_used(row: NodeRow) -> str:
    """`gpu:a100:3(IDX:0-2)`."""
    taken = _taken(row)
    parts: list[str] = []
    for kind in sorted({row.listing.gpu_type(device.model) for device in row.node.devices}):
        here = sorted(
            device.index
            for device in row.node.devices
            if row.listing.gpu_type(device.model) == kind and device.id in taken
        )
        parts.append(f"gpu:{kind}:{len(here)}(IDX:{ranges_text(here) or 'N/A'})")
    return ",".join(parts) or "(null)"


def features(row: NodeRow) -> str:
    """Labels: those without a value by their name alone."""
    found = [
        key if value in {"", "true"} else f"{key}={value}" for key, value in row.node.labels.items()
    ]
    return ",".join(sorted(found)) or "(null)"


def system() -> str:
    """What runs on nodes: this machine says it for all."""
    kernel = os.uname()
    return f"{kernel.sysname} {kernel.release} {kernel.version}"


def _tres(cpus: int, memory_mib: int, gpus: Counter[str], *more: str) -> str:
    if not cpus:
        return ""
    memory = [f"mem={memory_text(memory_mib)}"] if memory_mib else []
    return ",".join([f"cpu={cpus}", *memory, *more, *gpu_tres(gpus)])


def gpu_tres(gpus: Counter[str]) -> list[str]:
    """All of them, and those of each type."""
    kinds = [f"gres/gpu:{kind}={many}" for kind, many in sorted(gpus.items())]
    return [f"gres/gpu={gpus.total()}", *kinds] if kinds else []


def _taken(row: NodeRow) -> set[DeviceId]:
    return {share.device for placed in row.placements for share in placed.devices}


def _state(node: Node, used: Resources, *, has_work: bool) -> str:
    if node.state is NodeState.DOWN:
        return "down"
    if node.state is NodeState.DRAINING:
        return "draining" if has_work else "drained"
    if not has_work:
        return "idle"
    return "allocated" if used.cpu_milli >= node.cpu_milli else "mixed"


def _kind(row: NodeRow) -> str:
    if row.state in {"mixed", "allocated", "draining"}:
        return "allocated"
    return "idle" if row.state == "idle" else "other"


def _order(group: NodeGroup, first: str) -> tuple[bool, str, int, tuple[str, int, str]]:
    rank = RANK[group.rows[0].state] if group.rows else 0
    names = group.names()
    return group.pool.name != first, group.pool.name, -rank, by_number(names[0] if names else "")
