"""Which step of an attempt has which CPUs, memory and GPUs on which node. Pure.

As in Slurm 22.05, a step has its nodes to itself unless it says otherwise: `exact` takes only what
was asked for, `overlap` takes what is there and keeps nobody out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

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
class NodeShare:
    """What a component of the attempt has of one node; no memory means that it has no limit.

    cpu_ids: its CPUs by their numbers, where they are known.
    """

    name: str
    cpus: int
    memory_mib: int = 0
    gpus: int = 0
    component: int = 0
    cpu_ids: tuple[int, ...] = ()


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
    """What a step has on one node: `node` by its number, ranks, and GPUs by their numbers.

    wish: the place of the wish that it fulfils. cpu_ids: its CPUs, where they are known.
    """

    node: int
    ranks: tuple[int, ...]
    cpus: int
    memory_mib: int
    gpus: tuple[int, ...]
    wish: int = 0
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
    """The rooms of an attempt, and who has what of them."""

    def __init__(self, nodes: Sequence[NodeShare]) -> None:
        self.nodes = tuple(nodes)
        self._held: dict[int, tuple[StepShare, ...]] = {}

    def take(self, number: int, wishes: Sequence[StepRequest]) -> tuple[StepShare, ...] | None:
        """The parts of a step on its nodes; None: not now. ImpossibleStepError: not even alone.

        Every wish is fulfilled, each for tasks of its own, or none is.
        """
        if self._fulfilled(wishes, ()) is None:
            raise ImpossibleStepError(
                TOO_FEW_GPUS if any(map(self._lacks_gpus, wishes)) else TOO_MANY_CPUS
            )
        try:
            held = tuple(part for parts in self._held.values() for part in parts)
            found = self._fulfilled(wishes, held)
        except ImpossibleStepError:
            # Alone it would fit, so it is only that the nodes that are left do not suit it.
            return None
        if found is not None:
            kept = tuple(part for part in found if not wishes[part.wish].overlap)
            self._held |= {number: kept} if kept else {}
        return found

    def give_back(self, number: int) -> None:
        self._held.pop(number, None)

    def _lacks_gpus(self, wish: StepRequest) -> bool:
        """Would all GPUs together not do for one task after the other?"""
        each = wish.gpus_per_task or 0
        own = (node for node in self.nodes if node.component == wish.component)
        return bool(each) and sum(node.gpus // each for node in own) < wish.tasks

    def _free(self, at: int, held: Iterable[StepShare]) -> _Free:
        node = self.nodes[at]
        here = [part for part in held if part.node == at]
        taken = {gpu for part in here for gpu in part.gpus}
        busy = {cpu for part in here for cpu in part.cpu_ids}
        return _Free(
            cpus=node.cpus - sum(part.cpus for part in here),
            memory_mib=node.memory_mib - sum(part.memory_mib for part in here),
            gpus=tuple(gpu for gpu in range(node.gpus) if gpu not in taken),
            cpu_ids=tuple(cpu for cpu in node.cpu_ids if cpu not in busy),
            is_untouched=not here,
        )

    def _fulfilled(
        self, wishes: Sequence[StepRequest], held: tuple[StepShare, ...]
    ) -> tuple[StepShare, ...] | None:
        """One wish after the other, beside what is held; ranks go on from one to the next."""
        found: tuple[StepShare, ...] = ()
        first = 0
        for place, wish in enumerate(wishes):
            beside = () if wish.overlap else (*held, *found)
            free = [self._free(at, beside) for at in range(len(self.nodes))]
            parts = self._placed(wish, free)
            if parts is None:
                return None
            found += tuple(_numbered(part, place, first) for part in parts)
            first += wish.tasks
        return found

    def _placed(self, wish: StepRequest, free: Sequence[_Free]) -> tuple[StepShare, ...] | None:
        chosen = self._chosen(wish, free)
        counts = _counts(wish, [_most_tasks(wish, self.nodes[at], free[at]) for at in chosen])
        if counts is None:
            return None
        ranks = _ranks(wish, counts)
        gpus = self._gpus(wish, chosen, counts)
        for at, wanted in zip(chosen, gpus, strict=True):
            if len(free[at].gpus) < wanted or not _has_memory(wish, self.nodes[at], free[at]):
                return None
        return tuple(
            StepShare(
                node=at,
                ranks=ranks[place],
                cpus=_cpus(wish, self.nodes[at], free[at], counts[place]),
                memory_mib=wish.memory_mib,
                gpus=free[at].gpus[: gpus[place]],
                cpu_ids=_cpu_ids(wish, self.nodes[at], free[at], counts[place]),
            )
            for place, at in enumerate(chosen)
        )

    def _chosen(self, wish: StepRequest, free: Sequence[_Free]) -> list[int]:
        """Nodes by their numbers: those that were named, then those with room, then in order."""
        own = [at for at, node in enumerate(self.nodes) if node.component == wish.component]
        if not {self.nodes[at].name for at in own}.issuperset(wish.on):
            raise ImpossibleStepError(NO_SUCH_NODES)
        may = [at for at in own[wish.relative :] if self.nodes[at].name not in wish.off]
        if not may:
            raise ImpossibleStepError("Hostlist is empty!  Can't run job.", whole=True)
        wanted = min(wish.tasks, wish.nodes or len(may))
        if wanted > len(may):
            raise ImpossibleStepError(
                f"Only allocated {len(may)} nodes asked for {wanted}", whole=True
            )

        def rank(at: int) -> tuple[bool, bool, int]:
            lacks_gpus = len(free[at].gpus) < (wish.gpus_per_node or 0)
            is_full = lacks_gpus or not _most_tasks(wish, self.nodes[at], free[at])
            return (self.nodes[at].name not in wish.on, is_full, at)

        return sorted(sorted(may, key=rank)[:wanted])

    def _gpus(self, wish: StepRequest, chosen: Sequence[int], counts: Sequence[int]) -> list[int]:
        """How many on each of the nodes."""
        have = [self.nodes[at].gpus for at in chosen]
        if wish.gpus_per_task is not None:
            if self._lacks_gpus(wish):
                raise ImpossibleStepError(TOO_FEW_GPUS)
            wanted = [wish.gpus_per_task * count for count in counts]
        elif wish.gpus_per_node is not None:
            wanted = [wish.gpus_per_node] * len(chosen)
        elif wish.gpus is not None:
            each, more = divmod(wish.gpus, len(chosen))
            wanted = [each + (place < more) for place in range(len(chosen))]
        else:
            return have
        for asked, there in zip(wanted, have, strict=True):
            if asked > there:
                about = f"gres_per_node=gpu:{asked} is more than the job's gres_per_node=gpu"
                raise ImpossibleStepError(BAD_GRES, f"Step requested {about}:{there}")
        return wanted


def _numbered(part: StepShare, wish: int, first: int) -> StepShare:
    return replace(part, wish=wish, ranks=tuple(first + rank for rank in part.ranks))


def _most_tasks(wish: StepRequest, node: NodeShare, free: _Free) -> int:
    """How many tasks the node could take, as things are."""
    if not (wish.exact or wish.overlap or free.is_untouched):
        return 0
    if wish.overcommit:
        return wish.tasks if free.cpus > 0 else 0
    # What is shared is counted as if nobody else were there.
    by_cpus = (node.cpus if wish.overlap else free.cpus) // wish.cpus_per_task
    if not wish.gpus_per_task:
        return by_cpus
    return min(by_cpus, len(free.gpus) // wish.gpus_per_task)


def _counts(wish: StepRequest, most: Sequence[int]) -> list[int] | None:
    """How many tasks each of the nodes gets: one each, and then as many as fit, in order."""
    if wish.overcommit:
        each, more = divmod(wish.tasks, len(most))
        return [each + (place < more) for place in range(len(most))] if all(most) else None
    limit = wish.tasks_per_node
    if limit is not None and sum(min(each, limit) for each in most) >= wish.tasks:
        most = [min(each, limit) for each in most]
    if not all(most) or sum(most) < wish.tasks:
        return None
    counts = [1] * len(most)
    if wish.cyclic:
        _deal(counts, most, wish.tasks)
        return counts
    for place, limit in enumerate(most):
        counts[place] += min(limit - 1, wish.tasks - sum(counts))
    return counts


def _deal(counts: list[int], most: Sequence[int], tasks: int) -> None:
    while sum(counts) < tasks:
        for place, limit in enumerate(most):
            if counts[place] < limit and sum(counts) < tasks:
                counts[place] += 1


def _ranks(wish: StepRequest, counts: Sequence[int]) -> list[tuple[int, ...]]:
    """Which ranks each of the nodes gets: in a row, or in turn."""
    if not wish.cyclic:
        firsts = [sum(counts[:place]) for place in range(len(counts))]
        return [
            tuple(range(first, first + count)) for first, count in zip(firsts, counts, strict=True)
        ]
    turns = sorted((turn, place) for place, count in enumerate(counts) for turn in range(count))
    return [
        tuple(rank for rank, (_, owner) in enumerate(turns) if owner == place)
        for place in range(len(counts))
    ]


def _cpus(wish: StepRequest, node: NodeShare, free: _Free, tasks: int) -> int:
    """Tasks that are too many for the CPUs share those that there are."""
    if not wish.exact:
        return node.cpus
    return min(node.cpus if wish.overlap else free.cpus, tasks * wish.cpus_per_task)


def _cpu_ids(wish: StepRequest, node: NodeShare, free: _Free, tasks: int) -> tuple[int, ...]:
    """The same by their numbers; who shares them anyway may use all."""
    if not wish.exact or wish.overlap:
        return node.cpu_ids
    return free.cpu_ids[: tasks * wish.cpus_per_task]


def _has_memory(wish: StepRequest, node: NodeShare, free: _Free) -> bool:
    if not node.memory_mib:
        return True
    if wish.memory_mib > node.memory_mib:
        raise ImpossibleStepError(TOO_MUCH_MEMORY)
    return wish.overlap or wish.memory_mib <= free.memory_mib
