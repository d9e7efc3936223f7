"""Which step of an attempt has which CPUs, memory and GPUs on which node.

As in Slurm 22.05, a step has its nodes to itself unless it says otherwise: `exact` takes only what
was asked for, `overlap` takes what is there and leaves it to other steps as well.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from muster.launch.steps.shares import NodeShare

TOO_MANY_CPUS = "More processors requested than permitted"
TOO_MUCH_MEMORY = "Memory required by task is not available"
NO_SUCH_NODES = "Requested node configuration is not available"
BAD_GRES = "Invalid generic resource (gres) specification"
TOO_FEW_GPUS = "Insufficient GRES available in allocation"


class ImpossibleStepError(Exception):
    """The attempt could not hold the step if nothing else ran in it; the text is for its user.

    before: lines that come first. whole: the text is all there is to say.
    """

    def __init__(self, text: str, *before: str, whole: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.before = before
        self.whole = whole


@dataclass(frozen=True, kw_only=True)
class StepRequest:
    """What a step asks for. `nodes` of None: as many as there are, and no more than tasks.

    gpus, gpus_per_node, gpus_per_task: None of them means all that the nodes have.
    gpu_bind: which of them each task sees, as `--gpu-bind` spells it; all of them if it is empty.
    on, off: nodes that must be used, or must not. relative: the first node by its number.
    component: the one of the job whose nodes it may have.
    """

    tasks: int = 1
    nodes: int | None = None
    tasks_per_node: int | None = None
    cpus_per_task: int = 1
    memory_mib: int = 0
    gpus: int | None = None
    gpus_per_node: int | None = None
    gpus_per_task: int | None = None
    gpu_bind: str = ""
    exact: bool = False
    overlap: bool = False
    overcommit: bool = False
    cyclic: bool = False
    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    relative: int = 0
    component: int = 0


@dataclass(frozen=True, kw_only=True)
class StepShare:
    """What a step has of one of the attempt's shares: ranks, CPUs, memory and GPUs.

    node: the share, by its place among the attempt's. gpus: by their places in that share.
    request: the place of the request that this serves. cpu_ids: its CPUs, where they are known.
    """

    node: int
    ranks: tuple[int, ...]
    cpus: int
    memory_mib: int
    gpus: tuple[int, ...]
    request: int = 0
    cpu_ids: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Free:
    """What is left of a node."""

    cpus: int
    memory_mib: int
    gpus: tuple[int, ...]
    cpu_ids: tuple[int, ...]
    is_untouched: bool


class StepAllocator:
    """The shares of an attempt, and which step has what of them."""

    def __init__(self, nodes: Sequence[NodeShare]) -> None:
        self.nodes = tuple(nodes)
        self._held: dict[int, tuple[StepShare, ...]] = {}

    def take(self, number: int, requests: Sequence[StepRequest]) -> tuple[StepShare, ...] | None:
        """What a step has on its nodes; None: not now. ImpossibleStepError: not even alone.

        Every request is served, each for tasks of its own, or none is.
        """
        if self._served(requests, ()) is None:
            raise ImpossibleStepError(
                TOO_FEW_GPUS if any(map(self._lacks_gpus, requests)) else TOO_MANY_CPUS
            )
        try:
            held = tuple(part for parts in self._held.values() for part in parts)
            found = self._served(requests, held)
        except ImpossibleStepError:
            # Alone it would fit, so it is only that the nodes that are left do not suit it.
            return None
        if found is not None:
            kept = tuple(part for part in found if not requests[part.request].overlap)
            self._held |= {number: kept} if kept else {}
        return found

    def give_back(self, number: int) -> None:
        self._held.pop(number, None)

    def _lacks_gpus(self, request: StepRequest) -> bool:
        """Would all GPUs together not do for one task after the other?"""
        each = request.gpus_per_task or 0
        own = (node for node in self.nodes if node.component == request.component)
        return bool(each) and sum(len(node.gpus) // each for node in own) < request.tasks

    def _free(self, at: int, held: Iterable[StepShare]) -> _Free:
        node = self.nodes[at]
        here = [part for part in held if part.node == at]
        taken = {gpu for part in here for gpu in part.gpus}
        busy = {cpu for part in here for cpu in part.cpu_ids}
        return _Free(
            cpus=node.cpus - sum(part.cpus for part in here),
            memory_mib=node.memory_mib - sum(part.memory_mib for part in here),
            gpus=tuple(gpu for gpu in range(len(node.gpus)) if gpu not in taken),
            cpu_ids=tuple(cpu for cpu in node.cpu_ids if cpu not in busy),
            is_untouched=not here,
        )

    def _served(
        self, requests: Sequence[StepRequest], held: tuple[StepShare, ...]
    ) -> tuple[StepShare, ...] | None:
        """One request after the other, beside what is held; ranks continue from one to the next."""
        found: tuple[StepShare, ...] = ()
        first = 0
        for place, request in enumerate(requests):
            beside = () if request.overlap else (*held, *found)
            free = [self._free(at, beside) for at in range(len(self.nodes))]
            parts = self._placed(request, free)
            if parts is None:
                return None
            found += tuple(
                replace(part, request=place, ranks=tuple(first + rank for rank in part.ranks))
                for part in parts
            )
            first += request.tasks
        return found

    def _placed(self, request: StepRequest, free: Sequence[_Free]) -> tuple[StepShare, ...] | None:
        chosen = self._chosen(request, free)
        counts = _counts(request, [_most_tasks(request, self.nodes[at], free[at]) for at in chosen])
        if counts is None:
            return None
        ranks = _ranks(request, counts)
        gpus = self._gpus(request, chosen, counts)
        for at, wanted in zip(chosen, gpus, strict=True):
            if len(free[at].gpus) < wanted or not _has_memory(request, self.nodes[at], free[at]):
                return None
        return tuple(
            StepShare(
                node=at,
                ranks=ranks[place],
                cpus=_cpus(request, self.nodes[at], free[at], counts[place]),
                memory_mib=request.memory_mib,
                gpus=free[at].gpus[: gpus[place]],
                cpu_ids=_cpu_ids(request, self.nodes[at], free[at], counts[place]),
            )
            for place, at in enumerate(chosen)
        )

    def _chosen(self, request: StepRequest, free: Sequence[_Free]) -> list[int]:
        """Nodes by their numbers: those that were named, then those with room, then in order."""
        own = [at for at, node in enumerate(self.nodes) if node.component == request.component]
        if not {self.nodes[at].node for at in own}.issuperset(request.on):
            raise ImpossibleStepError(NO_SUCH_NODES)
        may = [at for at in own[request.relative :] if self.nodes[at].node not in request.off]
        if not may:
            raise ImpossibleStepError("Hostlist is empty!  Can't run job.", whole=True)
        wanted = min(request.tasks, request.nodes or len(may))
        if wanted > len(may):
            raise ImpossibleStepError(
                f"Only allocated {len(may)} nodes asked for {wanted}", whole=True
            )

        def rank(at: int) -> tuple[bool, bool, int]:
            lacks_gpus = len(free[at].gpus) < (request.gpus_per_node or 0)
            is_full = lacks_gpus or not _most_tasks(request, self.nodes[at], free[at])
            return (self.nodes[at].node not in request.on, is_full, at)

        return sorted(sorted(may, key=rank)[:wanted])

    def _gpus(
        self, request: StepRequest, chosen: Sequence[int], counts: Sequence[int]
    ) -> list[int]:
        """How many on each of the nodes."""
        have = [len(self.nodes[at].gpus) for at in chosen]
        if request.gpus_per_task is not None:
            if self._lacks_gpus(request):
                raise ImpossibleStepError(TOO_FEW_GPUS)
            wanted = [request.gpus_per_task * count for count in counts]
        elif request.gpus_per_node is not None:
            wanted = [request.gpus_per_node] * len(chosen)
        elif request.gpus is not None:
            each, more = divmod(request.gpus, len(chosen))
            wanted = [each + (place < more) for place in range(len(chosen))]
        else:
            return have
        for asked, there in zip(wanted, have, strict=True):
            if asked > there:
                about = f"gres_per_node=gpu:{asked} is more than the job's gres_per_node=gpu"
                raise ImpossibleStepError(BAD_GRES, f"Step requested {about}:{there}")
        return wanted


def _most_tasks(request: StepRequest, node: NodeShare, free: _Free) -> int:
    """How many tasks the node could take, as things are."""
    if not (request.exact or request.overlap or free.is_untouched):
        return 0
    if request.overcommit:
        return request.tasks if free.cpus > 0 else 0
    # What is shared counts as if no other step were there.
    by_cpus = (node.cpus if request.overlap else free.cpus) // request.cpus_per_task
    if not request.gpus_per_task:
        return by_cpus
    return min(by_cpus, len(free.gpus) // request.gpus_per_task)


def _counts(request: StepRequest, most: Sequence[int]) -> list[int] | None:
    """How many tasks each of the nodes gets: one each, and then as many as fit, in order."""
    if request.overcommit:
        each, more = divmod(request.tasks, len(most))
        return [each + (place < more) for place in range(len(most))] if all(most) else None
    limit = request.tasks_per_node
    if limit is not None and sum(min(each, limit) for each in most) >= request.tasks:
        most = [min(each, limit) for each in most]
    if not all(most) or sum(most) < request.tasks:
        return None
    counts = [1] * len(most)
    if request.cyclic:
        _deal(counts, most, request.tasks)
        return counts
    for place, limit in enumerate(most):
        counts[place] += min(limit - 1, request.tasks - sum(counts))
    return counts


def _deal(counts: list[int], most: Sequence[int], tasks: int) -> None:
    while sum(counts) < tasks:
        for place, limit in enumerate(most):
            if counts[place] < limit and sum(counts) < tasks:
                counts[place] += 1


def _ranks(request: StepRequest, counts: Sequence[int]) -> list[tuple[int, ...]]:
    """Which ranks each of the nodes gets: in a row, or in turn."""
    if not request.cyclic:
        firsts = [sum(counts[:place]) for place in range(len(counts))]
        return [
            tuple(range(first, first + count)) for first, count in zip(firsts, counts, strict=True)
        ]
    turns = sorted((turn, place) for place, count in enumerate(counts) for turn in range(count))
    return [
        tuple(rank for rank, (_, owner) in enumerate(turns) if owner == place)
        for place in range(len(counts))
    ]


def _cpus(request: StepRequest, node: NodeShare, free: _Free, tasks: int) -> int:
    """Tasks that are too many for the CPUs share those that there are."""
    if not request.exact:
        return node.cpus
    return min(node.cpus if request.overlap else free.cpus, tasks * request.cpus_per_task)


def _cpu_ids(request: StepRequest, node: NodeShare, free: _Free, tasks: int) -> tuple[int, ...]:
    """The same by their numbers; who shares them anyway may use all."""
    if not request.exact or request.overlap:
        return node.cpu_ids
    return free.cpu_ids[: tasks * request.cpus_per_task]


def _has_memory(request: StepRequest, node: NodeShare, free: _Free) -> bool:
    if not node.memory_mib:
        return True
    if request.memory_mib > node.memory_mib:
        raise ImpossibleStepError(TOO_MUCH_MEMORY)
    return request.overlap or request.memory_mib <= free.memory_mib
