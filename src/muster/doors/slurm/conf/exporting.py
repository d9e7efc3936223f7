"""A site and its nodes as Slurm's files. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from muster.doors.slurm.conf.found import Note
from muster.doors.slurm.lists.jobs import by_number
from muster.doors.slurm.managing.flatfile import account_name, dumped
from muster.doors.slurm.managing.limits import is_bounded
from muster.doors.slurm.words import sizes, times
from muster.doors.slurm.words.gres import type_of
from muster.doors.slurm.words.hostlist import compressed
from muster.model.cluster import Node, Pool
from muster.model.policy import Packing, Policy
from muster.model.queue import Ceiling, JobClass, PreemptMode, Queue
from muster.model.site import Site
from muster.model.value import SECOND, Duration, GpuModel, QueuePath, Value

HEAD = "# Written by muster export slurm.\n"
OWN_LABELS = ("muster/", "gpu.")

MODES = {
    PreemptMode.REQUEUE: "REQUEUE",
    PreemptMode.SUSPEND: "SUSPEND,GANG",
    PreemptMode.CANCEL: "CANCEL",
    # Slurm has no mode that waits for a checkpoint; a job that catches the signal can write one.
    PreemptMode.CHECKPOINT: "REQUEUE",
}


_STATES = {
    (True, True): "UP",
    (True, False): "DOWN",
    (False, True): "DRAIN",
    (False, False): "INACTIVE",
}


class Exported(Value):
    """Files by name, and what Slurm cannot express."""

    files: Mapping[str, str]
    notes: tuple[Note, ...]


def exported(site: Site, nodes: Iterable[Node], cluster: str) -> Exported:
    """Everything that Slurm has a word for."""
    notes: list[Note] = []
    known = sorted(nodes, key=lambda node: by_number(node.id))
    by_name = {each.id: each for each in known}
    files = {
        "slurm.conf": HEAD + "\n".join(_conf(site, known, cluster, notes)) + "\n",
        "gres.conf": HEAD + "\n".join(_gres(known)) + "\n",
        "associations.cfg": "\n".join([*dumped(site, cluster, by_name), ""]),
        "qos.txt": "\n".join(_qos(site)) + "\n",
        "accounting.sh": _script(site, cluster),
    }
    notes += _unsayable(queue for _, queue in sorted(site.queues.items()))
    if site.policy.order.short:
        notes.append(
            Note(about="policy.order.short", text="Slurm does not learn how long jobs take")
        )
    if any(node.where for node in known):
        files["topology.conf"] = HEAD + "\n".join(_switches(known)) + "\n"
    return Exported(files=files, notes=tuple(notes))


def _conf(site: Site, nodes: list[Node], cluster: str, notes: list[Note]) -> Iterator[str]:
    yield f"ClusterName={cluster}"
    yield "SlurmctldHost=localhost"
    yield "GresTypes=gpu"
    yield "SelectType=select/cons_tres"
    yield "SelectTypeParameters=CR_Core_Memory" + (
        ",CR_LLN" if site.policy.packing is Packing.SPREAD else ""
    )
    yield "SchedulerType=sched/backfill"
    yield "AccountingStorageType=accounting_storage/slurmdbd"
    yield "AccountingStorageEnforce=associations,limits,qos"
    yield "AccountingStorageTRES=gres/gpu"
    if any(node.where for node in nodes):
        yield "TopologyPlugin=topology/tree"
    yield from _policy(site.policy, site.classes.values())
    yield from _nodes(nodes)
    for _, pool in sorted(site.pools.items()):
        yield _partition(pool, nodes, site, notes)


def _policy(policy: Policy, classes: Iterable[JobClass]) -> Iterator[str]:
    order = policy.order
    yield "PriorityType=priority/multifactor"
    yield f"PriorityWeightQOS={max(0, order.job_class)}"
    yield f"PriorityWeightFairshare={max(0, order.fair_share)}"
    yield f"PriorityWeightAge={max(0, order.age)}"
    yield f"PriorityWeightAssoc={max(0, order.queue)}"
    yield f"PriorityWeightJobSize={abs(order.size)}"
    if order.size < 0:
        yield "PriorityFavorSmall=YES"
    yield f"PriorityMaxAge={_span(order.age_full)}"
    yield f"PriorityDecayHalfLife={_span(policy.share.half_life)}"
    if policy.preempt.by_class and any(each.preempts for each in classes):
        yield "PreemptType=preempt/qos"
        yield "PreemptMode=REQUEUE"
        yield f"PreemptExemptTime={_span(policy.preempt.min_run)}"


def _nodes(nodes: list[Node]) -> Iterator[str]:
    models = {device.model for node in nodes for device in node.devices}
    alike: dict[str, list[str]] = {}
    for node in nodes:
        alike.setdefault(_hardware(node, models), []).append(node.id)
    for hardware, names in alike.items():
        yield f"NodeName={compressed(names)} {hardware} State=UNKNOWN"


def _hardware(node: Node, models: Iterable[GpuModel]) -> str:
    parts = [f"CPUs={max(1, node.cpu_milli // 1_000)}", f"RealMemory={node.memory_mib}"]
    counts: dict[str, int] = {}
    for device in node.devices:
        kind = type_of(device.model, models)
        counts[kind] = counts.get(kind, 0) + 1
    if counts:
        parts.append("Gres=" + ",".join(f"gpu:{kind}:{count}" for kind, count in counts.items()))
    features = [
        key if value == "true" else f"{key}={value}"
        for key, value in sorted(node.labels.items())
        if not key.startswith(OWN_LABELS)
    ]
    if features:
        parts.append("Features=" + ",".join(features))
    return " ".join(parts)


def _partition(pool: Pool, nodes: list[Node], site: Site, notes: list[Note]) -> str:
    names = [node.id for node in nodes if node.pool == pool.name]
    parts = [f"PartitionName={pool.name}", f"Nodes={compressed(names)}"]
    parts.append(f"MaxTime={'INFINITE' if pool.max_time is None else _span(pool.max_time)}")
    if pool.default_time is not None:
        parts.append(f"DefaultTime={_span(pool.default_time)}")
    if pool.queues:
        parts.append("AllowAccounts=" + ",".join(_accounts_in(pool.queues, site)))
    if pool.classes:
        parts.append("AllowQos=" + ",".join(pool.classes))
    groups = [*pool.groups]
    if pool.users:
        note = (
            f"Slurm knows no AllowUsers: put {', '.join(pool.users)} into group muster-{pool.name}"
        )
        notes.append(Note(about=f"pool {pool.name}", text=note))
        groups.append(f"muster-{pool.name}")
    if groups:
        parts.append("AllowGroups=" + ",".join(groups))
    if pool.spot or pool.gpu_hour_micros:
        text = "price and spot are not known to Slurm"
        notes.append(Note(about=f"pool {pool.name}", text=text))
    if pool.name == site.default_pool:
        parts.append("Default=YES")
    return " ".join([*parts, f"State={_STATES[pool.accepts, pool.starts]}"])


def _gres(nodes: list[Node]) -> Iterator[str]:
    yield "AutoDetect=off"
    models = {device.model for node in nodes for device in node.devices}
    alike: dict[str, list[str]] = {}
    for node in nodes:
        for model in sorted({device.model for device in node.devices}):
            numbers = [str(device.index) for device in node.devices if device.model == model]
            files = f"File={compressed([f'/dev/nvidia{number}' for number in numbers])}"
            line = f"Name=gpu Type={type_of(model, models)} {files}"
            alike.setdefault(line, []).append(node.id)
    for line, names in alike.items():
        yield f"NodeName={compressed(names)} {line}"


def _switches(nodes: list[Node]) -> Iterator[str]:
    """Switches by their place in the tree, from the lowest up."""
    leaves: dict[tuple[str, ...], list[str]] = {}
    for node in nodes:
        if node.where:
            leaves.setdefault(node.where, []).append(node.id)
    for way, names in leaves.items():
        yield f"SwitchName={_switch(way)} Nodes={compressed(names)}"
    deepest = max(map(len, leaves))
    for depth in range(deepest - 1, 0, -1):
        below: dict[tuple[str, ...], list[str]] = {}
        for way in dict.fromkeys(each[: depth + 1] for each in leaves):
            below.setdefault(way[:depth], []).append(_switch(way))
        for way, names in below.items():
            yield f"SwitchName={_switch(way)} Switches={','.join(names)}"


def _switch(way: Sequence[str]) -> str:
    return "-".join(way)


def _unsayable(queues: Iterable[Queue]) -> Iterator[Note]:
    """What accounts have no words for."""
    for queue in queues:
        about = f"queue {queue.path}"
        if any(line.guaranteed for line in queue.quotas):
            yield Note(about=about, text="guarantees and lending are not known to Slurm")
        if any(is_bounded(line) and line.scope.pool for line in queue.quotas):
            yield Note(about=about, text="a limit in one pool is left out")


def _accounts_in(paths: Iterable[QueuePath], site: Site) -> list[str]:
    """Slurm's lists name every account; ours stand for those below too."""
    wanted = tuple(paths)
    return [
        account_name(site, each)
        for each in sorted(site.queues)
        if any(each == path or each.startswith(f"{path}/") for path in wanted)
    ]


