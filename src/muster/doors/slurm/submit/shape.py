"""Nodes, tasks, CPUs, memory and GPUs of a request as groups of tasks.

A Slurm job takes nodes, and its tasks share what it has of each: so one of our tasks stands for a
node's part of the job. Only where everything is asked for by task (`-n 8 --gpus-per-task=1`), and
nothing says how many nodes, each of ours is one of theirs and they land wherever there is room.
"""

from collections.abc import Callable, Collection, Sequence
from math import ceil

from muster.doors.slurm.submit.fleet import Machines
from muster.doors.slurm.submit.request import Request
from muster.doors.slurm.words.errors import SlurmError, failed
from muster.doors.slurm.words.gres import (
    BadGresError,
    GpuRequest,
    NoSuchTypeError,
    gpu_wish,
    gres_wish,
)
from muster.doors.slurm.words.hostlist import BadHostlistError, expanded
from muster.model.cluster import Node
from muster.model.gpu import GpuAsk
from muster.model.job import Ask, LabelRule, Operator, TaskGroup, Where
from muster.model.value import GpuModel, NodeId, PoolName, Value, replace

UNAVAILABLE = "Requested node configuration is not available"
BAD_GRES = "Invalid generic resource (gres) specification"


class Amounts(Value):
    """What was asked for by whom: for each node, task, CPU or GPU, or for the job as a whole."""

    nodes: int | None
    tasks: int | None
    tasks_per_node: int | None
    cpus_per_task: int
    least_cpus: int
    cpus_per_gpu: int | None
    memory: int | None
    memory_per_cpu: int | None
    memory_per_gpu: int | None
    per_node: GpuRequest | None
    per_task: GpuRequest | None
    in_all: GpuRequest | None
    exclusive: bool = False

    @property
    def is_uneven(self) -> bool:
        """Do the GPUs in all not go into those of each task?"""
        whole, each = self.in_all, self.per_task
        return bool(whole and each and each.count and whole.count % each.count)

    @property
    def gpus(self) -> GpuRequest | None:
        """The wish that says which GPUs, whatever its number counts."""
        return self.per_node or self.per_task or self.in_all


class TaskLayout(Value):
    """The groups, and how many tasks Slurm would count in how many nodes."""

    groups: tuple[TaskGroup, ...]
    nodes: int
    tasks: int


