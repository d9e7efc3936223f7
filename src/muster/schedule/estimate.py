"""When a waiting job may be expected to start.

Jobs with a reservation in time have a date. For the others it is reckoned from the work ahead of them
in their pool: first what is running leaves, in the order of its limits; behind that, all that is
running or waiting ahead, spread over the pool.
"""

from bisect import bisect_left
from itertools import accumulate

from muster.model.plan import (
    ArrayFull,
    Behind,
    BorrowedOut,
    DependsOn,
    HeldBy,
    MakingRoom,
    MissesDeadline,
    NeverFits,
    NoEstimate,
    NoRoom,
    NoSuchClass,
    NoSuchPool,
    NoSuchQueue,
    NotBefore,
    OverClassLimit,
    OverLimit,
    Reserved,
    TooLong,
    TooManyJobs,
    WaitingToResume,
    WaitReason,
)
from muster.model.queue import is_within
from muster.model.value import Instant, JobId, PoolName
from muster.schedule.books import Books, Holding
from muster.schedule.quota import WITHOUT_END
from muster.schedule.roster import Entry
from muster.schedule.search import Standing
from muster.schedule.share import dominant_milli

Expected = Instant | NoEstimate
Limited = OverLimit | OverClassLimit | TooManyJobs | ArrayFull


class Outlook:
    """One pool: who leaves when, and how much is waiting ahead of the job that is looked at."""

    __slots__ = ("_capacity_milli", "_ends", "_freed", "_now", "_running", "ahead_milli", "work")

    def __init__(
        self, ends: list[tuple[Instant, JobId, int]], capacity_milli: int, now: Instant
    ) -> None:
        bounded = [each for each in ends if each[0] < WITHOUT_END]
        endless_milli = sum(milli for end, _, milli in ends if end >= WITHOUT_END)
        self._ends = [end for end, _, _ in bounded]
        self._freed = list(accumulate(milli for _, _, milli in bounded))
        self._running = sum(max(0, end - now) * milli for end, _, milli in bounded)
        self._capacity_milli = max(0, capacity_milli - endless_milli)
        self._now = now
        self.ahead_milli = 0
        self.work = 0

    def expected(self, milli: int) -> Expected:
        """When a job of this size could start, behind all that was added before."""
        place = bisect_left(self._freed, self.ahead_milli + milli)
        if place < len(self._ends):
            return Instant(max(self._now + 1, self._ends[place]))
        wait_ms = 0
        if self._capacity_milli and self.work < WITHOUT_END:
            wait_ms = (self._running + self.work) // self._capacity_milli
        # Where nothing runs and nothing is ahead, no amount of waiting is known to help.
        return Instant(self._now + wait_ms) if wait_ms else NoEstimate.UNBOUNDED

    def add(self, milli: int, limit_ms: int) -> None:
        """One more waits ahead of the rest."""
        self.ahead_milli += milli
        self.work += milli * limit_ms


def outlooks(standing: Standing) -> dict[PoolName, Outlook]:
    """The outlook of each pool as things stand."""
    books, snapshot = standing.books, standing.snapshot
    capacity: dict[PoolName, int] = {}
    for node in snapshot.nodes.values():
        milli = dominant_milli(node.capacity, books.whole)
        capacity[node.pool] = capacity.get(node.pool, 0) + milli
    return {
        pool: Outlook(books.ends_by_pool.get(pool, []), milli, standing.now)
        for pool, milli in capacity.items()
    }


IN_LINE = frozenset({NoRoom, Behind, WaitingToResume, BorrowedOut})
"""Reasons for which a job waits until those ahead of it have had their turn."""


def expected(entry: Entry, why: WaitReason, standing: Standing) -> Expected:
    """When a job that does not just stand in line may start, or why nobody can say."""
    match why:
        case HeldBy():
            return NoEstimate.HELD
        case DependsOn(never=never):
            return NoEstimate.NEVER if never else NoEstimate.DEPENDENCY
        case NotBefore(at=at):
            return at
        case NeverFits() | NoSuchPool() | NoSuchQueue() | NoSuchClass() | TooLong():
            return NoEstimate.NEVER
        case MissesDeadline():
            return NoEstimate.NEVER
        case Reserved(reservation=name):
            return _end_of_reservation(name, standing)
        case MakingRoom():
            return standing.now if entry.job.claim is None else entry.job.claim.until
        case OverLimit() | OverClassLimit() | TooManyJobs() | ArrayFull():
            return _when_others_end(entry, why, standing)
        case BorrowedOut(asked=asked, at_most=at_most) if asked > at_most:
            return NoEstimate.NEVER
        case NoRoom() | Behind() | WaitingToResume() | BorrowedOut():
            return NoEstimate.UNBOUNDED


def _end_of_reservation(name: str, standing: Standing) -> Expected:
    for each in standing.snapshot.reservations:
        if each.name == name:
            return each.ends_at
    return standing.now


def _when_others_end(entry: Entry, why: Limited, standing: Standing) -> Expected:
    """When enough of those that count against the same limit must have left."""
    missing = 1
    if isinstance(why, (OverLimit, OverClassLimit)):
        if why.asked > why.limit:
            return NoEstimate.NEVER
        missing = why.used + why.asked - why.limit
    rivals = _rivals(entry, why, standing.books)
    for end, _, holding in sorted((each.ends_at, each.job.id, each) for each in rivals):
        missing -= _counted(holding, why)
        if missing <= 0 and end < WITHOUT_END:
            return Instant(max(standing.now, end))
    return NoEstimate.UNBOUNDED


def _rivals(entry: Entry, why: Limited, books: Books) -> list[Holding]:
    spec = entry.job.spec
    match why:
        case OverLimit(queue=path) | TooManyJobs(queue=path):
            queues = [queue for queue in books.by_queue if is_within(queue, path)]
            return [each for queue in queues for each in books.by_queue[queue].values()]
        case OverClassLimit(job_class=name, whose=whose):
            sides = (("user", spec.user), ("queue", spec.queue))
            side = next(side for side, each in sides if each == whose)
            return list(books.by_class_side.get((name, side, whose), {}).values())
        case ArrayFull(array=array):
            queue = books.by_queue.get(spec.queue, {}).values()
            return [each for each in queue if each.spec.array and each.spec.array.array == array]


def _counted(holding: Holding, why: Limited) -> int:
    match why:
        case OverLimit(scope=scope):
            return sum(portion.measured(scope) for portion in holding.portions)
        case OverClassLimit(resource=resource) if resource != "jobs":
            return sum(getattr(portion.amount, resource) for portion in holding.portions)
        case _:
            return 1