QOS_COLUMNS = (
    "Name Priority GraceTime Preempt PreemptExemptTime PreemptMode MaxWall MaxTRESPU MaxJobsPU "
    "MaxTRESPA MaxJobsPA".split()
)


def _qos(site: Site) -> Iterator[str]:
    yield "|".join(QOS_COLUMNS)
    for _, each in sorted(site.classes.items()):
        yield "|".join(_qos_row(each).values())


def _qos_row(each: JobClass) -> dict[str, str]:
    cells = (
        each.name,
        str(max(0, each.priority)),
        _span(each.grace),
        ",".join(each.preempts),
        _span(each.min_run) if each.min_run else "",
        MODES[each.preempt_mode].partition(",")[0].lower(),
        "" if each.max_time is None else _span(each.max_time),
        _ceiling_text(each.per_user),
        "" if each.per_user.jobs is None else str(each.per_user.jobs),
        _ceiling_text(each.per_queue),
        "" if each.per_queue.jobs is None else str(each.per_queue.jobs),
    )
    return dict(zip(QOS_COLUMNS, cells, strict=True))


def _ceiling_text(ceiling: Ceiling) -> str:
    parts: list[str] = []
    if ceiling.cpu_milli is not None:
        parts.append(f"cpu={ceiling.cpu_milli // 1_000}")
    if ceiling.gpu_milli is not None:
        parts.append(f"gres/gpu={ceiling.gpu_milli // 1_000}")
    if ceiling.memory_mib is not None:
        parts.append(f"mem={sizes.memory_text(ceiling.memory_mib)}")
    return ",".join(parts)


def _script(site: Site, cluster: str) -> str:
    """What slurmdbd gets: classes one by one, then all users from the dump."""
    made = ["#!/bin/sh", "set -e", f"sacctmgr -i add cluster {cluster} || true"]
    for _, each in sorted(site.classes.items(), key=lambda pair: (pair[1].priority, pair[0])):
        row = _qos_row(each)
        given = " ".join(f"{name}={value}" for name, value in list(row.items())[1:] if value)
        made.append(f"sacctmgr -i add qos {each.name} || true")
        made.append(f"sacctmgr -i modify qos {each.name} set {given}")
    made.append('sacctmgr -i load "$(dirname "$0")/associations.cfg"')
    return "\n".join(made) + "\n"


def _span(span: Duration) -> str:
    return times.long_text(Duration(-(-span // SECOND) * SECOND))
