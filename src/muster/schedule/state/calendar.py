"""Time: how long a job may run where, and which reservations are in its way."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from muster.model.cluster import AmountReserved, NodesReserved, Pool, is_guest
from muster.model.job import Job, JobSpec
from muster.model.policy import Policy
from muster.model.queue import JobClass, Scope
from muster.model.reason import MissesDeadline, ReservationClosed, Reserved, TooLong, WaitReason
from muster.model.snapshot import Snapshot
from muster.model.value import Duration, PoolName, QueuePath, UserName
from muster.schedule.room.index import NodeKind
from muster.schedule.state.accounts import WITHOUT_END, Portion

if TYPE_CHECKING:
    from muster.schedule.state.books import Books, Holding


def time_limit(spec: JobSpec, pool: Pool, policy: Policy) -> int:
    """How long the job may run there, in milliseconds; `WITHOUT_END` if nothing says."""
    for limit in (spec.time_limit, pool.default_time, policy.default_time):
        if limit is not None:
            return limit
    return WITHOUT_END


def likely_time(job: Job, pool: Pool, policy: Policy, *, is_bound: bool, ran: int = -1) -> int:
    """How long the job may run there, or, where nothing says so, how long such jobs do run.

    is_bound: somebody has a reservation that experience is not good enough for.
    ran: how long it has run already. One that ran longer than expected is expected to take twice
    as long, then four times: the longer a job has run, the longer it is likely to run on.
    """
    limit = time_limit(job.spec, pool, policy)
    if limit < WITHOUT_END or is_bound or job.expected is None:
        return limit
    likely = max(1, job.expected)
    while likely <= ran:
        likely *= 2
    return likely


class Calendar:
    """What is promised to whom when, for one plan."""

    def __init__(
        self, snapshot: Snapshot, policy: Policy, capacity: Callable[[Scope], int]
    ) -> None:
        self._now = snapshot.now
        self._policy = policy
        self._amounts = [
            each
            for each in snapshot.reservations
            if isinstance(each, AmountReserved) and each.ends_at > snapshot.now
        ]
        self._by_name = {each.name: each for each in snapshot.reservations}
        self._guests: dict[tuple[QueuePath, UserName, str | None], tuple[str, ...]] = {}
        self._thresholds = _thresholds(snapshot)
        self._order = _order(snapshot, policy, self._thresholds)
        self._capacity = {each.pool: capacity(Scope(pool=each.pool)) for each in self._amounts}
        self._outside = {each.name: 0 for each in self._amounts}

    @property
    def order(self) -> tuple[object, ...]:
        """How the lengths of time compare at which jobs begin to collide, and what is over.

        While that stays as it is, jobs of one bucket collide with the same as before.
        """
        return self._order

    def bucket(self, spec: JobSpec) -> int | None:
        """Jobs with limits in one bucket collide with the same reservations."""
        if spec.time_limit is None:
            return None
        return bisect_left(self._thresholds, spec.time_limit)

    def guest_of(self, spec: JobSpec) -> tuple[str, ...]:
        """The reservations that the job may use."""
        if not self._by_name:
            return ()
        key = (spec.queue, spec.user, spec.reservation)
        known = self._guests.get(key)
        if known is None:
            all_of_them = self._by_name.values()
            known = tuple(each.name for each in all_of_them if is_guest(each, *_whose(spec)))
            self._guests[key] = known
        return known

    @property
    def has_amounts(self) -> bool:
        """Is any capacity promised by amount?"""
        return bool(self._amounts)

    def closed(self, kind: NodeKind, spec: JobSpec, job_class: JobClass) -> WaitReason | None:
        """Why a job may not begin on nodes of this kind now, or None."""
        limit = time_limit(spec, kind.pool, self._policy)
        for most in (job_class.max_time, kind.pool.max_time):
            if most is not None and limit > most:
                asked = Duration(limit) if limit < WITHOUT_END else None
                return TooLong(asked=asked, allowed=most)
        if spec.deadline is not None and self._now + limit > spec.deadline:
            return MissesDeadline(deadline=spec.deadline)
        if spec.reservation is not None:
            closed = self._not_open(spec, kind, spec.reservation)
            if closed is not None:
                return closed
        for each in kind.reserved:
            if self._collides(each, spec, limit):
                return Reserved(reservation=each.name, begins_at=each.begins_at)
        return None

    def refusal(self, spec: JobSpec, portions: Sequence[Portion], limit: int) -> Reserved | None:
        """Would the job take, together with other outsiders, what is promised to a queue?"""
        for each in self._amounts:
            if not self._is_outside(each, spec, limit):
                continue
            asked = _gpu_milli_in(each.pool, portions)
            taken = self._outside[each.name] + asked
            if asked and taken + each.gpu_milli > self._capacity[each.pool]:
                return Reserved(reservation=each.name, begins_at=each.begins_at)
        return None

    def take_stock(self, books: "Books") -> None:
        """Count what outsiders hold already, less those who leave before the window begins."""
        holdings = books.holdings
        for each in self._amounts:
            ends = books.ends(each.pool)
            first = (
                0
                if each.begins_at <= self._now
                else bisect_right(ends, (each.begins_at, WITHOUT_END))
            )
            here = (holdings[job_id] for _, job_id, _ in ends[first:])
            self._outside[each.name] += _held_outside(each, here)

    def note(
        self, spec: JobSpec, portions: Sequence[Portion], ends_at: int, *, sign: int = 1
    ) -> None:
        """Somebody holds this until then (or, with sign -1, no longer)."""
        for each in self._amounts:
            if self._is_outside(each, spec, ends_at - self._now):
                self._outside[each.name] += sign * _gpu_milli_in(each.pool, portions)

    def _not_open(self, spec: JobSpec, kind: NodeKind, name: str) -> ReservationClosed | None:
        """Is it not yet, or no longer, time for what the job asks for, or is that elsewhere?"""
        found = self._by_name.get(name)
        now = self._now
        if found is None:
            return ReservationClosed(reservation=name, begins_at=now, ends_at=now)
        is_open = (found.begins_at <= now or found.flexible) and now < found.ends_at
        if is_open and name in kind.inside and is_guest(found, *_whose(spec)):
            return None
        return ReservationClosed(reservation=name, begins_at=found.begins_at, ends_at=found.ends_at)

    def _collides(self, each: NodesReserved, spec: JobSpec, limit: int) -> bool:
        if is_guest(each, *_whose(spec)):
            return False
        return each.begins_at < self._now + limit and each.ends_at > self._now

    def _is_outside(self, each: AmountReserved, spec: JobSpec, limit: int) -> bool:
        # One that is overdue is still there.
        is_there = each.begins_at < self._now + max(1, limit)
        return is_there and each.name not in self.guest_of(spec)


def _whose(spec: JobSpec) -> tuple[UserName, QueuePath, str | None]:
    return spec.user, spec.queue, spec.reservation


def _held_outside(promised: AmountReserved, holdings: "Iterable[Holding]") -> int:
    """How much GPU those to whom it is not promised hold of the pool."""
    outside, held = dict[tuple[UserName, QueuePath, str | None], bool](), 0
    for holding in holdings:
        whose, portions = _whose(holding.job.spec), holding.portions
        is_outside = outside.get(whose)
        if is_outside is None:
            is_outside = outside[whose] = not is_guest(promised, *whose)
        if is_outside:
            is_one = len(portions) == 1 and portions[0].pool == promised.pool
            held += (
                portions[0].amount.gpu_milli if is_one else _gpu_milli_in(promised.pool, portions)
            )
    return held


def _gpu_milli_in(pool: PoolName, portions: Sequence[Portion]) -> int:
    return sum(part.amount.gpu_milli for part in portions if part.pool == pool)


def _order(snapshot: Snapshot, policy: Policy, thresholds: list[int]) -> tuple[object, ...]:
    now = snapshot.now
    begins = [
        each.begins_at - now for each in snapshot.reservations if isinstance(each, NodesReserved)
    ]
    pools = [each for _, each in sorted(snapshot.pools.items())]
    classes = [each for _, each in sorted(snapshot.classes.items())]
    defaults = [
        policy.default_time if each.default_time is None else each.default_time for each in pools
    ]
    lengths = [*begins, *(each.max_time for each in (*pools, *classes)), *defaults]
    return (
        tuple([None if each is None else bisect_left(thresholds, each) for each in lengths]),
        tuple([(each.begins_at <= now, each.ends_at > now) for each in snapshot.reservations]),
    )


def _thresholds(snapshot: Snapshot) -> list[int]:
    """The lengths of time at which a longer job begins to collide with something."""
    begins = [
        each.begins_at - snapshot.now
        for each in snapshot.reservations
        if isinstance(each, NodesReserved)
    ]
    pools = [each.max_time for each in snapshot.pools.values() if each.max_time is not None]
    classes = [each.max_time for each in snapshot.classes.values() if each.max_time is not None]
    return sorted({*begins, *pools, *classes})
