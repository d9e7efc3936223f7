"""The machines of the benchmark: 8 GPUs a node, in racks, blocks and zones, of several models."""

from collections.abc import Iterator, Mapping

from bench._shapes import A100_40, A100_80, CORE, GIB, H100_80, H200_141
from muster.model.cluster import (
    Abilities,
    AmountReserved,
    Cluster,
    Node,
    NodesReserved,
    NodeState,
    Pool,
    Reservation,
    Taint,
)
from muster.model.gpu import WHOLE_GPU_MILLI, Device, MigInstance
from muster.model.value import (
    DAY,
    HOUR,
    ClusterName,
    DeviceId,
    Duration,
    GpuModel,
    Instant,
    NodeId,
    PoolName,
    QueuePath,
    Value,
)

GPUS_PER_NODE = 8
NODES_PER_RACK = 16
RACKS_PER_BLOCK = 8
BLOCKS_PER_ZONE = 20
LEVELS = ("zone", "block", "rack")
CLUSTER = Cluster(name=ClusterName("iron"), abilities=Abilities(resize=True))

Layout = tuple[MigInstance, ...]


class Kind(Value):
    """What the nodes of one pool are; of `per_cent` of all racks.

    One node in `mig_every` is in MIG mode. The GPUs of such a node are cut in turn by `layouts`.
    """

    pool: PoolName
    model: GpuModel
    per_cent: int
    cores: int
    memory_gib: int
    gpu_memory_mib: int
    gpu_hour_micros: int
    spot: bool = False
    mig_every: int = 0
    layouts: tuple[Layout, ...] = ()


def _layouts(one: str, two: str, three: str, four: str) -> tuple[Layout, ...]:
    """Ways to cut a GPU, by its profiles of one to four sevenths; the last is not cut yet."""
    cuts: tuple[tuple[tuple[str, int], ...], ...] = (
        tuple((one, start) for start in range(7)),
        ((two, 0), (two, 2), (three, 4)),
        ((three, 0), (three, 4)),
        ((four, 0), (two, 4), (one, 6)),
        (),
    )
    return tuple(
        tuple(MigInstance(profile=profile, start=start) for profile, start in cut) for cut in cuts
    )


KINDS = (
    Kind(
        pool=PoolName("a100-40"),
        model=A100_40,
        per_cent=15,
        cores=128,
        memory_gib=1_024,
        gpu_memory_mib=40_960,
        gpu_hour_micros=1_100_000,
        mig_every=4,
        layouts=_layouts("1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb"),
    ),
    Kind(
        pool=PoolName("a100-80"),
        model=A100_80,
        per_cent=25,
        cores=128,
        memory_gib=1_024,
        gpu_memory_mib=81_920,
        gpu_hour_micros=1_500_000,
    ),
    Kind(
        pool=PoolName("h100"),
        model=H100_80,
        per_cent=35,
        cores=192,
        memory_gib=2_048,
        gpu_memory_mib=81_559,
        gpu_hour_micros=2_300_000,
        mig_every=16,
        layouts=_layouts("1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb"),
    ),
    Kind(
        pool=PoolName("h200"),
        model=H200_141,
        per_cent=15,
        cores=192,
        memory_gib=2_048,
        gpu_memory_mib=143_771,
        gpu_hour_micros=3_400_000,
    ),
    Kind(
        pool=PoolName("spot"),
        model=A100_80,
        per_cent=10,
        cores=128,
        memory_gib=1_024,
        gpu_memory_mib=81_920,
        gpu_hour_micros=600_000,
        spot=True,
    ),
)


def pools() -> dict[PoolName, Pool]:
    return {
        kind.pool: Pool(
            name=kind.pool,
            cluster=CLUSTER.name,
            levels=LEVELS,
            default_time=Duration(12 * HOUR),
            max_time=Duration(7 * DAY),
            spot=kind.spot,
            gpu_hour_micros=kind.gpu_hour_micros,
        )
        for kind in KINDS
    }


def nodes(count: int) -> dict[NodeId, Node]:
    """Rack by rack, each of one kind; a few nodes and GPUs are out of order, as ever."""
    racks = -(-count // NODES_PER_RACK)
    found: dict[NodeId, Node] = {}
    for rack in range(racks):
        kind, labels = _kind(rack, racks), _labels(rack)
        first = rack * NODES_PER_RACK
        for index in range(first, min(first + NODES_PER_RACK, count)):
            node = _node(index, kind, labels)
            found[node.id] = node
    return found


def _kind(rack: int, racks: int) -> Kind:
    """Kinds follow each other through the hall, so that most blocks are of one kind."""
    place = 100 * (2 * rack + 1) // (2 * racks)
    for kind in KINDS:
        if place < kind.per_cent:
            return kind
        place -= kind.per_cent
    return KINDS[-1]


def _labels(rack: int) -> Mapping[str, str]:
    return {
        "net": "ib" if rack % 3 else "roce",
        "disk": "nvme" if rack % 2 else "sata",
    }


def _node(index: int, kind: Kind, labels: Mapping[str, str]) -> Node:
    name = f"n{index:05d}"
    return Node(
        id=NodeId(name),
        cluster=CLUSTER.name,
        pool=kind.pool,
        cpu_milli=kind.cores * CORE,
        memory_mib=kind.memory_gib * GIB,
        devices=tuple(_devices(index, kind)),
        state=_state(index),
        where=_where(index),
        labels=labels,
        taints=(Taint(key="lab"),) if index % 50 == 49 else (),
    )


def _devices(index: int, kind: Kind) -> Iterator[Device]:
    is_mig = bool(kind.mig_every) and index % kind.mig_every == 0
    for gpu in range(GPUS_PER_NODE):
        serial = index * GPUS_PER_NODE + gpu
        yield Device(
            id=DeviceId(f"GPU-{serial:06d}"),
            index=gpu,
            model=kind.model,
            memory_mib=kind.gpu_memory_mib,
            healthy=serial % 1_999 != 7,
            mig=kind.layouts[serial % len(kind.layouts)] if is_mig else None,
        )


def _state(index: int) -> NodeState:
    if index % 997 == 996:
        return NodeState.DOWN
    return NodeState.DRAINING if index % 401 == 400 else NodeState.UP


def _where(index: int) -> tuple[str, str, str]:
    rack = index // NODES_PER_RACK
    block = rack // RACKS_PER_BLOCK
    return (f"zone{block // BLOCKS_PER_ZONE}", f"block{block:02d}", f"rack{rack:03d}")


def reservations(
    found: Mapping[NodeId, Node], now: Instant, queue: QueuePath
) -> tuple[Reservation, ...]:
    """A rack goes down for maintenance tonight, and a queue was promised a part of a pool."""
    at_fault = next(node.where for node in found.values() if node.pool == "h100")
    promised = sum(node.pool == "a100-80" for node in found.values()) // 20
    return (
        NodesReserved(
            name="new-cables",
            nodes=tuple(node.id for node in found.values() if node.where == at_fault),
            begins_at=Instant(now + 12 * HOUR),
            ends_at=Instant(now + 16 * HOUR),
        ),
        AmountReserved(
            name="launch-day",
            pool=PoolName("a100-80"),
            gpu_milli=promised * GPUS_PER_NODE * WHOLE_GPU_MILLI,
            for_queue=queue,
            begins_at=Instant(now + 6 * HOUR),
            ends_at=Instant(now + 12 * HOUR),
        ),
    )
