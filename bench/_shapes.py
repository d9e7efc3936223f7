"""The 200 shapes of job that the benchmark's people submit, and how often each comes."""

from collections.abc import Iterator, Sequence
from itertools import product

from muster.model.gpu import GpuAsk, Mig, MpsShare, Slice, TimeShare
from muster.model.job import (
    ANYWHERE,
    Ask,
    JobRule,
    LabelRule,
    TaskGroup,
    Together,
    Toleration,
    Where,
)
from muster.model.value import GpuModel, Value

A100_40 = GpuModel("A100-40GB")
A100_80 = GpuModel("A100-80GB")
H100_80 = GpuModel("H100-80GB")
H200_141 = GpuModel("H200-141GB")

CORE = 1_000
GIB = 1_024

Models = tuple[GpuModel, ...]
ANY: Models = ()
BIG: Models = (H100_80, H200_141)


class Shape(Value):
    """What many jobs ask for alike, and how many of 1,000,000 jobs ask for it."""

    family: str
    groups: tuple[TaskGroup, ...]
    per_million: int
    app: str | None = None


def _family(name: str, per_thousand: int, groups: Sequence[TaskGroup]) -> Iterator[Shape]:
    """One job of one group; all shapes of the family are equally common."""
    for group in groups:
        yield Shape(family=name, groups=(group,), per_million=per_thousand * 1_000 // len(groups))


def _task(cores: int, gpus: GpuAsk | None = None, where: Where = ANYWHERE) -> TaskGroup:
    each = Ask(cpu_milli=cores * CORE, memory_mib=cores * 6 * GIB, gpus=gpus)
    return TaskGroup(each=each, where=where)


def _part(part: Slice, models: Models = ANY, min_memory_mib: int = 0) -> GpuAsk:
    return GpuAsk(count=1, slice=part, models=models, min_memory_mib=min_memory_mib)


def _gang(
    tasks: int, gpus: int, models: Models = ANY, together: Together | None = None
) -> TaskGroup:
    each = Ask(
        cpu_milli=gpus * 12 * CORE,
        memory_mib=gpus * 96 * GIB,
        gpus=GpuAsk(count=gpus, models=models),
    )
    return TaskGroup(count=tasks, each=each, together=together)


def _cpu_only() -> list[TaskGroup]:
    return [
        TaskGroup(each=Ask(cpu_milli=cores * CORE, memory_mib=cores * gib * GIB))
        for cores, gib in product((1, 2, 4, 8, 16, 32), (4, 8))
    ]


def _mps_shares() -> list[TaskGroup]:
    parts = product((100, 200, 250, 500), (0, 8 * GIB), (ANY, (A100_40, A100_80), (H100_80,)))
    return [
        _task(2, _part(MpsShare(milli=milli, memory_mib=memory), models))
        for milli, memory, models in parts
    ]


def _time_shares() -> list[TaskGroup]:
    accepted = (ANY, (A100_40,), (A100_80,), (A100_80, H100_80))
    return [
        _task(2, _part(TimeShare(replicas=replicas), models))
        for replicas, models in product((2, 4, 8, 10), accepted)
    ]


def _mig_instances() -> list[TaskGroup]:
    profiles: tuple[tuple[GpuModel, str], ...] = (
        (A100_40, "1g.5gb"),
        (A100_40, "2g.10gb"),
        (A100_40, "3g.20gb"),
        (A100_40, "4g.20gb"),
        (H100_80, "1g.10gb"),
        (H100_80, "1g.20gb"),
        (H100_80, "2g.20gb"),
        (H100_80, "3g.40gb"),
    )
    pinned = [_task(2, _part(Mig(profile=profile), (model,))) for model, profile in profiles]
    return pinned + [_task(4, _part(Mig(profile=profile))) for _, profile in profiles]


def _single_gpus() -> list[TaskGroup]:
    """By model, by GPU memory, and by what the node has beside its GPUs."""
    accepted = (ANY, (A100_40,), (A100_80,), (H100_80,), (H200_141,), BIG)
    fast_disk = Where(require=(LabelRule(key="disk", values=("nvme",)),))
    in_the_lab = Where(
        require=(LabelRule(key="net", values=("ib",)),), tolerate=(Toleration(key="lab"),)
    )
    asks = [(GpuAsk(count=1, models=models), ANYWHERE) for models in accepted]
    asks += [
        (GpuAsk(count=1, min_memory_mib=70_000), ANYWHERE),
        (GpuAsk(count=1), fast_disk),
        (GpuAsk(count=1), in_the_lab),
    ]
    return [_task(cores, ask, where) for (ask, where), cores in product(asks, (4, 8, 12, 16))]


def _several_gpus(count: int) -> list[TaskGroup]:
    accepted = (ANY, (A100_80,), (H100_80,), (H200_141,), BIG)
    return [
        _task(count * cores, GpuAsk(count=count, models=models))
        for models, cores in product(accepted, (8, 14))
    ]


def _whole_nodes() -> list[TaskGroup]:
    accepted = (ANY, (A100_80,), (H100_80,), (H200_141,), BIG)
    infiniband = LabelRule(key="net", values=("ib",))
    wheres = (
        ANYWHERE,
        Where(exclusive=True),
        Where(require=(infiniband,)),
        Where(prefer=(infiniband,)),
    )
    return [
        _task(96, GpuAsk(count=8, models=models), where)
        for models, where in product(accepted, wheres)
    ]


def _node_gangs() -> Iterator[Shape]:
    """2 to 16 whole nodes; twice the nodes, half as many jobs."""
    togethers = (
        None,
        Together(level="rack"),
        Together(level="rack", required=False),
        Together(level="block"),
    )
    for nodes, together, models in product((2, 4, 8, 16), togethers, (ANY, BIG)):
        group = _gang(nodes, 8, models, together)
        yield Shape(family="gang of nodes", groups=(group,), per_million=1_000 // nodes)


def _elastic_gangs() -> list[TaskGroup]:
    togethers = (None, Together(level="block", required=False))
    return [
        TaskGroup(count=tasks, min_count=tasks // 2, each=_gang(1, 8).each, together=together)
        for tasks, together in product((4, 8, 16), togethers)
    ]


def _small_gangs() -> list[TaskGroup]:
    togethers = (None, Together(level="rack", required=False))
    return [_gang(tasks, 1, ANY, together) for tasks, together in product((4, 8, 16), togethers)]


def _servers_and_workers() -> Iterator[Shape]:
    """Two groups that start together: parameter servers on CPUs, workers on GPUs."""
    servers = Ask(cpu_milli=8 * CORE, memory_mib=32 * GIB)
    accepted = (ANY, (A100_40,), (A100_80,), (H100_80,))
    for workers, models in product((2, 4), accepted):
        groups = (
            TaskGroup(name="server", count=workers // 2, each=servers),
            TaskGroup(name="worker", count=workers, each=_gang(1, 1, models).each),
        )
        yield Shape(family="servers and workers", groups=groups, per_million=625)


def _services() -> Iterator[Shape]:
    """Two replicas on different nodes, and not beside other jobs of the same service."""
    for app in ("search", "chat", "vision", "speech"):
        where = Where(apart=(JobRule(key="app", value=app),), max_per_node=1)
        group = TaskGroup(count=2, each=_gang(1, 1).each, where=where)
        yield Shape(family="service", groups=(group,), per_million=1_250, app=app)


SHAPES: tuple[Shape, ...] = (
    *_family("CPU only", 102, _cpu_only()),
    *_family("MPS share", 180, _mps_shares()),
    *_family("time share", 80, _time_shares()),
    *_family("MIG instance", 100, _mig_instances()),
    *_family("1 GPU", 360, _single_gpus()),
    *_family("2 GPUs", 80, _several_gpus(2)),
    *_family("4 GPUs", 40, _several_gpus(4)),
    *_family("8 GPUs", 30, _whole_nodes()),
    *_family("gang of GPUs", 8, _small_gangs()),
    *_family("elastic gang", 2, _elastic_gangs()),
    *_node_gangs(),
    *_servers_and_workers(),
    *_services(),
)
