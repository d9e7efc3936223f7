"""Slurm's tree of switches as the topology of its nodes. Pure."""

from collections.abc import Mapping

from muster.backends.slurm.fields import fields
from muster.model.hostlist import NoHostlistError, expanded
from muster.model.value import NodeId, Value

_NAMES = ("rack", "block", "zone")
"""What a switch at each height stands for, the lowest first; what is higher has a number."""


class Topology(Value):
    """levels: coarsest first. places: where each node is, a name for each of the levels."""

    levels: tuple[str, ...] = ()
    places: Mapping[NodeId, tuple[str, ...]] = {}


def topology(text: str) -> Topology:
    """Of `scontrol show topology`, if every node is below as many switches as any other."""
    above: dict[NodeId, dict[int, str]] = {}
    for line in text.splitlines():
        if line.startswith("SwitchName="):
            _note(fields(line), above)
    heights = {tuple(sorted(each)) for each in above.values()}
    if len(heights) != 1:
        return Topology()
    height = sorted(heights.pop(), reverse=True)
    levels = tuple(_NAMES[at] if at < len(_NAMES) else f"level{at}" for at in height)
    places = {node: tuple(each[at] for at in height) for node, each in above.items()}
    return Topology(levels=levels, places=places)


def _note(row: Mapping[str, str], above: dict[NodeId, dict[int, str]]) -> None:
    level = row.get("Level", "")
    if not level.isdecimal():
        return
    try:
        named = expanded(row.get("Nodes", ""))
    except NoHostlistError:
        return
    for node in named:
        above.setdefault(NodeId(node), {})[int(level)] = row["SwitchName"]
