"""Where every waiting job stands after a plan: its position, its priority, when it may start.

A start is expected later or earlier whenever anybody else comes, starts or ends. So this is no part
of a plan; it is worked out when somebody asks, from how things stand right after the plan.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from muster.model.facts import Mover
from muster.model.plan import Backlog, NoEstimate, Priority, Prospect
from muster.model.reason import NoRoom, WaitReason
from muster.model.value import JobId
from muster.schedule.policy.decide import Decider
from muster.schedule.policy.estimate import Estimates, Expected, Outlook, Outlooks
from muster.schedule.policy.merit import aged
from muster.schedule.policy.order import Order
from muster.schedule.policy.search import CycleState
from muster.schedule.policy.verdicts import Verdicts
from muster.schedule.state.accounts import QuotaLine
from muster.schedule.state.follow import PlannerState
from muster.schedule.state.roster import Lane, Shape, WaitingJob
from muster.schedule.state.share import dominant_milli

HELD = Prospect(expected=NoEstimate.HELD)


class OpeningPriorities:
    """What priorities depend on, as it is before the first decision of a plan."""

    def __init__(self, kept: PlannerState) -> None:
        shares, accounts = kept.books.shares, kept.books.quotas.accounts
        self._weights = kept.policy.order
        self._now = aged(kept.snapshot.now, self._weights)
        self._shares: dict[Lane, int] = {
            lane: self._weights.fair_share * shares.factor(lane.leaf)
            for lane in kept.roster.lanes.values()
        }
        self._accounts = accounts
        self._used: dict[QuotaLine, int] = {
            line: line.used for account in accounts.values() for line in account.own_lines
        }

    def priority(self, entry: WaitingJob) -> Priority:
        """The job's points; age counts from when it could first have begun."""
        merit = entry.merit
        return Priority(
            job_class=merit.job_class,
            queue=merit.queue,
            size=merit.size,
            short=merit.short,
            service=merit.service,
            asked=merit.asked,
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
    return next(expected for entry, expected in _line(after) if entry.id == job)


def _line(after: After) -> Iterator[tuple[WaitingJob, Expected]]:
    """Those who still wait in their order, each with when it may start."""
    waiting = after.order.final(after.kept.roster)
    return _Line(after.cycle, after.decider, after.verdicts).expected(waiting)


class _Line:
    """The jobs that wait, one behind the other, each in the pool that it would try first."""

    def __init__(self, cycle: CycleState, decider: Decider, verdicts: Verdicts) -> None:
        self._cycle = cycle
        self._decider = decider
        self._verdicts = verdicts
        self._outlooks = Outlooks(cycle)
        self._homes: dict[Shape, tuple[Outlook | None, int]] = {}
        self._estimates = Estimates(cycle)

    def expected(self, entries: Iterable[WaitingJob]) -> Iterator[tuple[WaitingJob, Expected]]:
        """When each may start; each adds to what is ahead of the rest."""
        decider, homes = self._decider, self._homes
        decided, dates = decider.decided, decider.dates
        for entry in entries:
            job_id, shape = entry.id, entry.shape
            if job_id in decided:
                continue
            home = homes.get(shape)
            if home is None:
                home = homes[shape] = self._home(shape)
            outlook, milli = home
            why = self._verdicts.why(entry)
            if type(why) is not NoRoom or job_id in dates:
                when = dates.get(job_id) or self._estimate(entry, why, outlook, milli)
            elif outlook is None or outlook.is_blank:
                when = NoEstimate.UNBOUNDED
            else:
                when = outlook.expected(milli)
            if outlook is not None and type(when) is int:
                outlook.add(milli, milli * entry.limit_ms)
            yield entry, when

    def _estimate(
        self, entry: WaitingJob, why: WaitReason, outlook: Outlook | None, milli: int
    ) -> Expected:
        if why.facts.mover is Mover.LINE:
            return NoEstimate.UNBOUNDED if outlook is None else outlook.expected(milli)
        return self._estimates.expected(entry, why)

    def _home(self, shape: Shape) -> tuple[Outlook | None, int]:
        """The pool where the first group would be tried first, and the size of the whole job."""
        need = shape.groups[0].need
        milli = max(1, dominant_milli(shape.amount, self._cycle.books.whole))
        for tier in self._cycle.ledger.catalogue.tiers(need):
            for option in self._cycle.ledger.catalogue.options(need)[tier]:
                return self._outlooks.of(option.pool), milli
        return None, milli
