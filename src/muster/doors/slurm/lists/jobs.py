"""A job as Slurm's lists show it: one row, and the facts about it."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from math import ceil

from muster.controller.messages import JobView
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.priority import rank_of
from muster.doors.slurm.submit.labels import LABEL
from muster.doors.slurm.words import states, times
from muster.doors.slurm.words.hostlist import compressed, ranges_text
from muster.doors.slurm.words.sizes import memory_text
from muster.doors.slurm.words.states import State
from muster.model.facts import Mover
from muster.model.gpu import GpuAsk, Mig
from muster.model.history import Attempt
from muster.model.job import Job, JobState, TaskGroup
from muster.model.launch import NO_LAUNCH, Launch
from muster.model.plan import NoEstimate, Priority
from muster.model.resources import NOTHING, Resources
from muster.model.value import Duration, GpuModel, Instant, JobId

LaunchOf = Callable[[Job], Launch | None]


class JobRow:
    """A job, or the waiting parts of an array as one row.

    attempt: the last one, of a job that is over. indices: of the parts that share the row.
    component: which one of a heterogeneous job.
    """

    __slots__ = (
        "_launch",
        "attempt",
        "component",
        "indices",
        "job",
        "launch_of",
        "listing",
        "state",
        "view",
    )

    def __init__(self, view: JobView, listing: Listing, attempt: Attempt | None = None) -> None:
        self.view = view
        self.job = view.job
        self.listing = listing
        self.attempt = attempt
        self.state: State = states.state_of(view.job)
        self.indices: tuple[int, ...] = ()
        self.component: int | None = None
        self.launch_of: LaunchOf | None = None
        self._launch: Launch | None = None

    @property
    def launch(self) -> Launch:
        """What it runs, as far as the user may see it."""
        if self._launch is None:
            found = self.launch_of(self.job) if self.launch_of is not None else None
            self._launch = found or NO_LAUNCH
        return self._launch

    def label(self, name: str) -> str | None:
        """What was kept of the request under this name."""
        return self.job.spec.labels.get(LABEL + name)


def collapsed(rows: Iterable[JobRow]) -> list[JobRow]:
    """The rows, with the waiting parts of each array as one, where the first of them was."""
    found: list[JobRow] = []
    waiting: dict[tuple[JobId, JobState], list[int]] = {}
    firsts: list[tuple[JobRow, list[int]]] = []
    for row in rows:
        part = row.job.spec.array
        if part is None or row.job.attempt or row.state is not State.PENDING:
            found.append(row)
            continue
        indices = waiting.setdefault((part.array, row.job.state), [])
        if not indices:
            found.append(row)
            firsts.append((row, indices))
        indices.append(part.index)
    for row, indices in firsts:
        row.indices = tuple(sorted(indices))
    return found


def id_text(row: JobRow) -> str:
    """`12`, `12_3`, `12_[4-9%2]`, `12+1`."""
    part = row.job.spec.array
    if part is None:
        return str(row.job.id) if row.component is None else f"{row.job.id}+{row.component}"
    return f"{part.array}_{index_text(row, brackets=True)}"


def index_text(row: JobRow, *, brackets: bool = False) -> str:
    part = row.job.spec.array
    if part is None:
        return "N/A"
    if not row.indices:
        return str(part.index)
    most = "" if part.at_once is None else f"%{part.at_once}"
    text = ranges_text(row.indices) + most
    return f"[{text}]" if brackets else text


def plain_id(row: JobRow) -> str:
    return str(row.job.id)


def array_id(row: JobRow) -> str:
    return str(family(row))


def family(row: JobRow) -> int:
    """The id that it shares with the other parts of its array."""
    part = row.job.spec.array
    return row.job.id if part is None else part.array


def is_batch(row: JobRow) -> bool:
    """Has it a script of its own? What srun and salloc made has none."""
    return row.label("batch-flag") != "0"


def reason(row: JobRow) -> str:
    wait = row.view.wait
    return states.reason(row.job, None if wait is None else wait.why)


def partition(row: JobRow) -> str:
    held = row.view.allocation
    if held is not None:
        return held.placements[0].pool
    if row.attempt is not None and row.attempt.pools:
        return row.attempt.pools[0]
    return ",".join(row.job.spec.pools) or row.listing.default_pool


def nodes(row: JobRow) -> tuple[str, ...]:
    """Where it runs or ran, by name."""
    held = row.view.allocation
    if held is not None:
        if len(held.placements) == 1:
            return (held.placements[0].node,)
        return tuple(sorted({placed.node for placed in held.placements}, key=by_number))
    if row.attempt is not None and row.state is not State.PENDING:
        there = row.attempt.nodes
        return there if len(there) == 1 else tuple(sorted(set(there), key=by_number))
    return ()


def by_number(name: str) -> tuple[str, int, str]:
    """node2 comes before node10."""
    prefix = name.rstrip("0123456789")
    number = name[len(prefix) :]
    return prefix, int(number) if number else -1, name


def node_list(row: JobRow) -> str:
    return compressed(nodes(row))


def where_or_why(row: JobRow) -> str:
    """The last column of squeue."""
    if row.state is State.PENDING or (row.state not in states.LIVE and not nodes(row)):
        return f"({reason(row)})"
    if row.state not in states.LIVE and (word := reason(row)) != "None":
        return f"({word})"
    return node_list(row)


def node_count(row: JobRow) -> int:
    there = nodes(row)
    if there:
        return len(there)
    asked = row.job.spec.labels.get(_NODES)
    return _apart(row.job.spec.groups) if asked is None else int(asked)


def most_nodes(row: JobRow) -> int:
    """The most that it may have; 0 while it waits and set no bound."""
    return len(nodes(row)) or int(row.label("max-nodes") or 0)


def task_count(row: JobRow) -> int:
    asked = row.label("ntasks")
    return int(asked) if asked else sum(group.count for group in row.job.spec.groups)


def cpus_per_task(row: JobRow) -> int:
    asked = row.label("cpus-per-task")
    if asked:
        return int(asked)
    return max(1, ceil(amount(row).cpu_milli / 1_000 / max(1, task_count(row))))


def amount(row: JobRow) -> Resources:
    """What it holds, held or asks for."""
    held = row.view.allocation
    if held is not None:
        if len(held.placements) == 1:
            return held.placements[0].amount
        return sum((placed.amount for placed in held.placements), NOTHING)
    if row.attempt is not None:
        return row.attempt.amount
    return asked_amount(row.job)


def asked_amount(job: Job) -> Resources:
    found = NOTHING
    for group in job.spec.groups:
        models = group.each.gpus.models if group.each.gpus else ()
        found += group.each.amount(models[0] if models else None) * group.count
    return found


def cpus(row: JobRow) -> int:
    return max(1, ceil(amount(row).cpu_milli / 1_000))


def tres(row: JobRow, *, typed: bool) -> str:
    """`cpu=4,mem=8G,node=1,billing=4,gres/gpu=2,gres/gpu:a100=2`."""
    found = amount(row)
    parts = [f"cpu={cpus(row)}"]
    if found.memory_mib:
        parts.append(f"mem={memory_text(found.memory_mib)}")
    parts += [f"node={node_count(row)}", f"billing={cpus(row)}"]
    count = gpu_count(row)
    if count:
        parts.append(f"gres/gpu={count}")
    if typed and count:
        parts += [f"gres/gpu:{kind}={many}" for kind, many in sorted(gpu_types(row).items())]
    return ",".join(parts)


def gpu_count(row: JobRow) -> int:
    """GPUs or parts of them: Slurm counts both as devices."""
    held = row.view.allocation
    if held is not None:
        return sum(len(placed.devices) for placed in held.placements)
    return sum(count * gpus.count for count, gpus in _with_gpus(row.job))


def gpu_types(row: JobRow) -> Counter[str]:
    """How many GPUs of which type the job holds."""
    found: Counter[str] = Counter()
    held = row.view.allocation
    for placed in held.placements if held is not None else ():
        node = row.listing.nodes.get(placed.node)
        models = {each.id: each.model for each in node.devices} if node else {}
        for share in placed.devices:
            model = models.get(share.device, GpuModel("gpu"))
            kind = row.listing.gpu_type(model)
            if isinstance(share.slice, Mig):
                kind = f"{kind}_{share.slice.profile}"
            found[kind] += 1
    return found


def tres_per_node(row: JobRow) -> str:
    """As it was asked for."""
    asked = row.label("tres-per-node")
    if asked is not None:
        return asked
    if row.label("tres-per-job") or row.label("tres-per-task"):
        return "N/A"
    asks = [gpus for _, gpus in _with_gpus(row.job)]
    return f"gres:gpu:{asks[0].count}" if asks else "N/A"


def cpus_per_node(row: JobRow) -> int:
    """The least that a node must have."""
    return max(1, *(group.each.cpu_milli // 1_000 for group in row.job.spec.groups))


def memory_per_node_mib(row: JobRow) -> int:
    return max((group.each.memory_mib for group in row.job.spec.groups), default=0)


def time_limit(row: JobRow) -> Duration | None:
    """Its own, or that of the partition it is in or waits for."""
    limit = row.job.spec.time_limit
    if limit is None:
        return row.listing.usual_limit(partition(row).partition(",")[0])
    return None if limit >= times.ENDLESS_LIMIT else limit


def started_at(row: JobRow) -> Instant | None:
    return None if row.state is State.PENDING else row.view.started_at


def expected_at(row: JobRow) -> Instant | None:
    """When it began, or is expected to. Slurm has no date for a job that waits for another."""
    begun, wait = started_at(row), row.view.wait
    if begun is not None:
        return begun
    prospect = None if wait is None else row.listing.backlog.get(row.job.id)
    if prospect is None or isinstance(prospect.expected, NoEstimate):
        return row.job.begin_at
    if wait is not None and wait.why.facts.mover is Mover.OTHER_JOB:
        return row.job.begin_at
    return max(prospect.expected, row.listing.now)


def elapsed(row: JobRow) -> Duration:
    begun = started_at(row)
    if begun is None:
        return Duration(0)
    until = row.view.ended_at or row.listing.now
    return Duration(max(0, until - begun - suspended(row)))


def suspended(row: JobRow) -> Duration:
    """How long the attempt was stopped in place."""
    held = row.view.allocation
    if held is None:
        return Duration(0) if row.attempt is None else row.attempt.stood
    since = held.stands_since
    return Duration(held.stood + (0 if since is None else max(0, row.listing.now - since)))


def ends_at(row: JobRow) -> Instant | None:
    if row.view.ended_at is not None:
        return row.view.ended_at
    begun, limit = expected_at(row), time_limit(row)
    return None if begun is None or limit is None else Instant(begun + limit)


def at_text(row: JobRow, at: Instant | None, otherwise: str = "N/A") -> str:
    listing = row.listing
    return otherwise if at is None else times.instant_text(at, listing.time_form, listing.zone)


def priority(row: JobRow) -> int:
    """The number that the planner used, within Slurm's bounds; held jobs have none.

    Of a job that does not wait, what it brought with it: its class, its queue, its size and its
    own priority.
    """
    if row.job.state is JobState.HELD:
        return 0
    if row.view.wait is not None:
        rank = row.listing.ranks.get(row.job.id)
        if rank is not None:
            return rank
    return rank_of(row.listing.own_priority(row.job))


def priority_parts(row: JobRow) -> Priority:
    """What that number is made of."""
    prospect = None if row.view.wait is None else row.listing.backlog.get(row.job.id)
    if prospect is not None and prospect.priority is not None:
        return prospect.priority
    return row.listing.own_priority(row.job)


_NODES = LABEL + "nodes"


@lru_cache(maxsize=4_096)
def _apart(groups: tuple[TaskGroup, ...]) -> int:
    return sum(group.count if group.where.max_per_node == 1 else 1 for group in groups)


def _with_gpus(job: Job) -> list[tuple[int, GpuAsk]]:
    """How many tasks want which GPUs."""
    groups = job.spec.groups
    return [(group.count, group.each.gpus) for group in groups if group.each.gpus is not None]
