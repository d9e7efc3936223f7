"""The machines of a simulation: made up, from a file, or as an installation has them now."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from muster.api.site import NodeDocument
from muster.backends.local.hardware.pretend import Pretend, PretendGpus
from muster.backends.local.hardware.racks import BadNodesError, hardware_of, racks_from
from muster.model.cluster import Node, Pool
from muster.model.gpu import Device
from muster.model.rack import Rack, named
from muster.model.site import Site
from muster.model.value import (
    ClusterName,
    DeviceId,
    GpuModel,
    NodeId,
    PoolName,
    replace,
)
from muster.simulator.traces import openb
from muster.simulator.traces.files import lines, rows
from muster.simulator.traces.traced import TracedNode

CPUS_PER_GPU = 8
GIB_PER_GPU = 64
LEAST_CPUS = 8
LEAST_GIB = 32
TRACED_GPU_MIB = 32_768


def nodes_in(path: Path, site: Site) -> tuple[Node, ...]:
    """The nodes of a file: a YAML list of racks, or a table like openb's."""
    if {".csv", ".gz", ".zip"} & set(path.suffixes):
        return tuple(traced(openb.nodes(rows(lines(path))), pool_named("", site)))
    return tuple(made(racks_from(path.read_text(encoding="utf-8")), site))


def made(racks: Iterable[Rack], site: Site) -> Iterator[Node]:
    """The nodes, numbered on within each name."""
    for rack, names in named(racks, "n"):
        pretend = hardware_of(rack)
        pool = pool_named(rack.pool, site)
        for name in names:
            yield _node(name, pretend, pool, rack)


def traced(nodes: Iterable[TracedNode], pool: Pool) -> Iterator[Node]:
    """The nodes of a trace. Traces do not say how much memory a GPU has: it is enough."""
    for node in nodes:
        gpus = PretendGpus(count=node.gpus, model=node.model, memory_mib=TRACED_GPU_MIB)
        yield Node(
            id=NodeId(node.name),
            cluster=pool.cluster,
            pool=pool.name,
            cpu_milli=node.cpu_milli,
            memory_mib=node.memory_mib,
            devices=tuple(_devices(node.name, (gpus,) if node.gpus else ())),
            pretend=True,
        )


def pool_named(name: str, site: Site) -> Pool:
    """The pool; the only one, or the first of the site, if none is named."""
    if name in site.pools:
        return site.pools[PoolName(name)]
    if name:
        known = ", ".join(sorted(site.pools)) or "none"
        raise BadNodesError(f"the site has no pool {name!r}; it has {known}")
    if not site.pools:
        return Pool(name=PoolName("simulated"), cluster=ClusterName("simulated"))
    return site.pools[min(site.pools)]


def as_seen(documents: Iterable[NodeDocument]) -> tuple[Node, ...]:
    """The nodes of an installation, whole and idle."""
    return tuple(
        Node(
            id=NodeId(each.id),
            cluster=ClusterName(each.cluster),
            pool=PoolName(each.pool),
            cpu_milli=round(1_000 * each.cpus),
            memory_mib=each.memory_mib,
            devices=tuple(
                Device(
                    id=DeviceId(device.id),
                    index=device.index,
                    model=GpuModel(device.model),
                    memory_mib=device.memory_mib,
                )
                for device in each.devices
            ),
            labels=each.labels,
            where=each.where,
        )
        for each in documents
    )


def with_pools(site: Site, nodes: Iterable[Node]) -> Site:
    """The site, with the pools of these nodes where it has none of that name."""
    pools = dict(site.pools)
    for node in nodes:
        pools.setdefault(node.pool, Pool(name=node.pool, cluster=node.cluster))
    return replace(site, pools=pools)


def _node(name: str, pretend: Pretend, pool: Pool, rack: Rack) -> Node:
    devices = tuple(_devices(name, pretend.gpus))
    cpus = pretend.cpus or max(LEAST_CPUS, CPUS_PER_GPU * len(devices))
    gib = pretend.memory_gib or max(LEAST_GIB, GIB_PER_GPU * len(devices))
    return Node(
        id=NodeId(name),
        cluster=pool.cluster,
        pool=pool.name,
        cpu_milli=1_000 * cpus,
        memory_mib=1_024 * gib,
        devices=devices,
        where=rack.where,
        labels=rack.labels,
        pretend=True,
    )


def _devices(name: str, kinds: Iterable[PretendGpus]) -> Iterator[Device]:
    models = [kind for kind in kinds for _ in range(kind.count)]
    for index, kind in enumerate(models):
        yield Device(
            id=DeviceId(f"{name}/gpu{index}"),
            index=index,
            model=kind.model,
            memory_mib=kind.memory_mib,
        )
