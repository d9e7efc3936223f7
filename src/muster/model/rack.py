"""Nodes as a file describes them, before anything makes nodes of them."""

from collections.abc import Iterable, Iterator, Mapping

from muster.model.value import Value


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


def named(racks: Iterable[Rack], usual: str) -> Iterator[tuple[Rack, tuple[str, ...]]]:
    """Each rack with the names of its nodes; numbers go on within the same beginning."""
    numbers: dict[str, int] = {}
    for rack in racks:
        first = rack.name or (f"{rack.pool}-" if rack.pool else usual)
        last = numbers.get(first, 0)
        if not rack.names:
            numbers[first] = last + rack.nodes
        yield rack, rack.names or tuple(f"{first}{last + n}" for n in range(1, rack.nodes + 1))
