"""Files that describe pretend nodes: a YAML list of racks, each of so many equal nodes."""

from collections.abc import Iterable

import msgspec

from muster.backends.local.hardware.inventory import POOL
from muster.backends.local.hardware.pretend import Pretend, parse_pretend
from muster.model.errors import MusterError
from muster.model.rack import Rack, named
from muster.model.value import PoolName, replace


class BadNodesError(MusterError):
    """A description of nodes cannot be read; the message says what is wanted."""


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
    if not racks:
        raise BadNodesError("the list of nodes is empty; write at least `- {nodes: 1}`")
    known: set[str] = set()
    for rack, names in named(racks, "n"):
        hardware_of(rack)
        if twice := (
            known.intersection(names) or {each for each in names if names.count(each) > 1}
        ):
            raise BadNodesError(f"two nodes are called {min(twice)}; give each a name of its own")
        known.update(names)
    return racks


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
