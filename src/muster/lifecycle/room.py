"""Rules about size: the request could run one day, on the nodes and in the time there is."""

from collections.abc import Iterable
from itertools import accumulate

from muster.lifecycle.refusal import Refusal
from muster.lifecycle.submission import NodeKind, Submission, options
from muster.model.amounts import most_instances
from muster.model.cluster import Node, Pool
from muster.model.gpu import Device, GpuAsk, Mig, MpsShare, TimeShare
from muster.model.job import Ask, JobSpec, TaskGroup
from muster.model.queue import JobClass
from muster.model.reason import NeverFits, TooLong
from muster.model.value import Duration, GpuModel, replace
from muster.model.words import cores, counted, exact_span, memory, thousandths


def groups_fit_somewhere(asked: Submission) -> Refusal | None:
    """Every group has a kind of node that could, empty and whole, take as many tasks as it needs.

    Nodes that are down and devices that are broken count: they come back.
    """
    for group in asked.spec.groups:
        kinds = options(asked, group)
        if not any(_has_room(kind, group) for kind in kinds):
            at_most = max((sum(_tasks(kind, group)) for kind in kinds), default=0)
            return Refusal(
                reason=NeverFits(group=group.name, wanted=group.fewest, at_most=at_most),
                advice=_advice(group, kinds, at_most, _name(group, asked.spec)),
            )
    return None


def time_limit_is_allowed(asked: Submission) -> Refusal | None:
    limit = asked.spec.time_limit
    allowed = _longest(asked.pools, asked.job_class)
    if limit is None or allowed is None or limit <= allowed:
        return None
    return Refusal(
        reason=TooLong(asked=limit, allowed=allowed),
        advice=f"Jobs of class {asked.spec.job_class} in these pools may run for "
        f"{exact_span(allowed)}; this job asks for {exact_span(limit)}. "
        "Ask for less, or use another class or pool.",
    )


def with_time_limit(asked: Submission) -> JobSpec:
    """The spec with the longest time allowed, if neither it nor any of its pools says how long.

    Without it a job in a pool with a maximum would count as endless, and never start.
    """
    spec, pools = asked.spec, asked.pools
    if spec.time_limit is not None or any(_default_is_allowed(pool, asked) for pool in pools):
        return spec
    longest = _longest(pools, asked.job_class)
    return spec if longest is None else replace(spec, time_limit=longest)


def _has_room(kind: NodeKind, group: TaskGroup) -> bool:
    return any(tasks >= group.fewest for tasks in accumulate(_tasks(kind, group)))


def _tasks(kind: NodeKind, group: TaskGroup) -> Iterable[int]:
    """How many tasks of the group each node of the kind could take."""
    most = min(group.where.max_per_node or group.count, group.count)
    return (min(most, _tasks_on(node, group.each, kind.model, most)) for node in kind.nodes)


def _tasks_on(node: Node, each: Ask, model: GpuModel | None, most: int) -> int:
    bounds = [most]
    if each.cpu_milli:
        bounds.append(node.cpu_milli // each.cpu_milli)
    if each.memory_mib:
        bounds.append(node.memory_mib // each.memory_mib)
    if gpus := each.gpus:
        devices = [device for device in node.devices if device.model == model]
        bounds.append(sum(_parts(gpus, device) for device in devices) // gpus.count)
    return min(bounds)


def _parts(gpus: GpuAsk, device: Device) -> int:
    """How many of what is asked for one device could give."""
    if device.memory_mib < gpus.min_memory_mib:
        return 0
    match gpus.slice:
        case None:
            return 1
        case Mig(profile=profile):
            return most_instances(device.model, profile)
        case MpsShare(milli=milli, memory_mib=memory_mib):
            by_memory = device.memory_mib // memory_mib if memory_mib else 1_000
            return min(1_000 // milli, by_memory)
        case TimeShare(replicas=replicas):
            return replicas


def _name(group: TaskGroup, spec: JobSpec) -> str:
    """What to call it: only who has several groups knows them by their names."""
    return "this job" if len(spec.groups) == 1 else f"group {group.name}"


def _advice(group: TaskGroup, kinds: Iterable[NodeKind], at_most: int, name: str) -> str:
    if at_most:
        return (
            f"{name[0].upper()}{name[1:]} needs {group.fewest} tasks at once; all nodes that suit "
            f"it could take {at_most}, were they empty. Ask for at most {at_most}."
        )
    nodes = [(node, kind.model) for kind in kinds for node in kind.nodes]
    if not nodes:
        return (
            f"No node in the pools that this job may use has what {name} asks for. "
            "Name other pools or GPU models."
        )
    if (lacking := _lacking(group.each, nodes)) is not None:
        return lacking
    gpus = max(sum(device.model == model for device in node.devices) for node, model in nodes)
    cpu_milli = max(node.cpu_milli for node, _ in nodes)
    memory_mib = max(node.memory_mib for node, _ in nodes)
    return (
        f"No node, even empty, could take one task of {name}. "
        f"The most that one node has is {gpus} GPUs, {thousandths(cpu_milli)} cores "
        f"and {memory(memory_mib)}. Ask for less per task, and perhaps for more tasks."
    )


def _lacking(each: Ask, nodes: list[tuple[Node, GpuModel | None]]) -> str | None:
    """The one thing of which no node has enough, if there is just one."""
    asked_gpus = 0 if each.gpus is None or each.gpus.slice is not None else each.gpus.count
    asked_memory = 0 if each.gpus is None else each.gpus.min_memory_mib
    models = [[device for device in node.devices if device.model == model] for node, model in nodes]
    largest = max((device.memory_mib for found in models for device in found), default=0)
    most_gpus = max(map(len, models))
    cpu_milli = max(node.cpu_milli for node, _ in nodes)
    memory_mib = max(node.memory_mib for node, _ in nodes)
    told = [
        f"No GPU here has {memory(asked_memory)}; the largest has {memory(largest)}. "
        "Ask for GPUs with less memory."
        if asked_memory > largest
        else "",
        f"No node has {counted(asked_gpus, 'GPU')}; the most that one has is {most_gpus}. "
        "Ask for fewer per task, and perhaps for more tasks."
        if asked_gpus > most_gpus
        else "",
        f"No node has {cores(each.cpu_milli)}; the most that one has is {thousandths(cpu_milli)}. "
        "Ask for fewer per task."
        if each.cpu_milli > cpu_milli
        else "",
        f"No node has {memory(each.memory_mib)} of memory; the most that one has is "
        f"{memory(memory_mib)}. Ask for less per task."
        if each.memory_mib > memory_mib
        else "",
    ]
    found = [text for text in told if text]
    return found[0] if len(found) == 1 else None


def _longest(pools: Iterable[Pool], job_class: JobClass | None) -> Duration | None:
    """The longest that some pool and the class allow; None is without end."""
    allowed = [_allowed(pool, job_class) for pool in pools]
    bounded = [each for each in allowed if each is not None]
    return None if len(bounded) < len(allowed) else max(bounded, default=None)


def _allowed(pool: Pool, job_class: JobClass | None) -> Duration | None:
    bounds = (pool.max_time, job_class.max_time if job_class else None)
    return min((each for each in bounds if each is not None), default=None)


def _default_is_allowed(pool: Pool, asked: Submission) -> bool:
    allowed = _allowed(pool, asked.job_class)
    if pool.default_time is None:
        return False
    return allowed is None or pool.default_time <= allowed
