"""When a waiting job may be expected to start.

Jobs with a reservation in time have a date. For the others it is reckoned from the work ahead of
them in their pool: first what is running leaves, in the order of its limits; behind that, all that
is running or waiting ahead, spread over the pool.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from muster.model.facts import Mover
from muster.model.plan import NoEstimate
from muster.model.reason import (
    ArrayFull,
    BorrowedOut,
    Limit,
    MakingRoom,
    OverClassLimit,
    OverLimit,
    Reserved,
    Scheduled,
    TooManyJobs,
    WaitReason,
)
from muster.model.value import Instant, PoolName
from muster.schedule.policy.search import CycleState
from muster.schedule.state.accounts import WITHOUT_END
from muster.schedule.state.books import End, Holding
from muster.schedule.state.roster import WaitingJob

Expected = Instant | NoEstimate


class Outlook:
    """One pool: who leaves when, and how much is waiting ahead of the job that is looked at.

    Whoever goes down the line adds each job's size and work to what is ahead of the rest.
    """

    __slots__ = (
        "_ahead_milli",
        "_capacity_milli",
        "_ends",
        "_freed",
        "_freed_milli",
        "_now",
        "_running",
        "_work",
    )

    def __init__(
        self,
        ends: Sequence[End],
        capacity_milli: int,
        held_milli: int,
        now: Instant,
    ) -> None:
        endless = bisect_left(ends, (WITHOUT_END,))
        overdue = bisect_left(ends, (now,))
        self._ends = ends
        self._freed = list(accumulate([milli for _, _, milli in ends[:endless]]))
        self._freed_milli = self._freed[-1] if self._freed else -1
        running = ends[overdue:endless]
        self._running = sum([(end - now) * milli for end, _, milli in running])
        endless_milli = held_milli - max(0, self._freed_milli)
        self._capacity_milli = max(0, capacity_milli - endless_milli)
        self._now = now
        self._ahead_milli = 0
        self._work = 0

    def add(self, milli: int, work: int) -> None:
        """One more is ahead of the rest."""
        self._ahead_milli += milli
        self._work += work

    def expected(self, milli: int) -> Expected:
        """When a job of this size could start, behind all that was added before."""
        needed_milli = self._ahead_milli + milli
        if needed_milli <= self._freed_milli:
            place = bisect_left(self._freed, needed_milli)
            return Instant(max(self._now + 1, self._ends[place][0]))
        wait_ms = 0
        if self._capacity_milli and self._work < WITHOUT_END:
            wait_ms = (self._running + self._work) // self._capacity_milli
        # Where nothing runs and nothing is ahead, no amount of waiting is known to help.
        return Instant(self._now + wait_ms) if wait_ms else NoEstimate.UNBOUNDED


class Outlooks:
    """The outlook of each pool as things stand, worked out when it is first asked for."""

    def __init__(self, cycle: CycleState) -> None:
        self._cycle = cycle
        self._known: dict[PoolName, Outlook] = {}

    def of(self, pool: PoolName) -> Outlook | None:
        """The outlook of this pool, if it has nodes."""
        books = self._cycle.books
        known = self._known.get(pool)
        if known is None and pool in books.milli_by_pool:
            ends, milli = books.ends(pool), books.milli_by_pool[pool]
            held_milli, now = books.held_by_pool[pool], self._cycle.now
            known = self._known[pool] = Outlook(ends, milli, held_milli, now)
        return known


class Estimates:
    """When jobs that do not just stand in line may start; what was found out is kept for a plan."""

    def __init__(self, cycle: CycleState) -> None:
        self._cycle = cycle
        self._known: dict[WaitReason, Expected] = {}
        self._leaving: dict[object, list[Holding]] = {}

    def expected(self, entry: WaitingJob, why: WaitReason) -> Expected:
        """When a job that waits for this reason may start, or why that is unknown."""
        if isinstance(why, MakingRoom):
            claim = entry.job.claim
            return self._cycle.now if claim is None else claim.until
        known = self._known.get(why)
        if known is None:
            known = self._known[why] = self._expected(why)
        return known

    def _expected(self, why: WaitReason) -> Expected:
        if isinstance(why, Limit):
            return self._when_others_end(why)
        if isinstance(why, Reserved):
            return self._end_of_reservation(why.reservation)
        if isinstance(why, Scheduled) and why.due > self._cycle.now:
            return why.due
        match why.facts.mover:
            case Mover.OTHER_JOB:
                return NoEstimate.DEPENDENCY
            case Mover.HOLDER:
                return NoEstimate.HELD
            case Mover.USER | Mover.ADMIN | Mover.CLOCK:
                return NoEstimate.NEVER
            case Mover.LINE | Mover.LIMIT:
                # A job in line is answered by the outlook of its pool, a limit above.
                return NoEstimate.UNBOUNDED

    def _end_of_reservation(self, name: str) -> Expected:
        for each in self._cycle.snapshot.reservations:
            if each.name == name:
                return each.ends_at
        return NoEstimate.UNBOUNDED

    def _when_others_end(self, why: Limit) -> Expected:
        """When enough of those that count against the same limit must have left."""
        if why.facts.mover is Mover.USER:
            return NoEstimate.NEVER
        missing = why.missing
        for holding in self._rivals(why):
            missing -= _counted(holding, why)
            if missing <= 0 and holding.ends_at < WITHOUT_END:
                return Instant(max(self._cycle.now + 1, holding.ends_at))
        return NoEstimate.UNBOUNDED

    def _rivals(self, why: Limit) -> list[Holding]:
        """Those that count against the same limit, in the order in which they must end."""
        key = _rivalry(why)
        known = self._leaving.get(key)
        if known is None:
            found = self._find_rivals(why)
            known = sorted(found, key=lambda each: (each.ends_at, each.job.id))
            self._leaving[key] = known
        return known

    def _find_rivals(self, why: Limit) -> list[Holding]:
        books = self._cycle.books
        match why:
            case OverLimit(queue=path) | BorrowedOut(queue=path) | TooManyJobs(queue=path):
                queues = (books.by_queue.get(each, {}) for each in books.quotas.subtree(path))
                return [each for queue in queues for each in queue.values()]
            case OverClassLimit(job_class=name, side=side, whose=whose):
                return list(books.by_class_side.get((name, side, whose), {}).values())
            case ArrayFull():
                return [each for each in books.holdings.values() if why.counts(each.spec)]


def _rivalry(why: Limit) -> object:
    match why:
        case OverLimit(queue=path) | BorrowedOut(queue=path) | TooManyJobs(queue=path):
            return path
        case OverClassLimit(job_class=name, side=side, whose=whose):
            return (name, side, whose)
        case ArrayFull(array=array):
            return array


def _counted(holding: Holding, why: Limit) -> int:
    scope = why.scope
    return 1 if scope is None else sum(portion.measured(scope) for portion in holding.portions)
