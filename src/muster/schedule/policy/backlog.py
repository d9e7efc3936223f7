"""Where every waiting job stands after a plan: its position, its priority, when it may start.

A start is expected later or earlier whenever anybody else comes, starts or ends. So this is no part
of a plan; it is worked out when somebody asks, from how things stand right after the plan.
"""

from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from itertools import islice
from typing import NamedTuple

from muster.model.facts import Mover
from muster.model.plan import Backlog, NoEstimate, Priority, Prospect
from muster.model.reason import NoRoom, WaitReason
from muster.model.value import Instant, JobId
from muster.schedule.policy.decide import Decider
from muster.schedule.policy.estimate import Estimates, Expected, Outlook, Outlooks
from muster.schedule.policy.merit import aged
from muster.schedule.policy.order import Order, Standing
from muster.schedule.policy.search import CycleState
from muster.schedule.policy.verdicts import Verdicts
from muster.schedule.state.accounts import QuotaLine
from muster.schedule.state.follow import PlannerState
from muster.schedule.state.roster import Shape, WaitingJob
from muster.schedule.state.share import dominant_milli

HELD = Prospect(expected=NoEstimate.HELD)

Guests = Mapping[WaitingJob, WaitReason]
"""Entries beside those of the roster, and why each of them waits."""

NO_GUESTS: Guests = {}


class OpeningPriorities:
    """What priorities depend on, as it is before the first decision of a plan."""

    def __init__(self, kept: PlannerState) -> None:
        standing, accounts = Standing.of(kept), kept.books.quotas.accounts
        self._now = aged(kept.snapshot.now, kept.policy.order)
        self._shares = {lane: standing.fair_share(lane) for lane in kept.roster.lanes.values()}
        self._evened = standing.evened
        self._accounts = accounts
        self._used: dict[QuotaLine, int] = {
            line: line.used for account in accounts.values() for line in account.own_lines
        }

    def priority(self, entry: WaitingJob) -> Priority:
        """The job's points; age counts from when it could first have begun."""
        evened = self._evened.get(entry.lane.queue, 0)
        merit = entry.merit._replace(short=entry.merit.short + evened)
        return merit.priority(
            age=max(0, self._now + merit.age),
            fair_share=self._shares[entry.lane],
            is_own=self._is_own(entry),
        )

    def _is_own(self, entry: WaitingJob) -> bool:
        account, gpu_milli = self._accounts.get(entry.lane.queue), entry.shape.least_gpu_milli
        if account is None or not gpu_milli:
            return False
        return any(self._used[line] + gpu_milli <= line.guaranteed for line in account.own_lines)


class After(NamedTuple):
    """How things stand right after a plan."""

    kept: PlannerState
    cycle: CycleState
    decider: Decider
    verdicts: Verdicts
    order: Order
    opening: OpeningPriorities


def backlog(after: After) -> Backlog:
    """Everybody who still waits: first those that are held, then the others in their order."""
    found: dict[JobId, Prospect] = dict.fromkeys(sorted(after.kept.held), HELD)
    priority = after.opening.priority
    for position, (entry, expected) in enumerate(_line(after), start=1):
        found[entry.id] = Prospect(expected=expected, position=position, priority=priority(entry))
    return found


def expected_start(after: After, job: JobId) -> Expected:
    """When this one job may start that still waits."""
    if job in after.kept.held:
        return NoEstimate.HELD
    line, asked = _Line(after.cycle, after.decider, after.verdicts), after.kept.roster.entries[job]
    beside = line.beside([asked], after.order.final(after.kept.roster))
    return next(expected for entry, expected in line.expected(beside) if entry is asked)


def expected_starts(after: After, guests: Guests) -> dict[WaitingJob, Expected]:
    """When each of these may start, if it were the only one of them.

    They are variants of one job, which itself may be in the line and does not count.
    """
    if not guests:
        return {}
    line, ids = _Line(after.cycle, after.decider, after.verdicts), {guest.id for guest in guests}
    others = line.beside(guests, after.order.final(after.kept.roster))
    for guest in guests:
        late, submitted_at, job_id = guest.rank
        guest.final_rank = (late - guest.lane.share, submitted_at, job_id)
    ahead = (entry for entry in others if entry.id not in ids)
    together = merge(ahead, sorted(guests, key=_final_rank), key=_final_rank)
    found = (each for each in line.expected(together, guests) if each[0] in guests)
    # Who comes behind the last of them does not matter.
    return dict(islice(found, len(guests)))


def _line(after: After) -> Iterator[tuple[WaitingJob, Expected]]:
    """Those who still wait in their order, each with when it may start."""
    waiting = after.order.final(after.kept.roster)
    return _Line(after.cycle, after.decider, after.verdicts).expected(waiting)


def _final_rank(entry: WaitingJob) -> tuple[int, Instant, JobId]:
    return entry.final_rank


class _Line:
    """The jobs that wait, one behind the other, each in the pool that it would try first."""

    def __init__(self, cycle: CycleState, decider: Decider, verdicts: Verdicts) -> None:
        self._cycle = cycle
        self._decider = decider
        self._verdicts = verdicts
        self._outlooks = Outlooks(cycle)
        self._homes: dict[Shape, tuple[Outlook | None, int]] = {}
        self._estimates = Estimates(cycle)

    def beside(
        self, these: Iterable[WaitingJob], entries: Iterable[WaitingJob]
    ) -> Iterator[WaitingJob]:
        """Those of the entries that may be ahead of one of these: others are in other pools."""
        pools = {self._home(entry.shape)[0] for entry in these}
        return (entry for entry in entries if self._home(entry.shape)[0] in pools)

    def expected(
        self, entries: Iterable[WaitingJob], guests: Guests = NO_GUESTS
    ) -> Iterator[tuple[WaitingJob, Expected]]:
        """When each may start; each but the guests adds to what is ahead of the rest."""
        decided, dates = self._decider.decided, self._decider.dates
        for entry in entries:
            job_id = entry.id
            if job_id in decided:
                continue
            outlook, milli = self._home(entry.shape)
            why = guests.get(entry) or self._verdicts.why(entry)
            when = dates.get(job_id) or self._estimate(entry, why, outlook, milli)
            if outlook is not None and type(when) is int and entry not in guests:
                outlook.add(milli, milli * entry.limit_ms)
            yield entry, when

    def _estimate(
        self, entry: WaitingJob, why: WaitReason, outlook: Outlook | None, milli: int
    ) -> Expected:
        if type(why) is NoRoom or why.facts.mover is Mover.LINE:
            return NoEstimate.UNBOUNDED if outlook is None else outlook.expected(milli)
        return self._estimates.expected(entry, why)

    def _home(self, shape: Shape) -> tuple[Outlook | None, int]:
        """The pool where the first group would be tried first, and the size of the whole job."""
        known = self._homes.get(shape)
        if known is None:
            catalogue, need = self._cycle.ledger.catalogue, shape.groups[0].need
            milli = max(1, dominant_milli(shape.amount, self._cycle.books.whole))
            options = (
                option for tier in catalogue.tiers(need) for option in catalogue.options(need)[tier]
            )
            first = next(options, None)
            outlook = None if first is None else self._outlooks.of(first.pool)
            known = self._homes[shape] = (outlook, milli)
        return known