def amounts_of(request: Request, machines: Machines) -> Amounts:
    """Read all options that say how much; GPUs and tasks follow from each other."""
    amounts = _named_amounts(request, machines)
    per_gpu = request.number("ntasks-per-gpu")
    if per_gpu is not None:
        return _with_tasks_per_gpu(amounts, per_gpu)
    in_all, each = amounts.in_all, amounts.per_task
    if in_all is None or each is None or not each.count or amounts.is_uneven:
        return amounts
    # Each task has its own: so the tasks say it all.
    return replace(amounts, tasks=amounts.tasks or in_all.count // each.count, in_all=None)


def _named_amounts(request: Request, machines: Machines) -> Amounts:
    return Amounts(
        nodes=node_count(request),
        tasks=request.number("ntasks"),
        tasks_per_node=request.number("ntasks-per-node"),
        cpus_per_task=request.number("cpus-per-task") or 1,
        least_cpus=request.number("mincpus") or 0,
        cpus_per_gpu=request.number("cpus-per-gpu"),
        memory=request.memory("mem"),
        memory_per_cpu=request.memory("mem-per-cpu"),
        memory_per_gpu=request.memory("mem-per-gpu"),
        per_node=_wish(request, "gpus-per-node", machines) or _gres(request, machines),
        per_task=_wish(request, "gpus-per-task", machines),
        in_all=_wish(request, "gpus", machines),
        exclusive=request.has("exclusive"),
    )


def _with_tasks_per_gpu(amounts: Amounts, per_gpu: int) -> Amounts:
    """As many tasks as the GPUs are for, or as many GPUs as the tasks need."""
    wish = amounts.gpus
    if wish is None:
        count = ceil((amounts.tasks or 1) / per_gpu)
        return replace(amounts, in_all=GpuRequest(count=count, text=f"gres:gpu:{count}"))
    gpus = wish.count * ((amounts.nodes or 1) if amounts.per_node is not None else 1)
    return replace(amounts, tasks=amounts.tasks or gpus * per_gpu)


def demand_possible(request: Request, machines: Machines) -> None:
    """SlurmError for options that contradict each other, and for more nodes than there are."""
    _demand_sane_gpus(request, machines)
    if sum(map(request.has, ("mem", "mem-per-cpu", "mem-per-gpu"))) > 1:
        problem = "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive."
        raise SlurmError(f"{request.command}: fatal: {problem}")
    if (node_count(request) or 0) > len(machines.nodes):
        raise request.submission_failed("Node count specification invalid")


def _demand_sane_gpus(request: Request, machines: Machines) -> None:
    if not request.has("gpus-per-task"):
        return
    if request.has("ntasks-per-gpu"):
        both = "mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU"
        raise SlurmError(f"{request.command}: fatal: --gpus-per-task is {both}")
    problem = ""
    if not (request.has("gpus") or request.has("ntasks")):
        either = "either --gpus or -n/--ntasks"
        problem = f". --gpus-per-task used without {either} is not allowed."
    elif amounts_of(request, machines).is_uneven:
        problem = ", --gpus not multiple of --gpus-per-task"
    if problem:
        text = f"Failed to validate job spec{problem}"
        raise SlurmError(
            f"{request.command}: error: {text}", f"{request.command}: error: {BAD_GRES}"
        )


def demand_room(request: Request, group: TaskGroup, machines: Machines) -> None:
    """SlurmError for what no node has, even if it is empty."""
    for is_too_much, words in (
        (group.each.cpu_milli > machines.most_cpus * 1_000, "CPU count per node"),
        (group.each.memory_mib > machines.most_memory_mib, "Memory specification"),
    ):
        if is_too_much:
            raise SlurmError(
                f"{request.command}: error: {words} can not be satisfied",
                *request.submission_failed(UNAVAILABLE).lines,
            )


def shape_of(request: Request, machines: Machines, name: str = "main") -> TaskLayout:
    """What the options come to, on machines like these."""
    amounts = amounts_of(request, machines)
    where = _where(request, machines)
    tasks, nodes = _counts(amounts, machines, len(where.nodes))
    if nodes is None:
        group = TaskGroup(name=name, count=tasks, each=_task_ask(amounts), where=where)
        return TaskLayout(groups=(group,), nodes=1, tasks=tasks)
    return TaskLayout(
        groups=_by_node(amounts, where, (tasks, nodes), name), nodes=nodes, tasks=tasks
    )


def _counts(amounts: Amounts, machines: Machines, named: int) -> tuple[int, int | None]:
    """Tasks and nodes; no number of nodes where tasks may land anywhere."""
    per_node = amounts.tasks_per_node
    nodes = max(amounts.nodes or 0, named) or None
    if nodes is not None:
        return amounts.tasks or nodes * (per_node or 1), nodes
    tasks = amounts.tasks or per_node or 1
    if per_node is not None:
        return tasks, ceil(tasks / per_node)
    is_by_node = amounts.per_node or amounts.in_all or amounts.memory or amounts.exclusive
    if tasks > 1 and not is_by_node:
        return tasks, None
    return tasks, max(1, min(_fewest_nodes(amounts, tasks, machines), max(tasks, 1_000)))


def _fewest_nodes(amounts: Amounts, tasks: int, machines: Machines) -> int:
    gpus = 0
    if amounts.in_all is not None:
        gpus = amounts.in_all.count
    elif amounts.per_task is not None:
        gpus = amounts.per_task.count * tasks
    by_gpus = ceil(gpus / machines.most_gpus) if machines.most_gpus else 1
    by_cpus = ceil(tasks * amounts.cpus_per_task / max(1, machines.most_cpus)) if tasks > 1 else 1
    return max(by_gpus, by_cpus)


def _by_node(
    amounts: Amounts, where: Where, counts: tuple[int, int], name: str
) -> tuple[TaskGroup, ...]:
    """One of our tasks for each node; of GPUs that do not divide, some nodes have one more."""
    tasks, nodes = counts
    each, more = _gpus_per_node(amounts, tasks, nodes)
    if nodes > 1:
        where = replace(where, max_per_node=1)
    parts = ((name, nodes - more, each), (f"{name}-more", more, each + 1))
    return tuple(
        TaskGroup(
            name=label,
            count=count,
            each=_node_ask(amounts, ceil(tasks / nodes), gpus),
            where=where,
        )
        for label, count, gpus in parts
        if count
    )


def _gpus_per_node(amounts: Amounts, tasks: int, nodes: int) -> tuple[int, int]:
    if amounts.per_node is not None:
        return amounts.per_node.count, 0
    if amounts.in_all is not None:
        return divmod(amounts.in_all.count, nodes)
    if amounts.per_task is not None:
        return amounts.per_task.count * ceil(tasks / nodes), 0
    return 0, 0


def _node_ask(amounts: Amounts, tasks: int, gpus: int) -> Ask:
    wish = amounts.gpus
    cpus = max(tasks * amounts.cpus_per_task, amounts.least_cpus)
    if amounts.cpus_per_gpu is not None:
        cpus = max(cpus, amounts.cpus_per_gpu * gpus)
    return Ask(
        cpu_milli=cpus * 1_000,
        memory_mib=_memory(amounts, cpus, gpus),
        gpus=None if wish is None else wish.ask(gpus),
    )


def _task_ask(amounts: Amounts) -> Ask:
    gpus = amounts.per_task.count if amounts.per_task else 0
    cpus = max(amounts.cpus_per_task, (amounts.cpus_per_gpu or 0) * gpus)
    return Ask(
        cpu_milli=cpus * 1_000,
        memory_mib=_memory(amounts, cpus, gpus),
        gpus=None if amounts.per_task is None else amounts.per_task.ask(),
    )


def _memory(amounts: Amounts, cpus: int, gpus: int) -> int:
    if amounts.memory is not None:
        return amounts.memory
    if amounts.memory_per_gpu is not None:
        return amounts.memory_per_gpu * gpus
    return (amounts.memory_per_cpu or 0) * cpus


def _where(request: Request, machines: Machines) -> Where:
    exclusive = request.text("exclusive")
    if exclusive not in {None, "user", "mcs"}:
        raise request.bad("exclusive")
    nodes = _named(request, "nodelist", machines)
    not_nodes = _named(request, "exclude", machines)
    if set(nodes) & set(not_nodes):
        raise request.submission_failed("Invalid node name specified")
    return Where(
        require=features_of(request, machines),
        prefer=preferred_features(request),
        nodes=nodes,
        not_nodes=not_nodes,
        exclusive=request.has("exclusive"),
    )


def _named(request: Request, option: str, machines: Machines) -> tuple[NodeId, ...]:
    text = request.text(option)
    problem = request.submission_failed("Invalid node name specified")
    try:
        names = tuple(dict.fromkeys(expanded(text))) if text else ()
    except BadHostlistError as bad:
        raise problem from bad
    if any(name not in machines.nodes for name in names):
        raise problem
    return tuple(map(NodeId, names))


def features_of(request: Request, machines: Machines) -> tuple[LabelRule, ...]:
    """`a&b` and `key=a|key=b`: a feature is a label of the node, with a value or without."""
    text = request.text("constraint")
    if not text:
        return ()
    rules = tuple(_feature(each, request) for each in text.strip("[]").replace(",", "&").split("&"))
    if not any(all(rule.accepts(labels) for rule in rules) for labels in machines.labels):
        raise request.submission_failed("Invalid feature specification")
    return rules


def preferred_features(request: Request) -> tuple[LabelRule, ...]:
    """`--prefer`: written as a constraint, and no node need have them."""
    text = request.text("prefer")
    if not text:
        return ()
    words = text.strip("[]").replace(",", "&").split("&")
    return tuple(_feature(each, request) for each in words)


def _feature(text: str, request: Request) -> LabelRule:
    choices = [each.partition("=") for each in text.strip("()").split("|")]
    keys = {key for key, _, _ in choices}
    if len(keys) != 1:
        raise request.submission_failed("Invalid feature specification")
    values = tuple(value for _, equals, value in choices if equals)
    key = keys.pop()
    if not values:
        return LabelRule(key=key, operator=Operator.EXISTS)
    return LabelRule(key=key, values=values)


def node_count(request: Request) -> int | None:
    """`2`, `2-4` (the fewest are taken), `1k`."""
    bounds = node_bounds(request)
    return None if bounds is None else bounds[0]


def node_bounds(request: Request) -> tuple[int, int] | None:
    """The fewest and the most nodes that were asked for."""
    text = request.text("nodes")
    if text is None:
        return None
    first, dash, last = text.partition("-")
    least = _count_of_nodes(request, first)
    most = _count_of_nodes(request, last) if dash else least
    if most < least:
        problem = f"Maximum node count {most} is less than minimum node count {least}"
        raise failed(request.command, problem, code=255)
    if not least:
        raise request.submission_failed("Node count specification invalid")
    return least, most


def _count_of_nodes(request: Request, text: str) -> int:
    number = text.lower().removesuffix("k")
    if not number.isdecimal():
        raise failed(request.command, f'"{text}" is not a valid node count', code=255)
    return int(number) * (1_024 if text.lower().endswith("k") else 1)


def _wish(request: Request, option: str, machines: Machines) -> GpuRequest | None:
    return _read_gpus(request, request.text(option), machines, gpu_wish)


def _gres(request: Request, machines: Machines) -> GpuRequest | None:
    return _read_gpus(request, request.text("gres"), machines, gres_wish)


def _read_gpus(
    request: Request,
    text: str | None,
    machines: Machines,
    read: Callable[[str, tuple[GpuModel, ...]], GpuRequest | None],
) -> GpuRequest | None:
    if text is None:
        return None
    try:
        return read(text, machines.models)
    except BadGresError as bad:
        raise failed(request.command, BAD_GRES) from bad
    except NoSuchTypeError as bad:
        raise request.submission_failed(UNAVAILABLE) from bad


def widened(shape: TaskLayout, pools: Collection[PoolName], machines: Machines) -> TaskLayout:
    """With all that every node has on which it could run: they may be of several sizes."""
    groups = tuple(
        replace(group, each=_whole(group.each, _suitable(group, pools, machines)))
        for group in shape.groups
    )
    return replace(shape, groups=groups)


def _suitable(group: TaskGroup, pools: Collection[PoolName], machines: Machines) -> list[Node]:
    return [
        node
        for node in machines.nodes.values()
        if (not pools or node.pool in pools)
        and _is_meant(node, group.where)
        and node.cpu_milli >= group.each.cpu_milli
        and _gpus(node, group.each.gpus) >= (group.each.gpus.count if group.each.gpus else 0)
    ]


def _is_meant(node: Node, where: Where) -> bool:
    return (
        (not where.nodes or node.id in where.nodes)
        and node.id not in where.not_nodes
        and all(rule.accepts(node.labels) for rule in where.require)
    )


def _gpus(node: Node, ask: GpuAsk | None) -> int:
    """How many it has, of those that would do."""
    models = ask.models if ask is not None else ()
    return sum(
        device.healthy and device.mig is None and (not models or device.model in models)
        for device in node.devices
    )


def _whole(ask: Ask, nodes: Sequence[Node]) -> Ask:
    if not nodes:
        return ask
    cpu_milli = min(node.cpu_milli for node in nodes)
    return replace(ask, cpu_milli=cpu_milli, gpus=_whole_gpus(ask.gpus, nodes))


def _whole_gpus(ask: GpuAsk | None, nodes: Sequence[Node]) -> GpuAsk | None:
    """Slices stay as they were asked for."""
    if ask is not None and ask.slice is not None:
        return ask
    count = min(_gpus(node, ask) for node in nodes)
    if ask is not None:
        return replace(ask, count=count)
    return GpuAsk(count=count) if count else None
