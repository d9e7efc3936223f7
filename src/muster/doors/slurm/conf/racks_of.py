"""Nodes, their GPUs and their places, as racks of pretend nodes. Pure.

Real nodes tell what they have themselves; these are to rehearse with, and to try things out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from math import ceil

from muster.doors.slurm.conf.found import BadSlurmConfError, Notes
from muster.doors.slurm.conf.lines import ConfLine, defaults_applied
from muster.doors.slurm.conf.policy_of import whole
from muster.doors.slurm.words.hostlist import expanded
from muster.model.gpu_products import sizes_of
from muster.model.rack import Rack
from muster.model.value import GpuModel, PoolName, Value, replace

UNKNOWN = GpuModel("GPU-40GB")
"""Stands for GPUs whose model no file tells."""

MIG_SLICES = 7
MIB_PER_GIB = 1_024

_PROFILE = re.compile(r"(?:(?:nvidia_)?([a-z0-9]+)_)?([1-7])g\.[0-9]+gb.*", re.IGNORECASE)
_SIZED = re.compile(r"(?:nvidia[_-])?(.+?)[_-](?:\w+[_-])?([0-9]+)gb?", re.IGNORECASE)


class ConfNode(Value):
    """One node, as far as the files tell of it."""

    name: str
    cpus: int
    memory_mib: int
    gres: tuple[str, ...]
    features: tuple[str, ...]


def machines_of(lines: Iterable[ConfLine]) -> dict[str, ConfNode]:
    """Every node of slurm.conf, by name."""
    found: dict[str, ConfNode] = {}
    for line in defaults_applied(list(lines), "nodename"):
        fields = line.fields
        for name in expanded(fields["nodename"]):
            found[name] = ConfNode(
                name=name,
                cpus=_cpus(fields),
                memory_mib=whole(fields, "realmemory", 1),
                gres=tuple(filter(None, fields.get("gres", "").split(","))),
                features=tuple(
                    filter(
                        None, re.split(r"[,&]", fields.get("features", fields.get("feature", "")))
                    )
                ),
            )
    return found


class GpuTypes:
    """What GPU types are called here, by gres.conf and by what the user said."""

    def __init__(
        self, models: Mapping[str, GpuModel], gres: Iterable[ConfLine], notes: Notes
    ) -> None:
        self._models = {name.lower(): model for name, model in models.items()}
        self._notes = notes
        self._types: dict[str, str] = {}
        self._guessed: set[str] = set()
        for line in gres:
            self._learn(line)

    def text(self, machine: ConfNode) -> str:
        """`8xA100-40GB+2xT4-16GB`, or `0`."""
        counts: dict[GpuModel, int] = {}
        for word in machine.gres:
            kind, *parts = word.split("(")[0].split(":")
            if kind.lower() != "gpu":
                continue
            model, count = self._gpus(machine.name, parts)
            counts[model] = counts.get(model, 0) + count
        return "+".join(f"{count}x{model}" for model, count in counts.items() if count) or "0"

    def _gpus(self, node: str, parts: list[str]) -> tuple[GpuModel, int]:
        count = int(parts[-1]) if parts and parts[-1].isdecimal() else 1
        named = [part for part in parts if not part.isdecimal()]
        kind = named[0] if named else self._types.get(node, self._types.get("", ""))
        if found := _PROFILE.fullmatch(kind):
            self._note(kind, "GPUs are cut as jobs ask for slices; whole GPUs stand for them")
            return self._model(found[1] or "a100"), ceil(count * int(found[2]) / MIG_SLICES)
        return self._model(kind), count

    def _model(self, kind: str) -> GpuModel:
        if (known := self._models.get(kind.lower())) is not None:
            return known
        if sized := _SIZED.fullmatch(kind):
            return GpuModel(f"{sized[1].upper()}-{sized[2]}GB")
        sizes = sizes_of(kind.upper())
        model = sizes[0] if sizes else UNKNOWN
        if len(sizes) != 1:
            self._note(kind, f"taken as {model}; if it is another, say --gpu {kind or 'gpu'}=MODEL")
        return model

    def _note(self, kind: str, text: str) -> None:
        if kind not in self._guessed:
            self._guessed.add(kind)
            self._notes(f"Gres=gpu:{kind}" if kind else "Gres=gpu", text)

    def _learn(self, line: ConfLine) -> None:
        fields = line.fields
        if fields.get("name", "gpu").lower() not in {"gpu", "mps", "shard"}:
            self._notes(f"gres.conf Name={fields['name']}", "only GPUs are given out here")
            return
        if "uuid" in fields:
            self._notes(f"gres.conf UUID={fields['uuid']}", "GPUs are found by the driver's UUIDs")
        kind = fields.get("type", "")
        for name in expanded(fields["nodename"]) if "nodename" in fields else ("",):
            if kind:
                self._types[name] = kind


class Places(Value):
    """The levels of the network, coarsest first, and where each node is."""

    levels: tuple[str, ...] = ()
    where: Mapping[str, tuple[str, ...]] = {}


def places_of(lines: Iterable[ConfLine], notes: Notes) -> Places:
    """Switches of topology.conf; where their tree is uneven, only the lowest ones count."""
    above: dict[str, str] = {}
    leaves: dict[str, tuple[str, ...]] = {}
    for line in lines:
        fields = line.fields
        if "switchname" not in fields:
            continue
        for switch in expanded(fields.get("switches", "")):
            above[switch] = fields["switchname"]
        if "nodes" in fields:
            leaves[fields["switchname"]] = expanded(fields["nodes"])
    ways = {leaf: _way(leaf, above) for leaf in leaves}
    if len({len(way) for way in ways.values()}) > 1:
        notes("topology.conf", "the tree of switches is uneven; only the lowest ones are kept")
        ways = {leaf: (leaf,) for leaf in leaves}
    depth = max((len(way) for way in ways.values()), default=0)
    return Places(
        levels=_levels(depth),
        where={node: ways[leaf] for leaf, nodes in leaves.items() for node in nodes},
    )


def racks_of(
    machines: Mapping[str, ConfNode],
    pool_of: Mapping[str, PoolName],
    hardware: GpuTypes,
    places: Places,
) -> Iterator[Rack]:
    """Nodes that are alike make one rack."""
    alike: dict[tuple[object, ...], list[str]] = {}
    made: dict[tuple[object, ...], Rack] = {}
    for name, machine in machines.items():
        rack = Rack(
            gpus=hardware.text(machine),
            cpus=machine.cpus,
            memory_gib=max(1, machine.memory_mib // MIB_PER_GIB),
            pool=pool_of.get(name, ""),
            where=places.where.get(name, ()),
            labels=dict(map(_label, machine.features)),
        )
        key = (rack.gpus, rack.cpus, rack.memory_gib, rack.pool, rack.where, machine.features)
        made.setdefault(key, rack)
        alike.setdefault(key, []).append(name)
    for key, names in alike.items():
        yield replace(made[key], names=tuple(names))


def _label(feature: str) -> tuple[str, str]:
    key, _, value = feature.partition("=")
    return key, value or "true"


def _cpus(fields: Mapping[str, str]) -> int:
    if "cpus" in fields or "procs" in fields:
        return whole(fields, "cpus" if "cpus" in fields else "procs", 1)
    sockets = whole(fields, "boards", 1) * whole(
        fields, "socketsperboard", whole(fields, "sockets", 1)
    )
    return sockets * whole(fields, "corespersocket", 1) * whole(fields, "threadspercore", 1)


def _way(leaf: str, above: Mapping[str, str]) -> tuple[str, ...]:
    way = [leaf]
    while way[0] in above:
        if above[way[0]] in way:
            raise BadSlurmConfError(f"topology.conf: switch {leaf} is above itself")
        way.insert(0, above[way[0]])
    return tuple(way)


def _levels(depth: int) -> tuple[str, ...]:
    named = {0: (), 1: ("leaf",), 2: ("spine", "leaf"), 3: ("core", "spine", "leaf")}
    return named.get(depth) or tuple(f"level{number}" for number in range(1, depth + 1))
