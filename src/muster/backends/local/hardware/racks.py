"""Files that describe pretend nodes: a YAML list of racks, each of so many equal nodes."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from muster.backends.local.hardware.inventory import POOL
from muster.backends.local.hardware.pretend import Pretend, parse_pretend
from muster.model.errors import MusterError
from muster.model.value import PoolName, Value, replace


class BadNodesError(MusterError):
    """A description of nodes cannot be read; the message says what is wanted."""


class Rack(Value):
    """So many equal nodes, as a file of nodes describes them.

    gpus: `8xA100-80GB`, several kinds with `+`, or nothing.
    name: what the names of its nodes begin with; names: all of them, in place of `nodes`.
    where: the place of all of them, one name for each of the pool's levels.
    """

    nodes: int = 1
    gpus: str = "0"
    cpus: int | None = None
    memory_gib: int | None = None
    pool: str = ""
    name: str = ""
    names: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}

    @property
    def count(self) -> int:
        return len(self.names) or self.nodes


def racks_from(text: str) -> tuple[Rack, ...]:
    """The racks that a YAML or JSON list describes: `- {nodes: 64, gpus: 8xA100-80GB, ...}`."""
    import yaml  # noqa: PLC0415  slow to import, and only few files are read

    try:
        plain = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  safe both
        racks = msgspec.convert(plain, tuple[Rack, ...])
    except (yaml.YAMLError, msgspec.ValidationError) as wrong:
        example = "- {nodes: 64, gpus: 8xA100-80GB, pool: a100}"
        raise BadNodesError(
            f"nodes cannot be read ({wrong}); write a list like {example}"
        ) from wrong
    _demand_sense(racks)
    return racks


def named(racks: Iterable[Rack], usual: str) -> Iterator[tuple[Rack, tuple[str, ...]]]:
    """Each rack with the names of its nodes; numbers go on within the same beginning."""
    numbers: dict[str, int] = {}
    for rack in racks:
        first = rack.name or (f"{rack.pool}-" if rack.pool else usual)
        last = numbers.get(first, 0)
        if not rack.names:
            numbers[first] = last + rack.nodes
        yield rack, rack.names or tuple(f"{first}{last + n}" for n in range(1, rack.nodes + 1))


def hardware_of(rack: Rack) -> Pretend:
    """What each of its nodes has."""
    return parse_pretend(rack.gpus, nodes=rack.count, cpus=rack.cpus, memory_gib=rack.memory_gib)


def pretend_racks(racks: Iterable[Rack]) -> tuple[Pretend, ...]:
    """The racks as this machine presents them."""
    return tuple(
        replace(
            hardware_of(rack),
            names=names,
            pool=PoolName(rack.pool) if rack.pool else POOL,
            where=rack.where,
            labels=rack.labels,
        )
        for rack, names in named(racks, "pretend")
    )


def _demand_sense(racks: tuple[Rack, ...]) -> None:
    if not racks:
        raise BadNodesError("the list of nodes is empty; write at least `- {nodes: 1}`")
    known: set[str] = set()
    for rack, names in named(racks, "n"):
        hardware_of(rack)
        if twice := known.intersection(names) or {each for each in names if names.count(each) > 1}:
            raise BadNodesError(f"two nodes are called {min(twice)}; give each a name of its own")
        known.update(names)
