"""Free GPUs that a job could have, and free GPUs that none of those who wait can use (pure).

It counts by itself and knows nothing of the planner, so that it may find a mistake of it: for who
waits for room alone there shall be none. Whatever is not certain counts as no room: nodes with
taints, jobs with rules about nodes, parts of GPUs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from muster.model.gpu import GpuAsk
from muster.model.job import ANYWHERE, Ask, JobSpec, TaskGroup
from muster.model.value import ClusterName, GpuModel, PoolName, Value

MOST_WANTED = 100
"""So many different requests are tried."""

PoolKey = tuple[ClusterName, PoolName]


class Idle(NamedTuple):
    """What is free on a node: whole GPUs of one model. is_plain: may it serve anybody?"""

    pool: PoolKey
    model: GpuModel
    gpu_memory_mib: int
    gpus: int
    cpu_milli: int
    memory_mib: int
    is_plain: bool = True


class Wanted(Value, cache_hash=True):
    """What a job asks for that waits for room alone. is_plain: would any node do that fits?"""

    each: Ask
    gpus: GpuAsk
    tasks: int
    pools: tuple[PoolName, ...] = ()
    clusters: tuple[ClusterName, ...] = ()
    is_plain: bool = True


class Spare(Value):
    """GPUs of a pool. fillable: a job could have them; stranded: no task that waits fits there."""

    fillable: int = 0
    stranded: int = 0


def wanted_by(spec: JobSpec) -> tuple[Wanted, ...]:
    """One for each group that wants GPUs."""
    alone = len(spec.groups) == 1 and not spec.reservation and not spec.takes
    return tuple(
        Wanted(
            each=group.each,
            gpus=group.each.gpus,
            tasks=group.fewest,
            pools=spec.pools,
            clusters=spec.clusters,
            is_plain=alone and _is_plain(group),
        )
        for group in spec.groups
        if group.each.gpus is not None
    )


def spare(idle: Iterable[Idle], wanted: Iterable[Wanted]) -> Mapping[PoolKey, Spare]:
    """By pool; the first of those who want something take first, as far as they fit whole."""
    nodes = Counter(idle)
    asks = list(Counter(wanted).items())[:MOST_WANTED]
    left = Counter({node: count for node, count in nodes.items() if node.is_plain})
    fillable: Counter[PoolKey] = Counter()
    for ask, jobs in asks:
        for pool in dict.fromkeys(node.pool for node in left) if ask.is_plain else ():
            for _ in range(jobs):
                if not _taken(ask, pool, left):
                    break
                fillable[pool] += ask.tasks * ask.gpus.count
    stranded: Counter[PoolKey] = Counter()
    for node, count in nodes.items():
        interested = [ask for ask, _ in asks if _may_use(ask, node.pool)]
        if interested and not any(_fits(ask, node) for ask in interested):
            stranded[node.pool] += count * node.gpus
    return {
        pool: Spare(fillable=fillable[pool], stranded=stranded[pool])
        for pool in dict.fromkeys(node.pool for node in nodes)
    }


def _taken(ask: Wanted, pool: PoolKey, left: Counter[Idle]) -> bool:
    """Take room for all tasks of one job from what is left of a pool, if there is."""
    trial, missing = Counter[Idle](), ask.tasks
    model: GpuModel | None = None
    for node in [node for node, count in left.items() if count and node.pool == pool]:
        if not _may_use(ask, pool) or not _fits(ask, node) or model not in {None, node.model}:
            continue
        # All tasks of a group are on one model.
        model = node.model
        for _ in range(left[node]):
            room = min(missing, _times(ask, node))
            trial[node] -= 1
            trial[_without(ask, node, room)] += 1
            missing -= room
            if not missing:
                left.update(trial)
                return True
    return False


def _times(ask: Wanted, node: Idle) -> int:
    amounts = [(node.gpus, ask.gpus.count), (node.cpu_milli, ask.each.cpu_milli)]
    amounts.append((node.memory_mib, ask.each.memory_mib))
    return min(has // needs for has, needs in amounts if needs)


def _without(ask: Wanted, node: Idle, times: int) -> Idle:
    return node._replace(
        gpus=node.gpus - times * ask.gpus.count,
        cpu_milli=node.cpu_milli - times * ask.each.cpu_milli,
        memory_mib=node.memory_mib - times * ask.each.memory_mib,
    )


def _fits(ask: Wanted, node: Idle) -> bool:
    """Does a task fit? Part of a GPU always does where one is free."""
    if ask.gpus.models and node.model not in ask.gpus.models:
        return False
    if node.gpu_memory_mib < ask.gpus.min_memory_mib:
        return False
    return ask.gpus.slice is not None or _times(ask, node) > 0


def _may_use(ask: Wanted, pool: PoolKey) -> bool:
    cluster, name = pool
    in_pool = not ask.pools or name in ask.pools
    return in_pool and (not ask.clusters or cluster in ask.clusters)


def _is_plain(group: TaskGroup) -> bool:
    ask = group.each.gpus
    is_free = group.together is None and group.where == ANYWHERE
    return is_free and ask is not None and ask.slice is None and ask.count > 0
