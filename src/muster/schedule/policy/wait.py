"""Why each of the others waits, and until when."""

from muster.model.facts import Mover
from muster.model.job import HeldBy, Job
from muster.model.plan import NoEstimate, Wait
from muster.model.reason import NoRoom, WaitReason
from muster.schedule.policy.decide import Turn
from muster.schedule.policy.estimate import Estimates, Expected, Outlook, Outlooks
from muster.schedule.policy.order import Order
from muster.schedule.policy.search import Standing, tiers
from muster.schedule.state.follow import Memory
from muster.schedule.state.roster import Entry, Shape
from muster.schedule.state.share import dominant_milli


def waits(memory: Memory, standing: Standing, turn: Turn, order: Order) -> list[Wait]:
    """One wait for each job that neither starts nor resumes nor has room cleared for it."""
    held = [_held(job) for _, job in sorted(memory.held.items())]
    return held + _Line(standing).waits(order.settled(memory.roster), turn)


def _held(job: Job) -> Wait:
    why = job.why if isinstance(job.why, HeldBy) else HeldBy(user=job.spec.user)
    return Wait(job=job.id, why=why, expected=NoEstimate.HELD)


class _Line:
    """The jobs that wait, one behind the other, each in the pool that it would try first."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing
        self._outlooks = Outlooks(standing)
        self._homes: dict[Shape, tuple[Outlook | None, int]] = {}
        self._estimates = Estimates(standing)

    def waits(self, entries: list[Entry], turn: Turn) -> list[Wait]:
        """The waits of all who were not decided about, first in line first."""
        decided, reasons, dates, homes = turn.decided, turn.reasons, turn.dates, self._homes
        found: list[Wait] = []
        for entry in entries:
            job_id, shape = entry.id, entry.shape
            if job_id in decided:
                continue
            home = homes.get(shape)
            if home is None:
                home = homes[shape] = self._home(shape)
            outlook, milli = home
            # Without a reason of its own it was passed over: its shape had found no room.
            why = reasons.get(job_id) or shape.why
            if type(why) is not NoRoom or job_id in dates:
                when = dates.get(job_id) or self._expected(entry, why, outlook, milli)
            elif outlook is None or outlook.is_blank:
                when = NoEstimate.UNBOUNDED
            else:
                when = outlook.expected(milli)
            if outlook is not None and type(when) is int:
                outlook.add(milli, milli * entry.limit_ms)
            found.append(Wait(job=job_id, why=why, expected=when))
        return found

    def _expected(
        self, entry: Entry, why: WaitReason, outlook: Outlook | None, milli: int
    ) -> Expected:
        if why.facts.mover is Mover.LINE:
            return NoEstimate.UNBOUNDED if outlook is None else outlook.expected(milli)
        return self._estimates.expected(entry, why)

    def _home(self, shape: Shape) -> tuple[Outlook | None, int]:
        """The pool where the first group would be tried first, and the size of the whole job."""
        need = shape.groups[0].need
        milli = max(1, dominant_milli(shape.amount, self._standing.books.whole))
        for tier in tiers(need, self._standing.ledger):
            for option in need.options[tier]:
                return self._outlooks.of(option.pool), milli
        return None, milli
