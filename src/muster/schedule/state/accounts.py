"""What a queue may hold, in plain numbers, and what its jobs hold of it."""

from typing import NamedTuple

from muster.model.amounts import covers, resolved
from muster.model.gpu import Mig
from muster.model.queue import Ceiling, Meter, Queue, Quota, Scope
from muster.model.resources import Resources
from muster.model.value import GpuModel, PoolName, QueuePath

WITHOUT_END = 1 << 60
UNCAPPED = Ceiling()


class Portion(NamedTuple):
    """What tasks of one group hold, or ask for, in one pool on one model."""

    pool: PoolName
    model: GpuModel | None
    amount: Resources
    profile: str | None = None
    instances: int = 0

    def measured(self, scope: Scope) -> int:
        """How much of the scope's meter this is."""
        match scope.meter:
            case Meter.GPU:
                return self.amount.gpu_milli
            case Meter.CPU:
                return self.amount.cpu_milli
            case Meter.MEMORY:
                return self.amount.memory_mib
            case Meter.MIG:
                return self.instances if scope.profile == self.profile else 0


class QuotaLine:
    """One line of a queue's quota in plain numbers, and what its subtree uses of it."""

    __slots__ = (
        "ceiling",
        "claimed",
        "guaranteed",
        "kept",
        "leaving",
        "limit",
        "path",
        "quota",
        "scope",
        "used",
    )

    def __init__(self, path: QueuePath, quota: Quota) -> None:
        self.path = path
        self.quota = quota
        self.scope = quota.scope
        self.used = 0
        # Of what is used, what is only claimed yet, and what victims of claims will give back.
        self.claimed = 0
        self.leaving = 0
        self.guaranteed = 0
        self.limit = WITHOUT_END
        self.ceiling = WITHOUT_END
        self.kept = 0

    def resolve(self, capacity: int) -> None:
        """Work out what percentages come to."""
        quota = self.quota
        self.guaranteed = resolved(quota.guaranteed, capacity)
        if quota.limit is not None:
            self.limit = resolved(quota.limit, capacity)
        if quota.borrow_limit is not None:
            self.ceiling = self.guaranteed + resolved(quota.borrow_limit, capacity)
        if quota.lend_limit is not None:
            self.kept = max(0, self.guaranteed - resolved(quota.lend_limit, capacity))


class Account:
    """One queue: its own lines, the queues above it, and how many jobs its subtree runs."""

    __slots__ = (
        "above",
        "counted",
        "gpu_lines",
        "jobs",
        "keeps",
        "lines",
        "lines_by_place",
        "own_lines",
        "path",
        "queue",
    )

    def __init__(self, queue: Queue, lines: list[QuotaLine]) -> None:
        self.queue = queue
        self.path = queue.path
        self.lines = lines
        self.above: tuple[Account, ...] = ()
        # What bounds the whole queue whatever its jobs ask for, here and above.
        self.gpu_lines: tuple[QuotaLine, ...] = ()
        self.counted: tuple[Account, ...] = ()
        self.jobs = 0
        self.keeps = False
        self.own_lines: tuple[QuotaLine, ...] = ()
        self.lines_by_place: dict[tuple[PoolName, GpuModel | None], list[QuotaLine]] = {}

    def lines_at(self, pool: PoolName, model: GpuModel | None) -> list[QuotaLine]:
        """The lines, here and above, that count what lies in this pool on this model."""
        known = self.lines_by_place.get((pool, model))
        if known is None:
            known = self.lines_by_place[pool, model] = [
                line
                for account in self.above
                for line in account.lines
                if covers(line.scope, pool, model)
            ]
        return known


def portion_of(
    pool: PoolName, model: GpuModel | None, amount: Resources, part: object, instances: int
) -> Portion:
    """A portion; only MIG instances are counted by profile."""
    profile = part.profile if isinstance(part, Mig) else None
    return Portion(pool, model, amount, profile, instances if profile else 0)
