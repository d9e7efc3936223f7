"""Who uses how much: what each user holds now in each queue, and what of it counts lately.

A row says what somebody used up to `as_of`. From then on they use `rate` thousandths of a GPU all
the time, until the rate changes: so a row need only be written when it does, and after a restart
the rates come from the allocations alone.
"""

from collections.abc import Iterable, Mapping

from muster.model.cluster import Node
from muster.model.job import HOLDING, Job
from muster.model.placement import Allocation
from muster.model.policy import SharePolicy
from muster.model.resources import NOTHING, Resources
from muster.model.snapshot import UsedLately
from muster.model.value import Duration, Instant, JobId, NodeId, QueuePath, UserName
from muster.schedule.state.share import decayed, dominant_milli

Leaf = tuple[QueuePath, UserName]

LEAST_MILLI_MS = 60_000
"""Less than a minute of a thousandth of a GPU is forgotten: a row must end some day."""


class UsageLedger:
    """The rows and the rates."""

    def __init__(self, rows: Iterable[UsedLately]) -> None:
        self.rows: dict[Leaf, UsedLately] = {(row.queue, row.user): row for row in rows}
        self._rates: dict[Leaf, int] = {}
        self._held: dict[JobId, tuple[Leaf, int]] = {}

    def hold(self, job: Job, allocation: Allocation | None, whole: Resources) -> None:
        """From now on the job holds this, or nothing; `settle` its leaf first."""
        held = self._held.pop(job.id, None)
        if held is not None:
            self._change(held[0], -held[1])
        if allocation is None or job.state not in HOLDING:
            return
        leaf, milli = leaf_of(job), dominant_milli(amount_of(allocation), whole)
        self._held[job.id] = (leaf, milli)
        self._change(leaf, milli)

    def settled(self, leaf: Leaf, now: Instant, policy: SharePolicy) -> UsedLately:
        """The leaf's row as of now."""
        row = self.rows.get(leaf)
        rate = self._rates.get(leaf, 0)
        if row is None:
            return UsedLately(queue=leaf[0], user=leaf[1], gpu_milli_ms=0, as_of=now)
        elapsed = Duration(max(0, now - row.as_of))
        before = decayed(row.gpu_milli_ms, elapsed=elapsed, half_life=policy.half_life)
        return UsedLately(
            queue=leaf[0], user=leaf[1], gpu_milli_ms=before + rate * elapsed, as_of=now
        )

    def lately(self, now: Instant, policy: SharePolicy) -> tuple[UsedLately, ...]:
        """Every row that counts, those of people who hold something as of now."""
        return tuple(
            self.settled(leaf, now, policy) if leaf in self._rates else row
            for leaf, row in sorted(self.rows.items())
            if leaf in self._rates or row.gpu_milli_ms >= LEAST_MILLI_MS
        )

    def _change(self, leaf: Leaf, milli: int) -> None:
        rate = self._rates.get(leaf, 0) + milli
        if rate:
            self._rates[leaf] = rate
        else:
            self._rates.pop(leaf, None)


def leaf_of(job: Job) -> Leaf:
    return job.spec.queue, job.spec.user


def amount_of(allocation: Allocation) -> Resources:
    """Everything that the attempt holds."""
    if len(allocation.placements) == 1:
        return allocation.placements[0].amount
    return sum((placed.amount for placed in allocation.placements), start=NOTHING)


def capacity(nodes: Mapping[NodeId, Node]) -> Resources:
    """Everything there is."""
    return sum((node.capacity for node in nodes.values()), start=NOTHING)
