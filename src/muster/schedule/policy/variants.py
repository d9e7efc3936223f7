"""What would become of one waiting job if it asked for something else: one plan answers for all.

Every variant of the job comes up where its request puts it. It is decided about as if it were the
job, and what it was given is taken back before the next job: so each finds what it would have found
alone, and the others are decided about as if none had been there.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from muster.model.job import Job
from muster.model.plan import Clear, Move, Start
from muster.model.reason import WaitReason
from muster.model.value import Instant, JobId
from muster.schedule.policy.backlog import After, expected_starts
from muster.schedule.policy.estimate import Expected
from muster.schedule.policy.order import Next, Order
from muster.schedule.policy.verdicts import Verdicts
from muster.schedule.room.index import Promise, Room
from muster.schedule.room.ledger import Ledger
from muster.schedule.state.roster import Lane, WaitingJob

Rank = tuple[int, Instant, JobId]

NEVER: Rank = (1 << 62, Instant(0), JobId(0))
"""After everybody."""


class Variant(NamedTuple):
    """What would become of a job: whether it starts now, and else when it may."""

    starts_now: bool
    expected: Expected


class Outcome(NamedTuple):
    """What was decided about a variant; a date if room was promised to it."""

    decided: Move | WaitReason
    date: Instant | None


class _GuestUp(NamedTuple):
    """Smallest first; the place among the guests makes every two different."""

    rank: Rank
    place: int
    guest: WaitingJob


def variants(after: After, jobs: Sequence[Job]) -> list[Variant | None]:
    """What would become of each of these, all of one id, user and queue, if it were the only one.

    None if this plan cannot tell: a job that would have come after the variant came before it.
    after: before the first decision of a plan, with the first of them as the job of that id.
    """
    entry = after.kept.roster.entries[jobs[0].id]
    guests = [entry, *(after.kept.roster.entry(job, entry.lane) for job in jobs[1:])]
    outcomes = _outcomes(after, guests)
    waiting = {
        guest: outcome.decided
        for guest, outcome in outcomes.items()
        if not isinstance(outcome.decided, Move) and outcome.date is None
    }
    expected = expected_starts(after, waiting)
    return [
        _variant(outcomes[guest], expected.get(guest, after.cycle.now))
        if guest in outcomes
        else None
        for guest in guests
    ]


def _outcomes(after: After, guests: list[WaitingJob]) -> dict[WaitingJob, Outcome]:
    """Decide about everybody, and about each guest where it comes up, if that can be told."""
    kept, decider, verdicts = after.kept, after.decider, after.verdicts
    first, lane = guests[0], guests[0].lane
    order = OrderWithGuests.of(kept)
    found: dict[WaitingJob, Outcome] = {}
    # The first of them is in the roster, and a guest like the others here.
    entries = lane.entries
    lane.rows.remove(first.rank)
    lane.entries = [entry for entry in entries if entry is not first]
    try:
        for entry in order.with_guests(guests, kept.roster.lanes.values(), verdicts):
            if entry in order.guests:
                found[entry] = _outcome(entry, after)
                continue
            before = (verdicts.state, verdicts.clearings_left)
            decider.take(entry)
            if entry.lane is lane and (verdicts.state, verdicts.clearings_left) != before:
                order.dismiss_before(entry)
    finally:
        lane.rows.add((*first.rank, first))
        lane.entries = entries
    return found | order.passed


class OrderWithGuests(Order):
    """An order in which some wait in one lane beside each other, and hold up no one there.

    A guest comes up when those before it in the lane were decided about; from then on its own rank
    is compared with everybody's. So it comes when it would come without the other guests, unless
    one that would have been behind it was given something meanwhile.
    passed: those of whom it was plain that they cannot start.
    """

    def with_guests(
        self, guests: Sequence[WaitingJob], lanes: Iterable[Lane], verdicts: Verdicts
    ) -> Iterator[WaitingJob]:
        """Jobs by priority, with the guests, who are all of one lane."""
        self.guests = set(guests)
        self.passed: dict[WaitingJob, Outcome] = {}
        self._lane = guests[0].lane
        self._behind = sorted(guests, key=_rank, reverse=True)
        self._up: list[_GuestUp] = []
        self._verdicts = verdicts
        for entry in self.by_priority(lanes, verdicts):
            yield from self._before(self.rank_now(entry))
            yield entry
        yield from self._before(NEVER)

    def dismiss_before(self, entry: WaitingJob) -> None:
        """Leave out those who have come up and would have been before this one in the lane."""
        self._up = [each for each in self._up if each.guest.rank > entry.rank]
        heapify(self._up)

    def _next(self, lane: Lane, place: int, verdicts: Verdicts) -> Next | None:
        found = super()._next(lane, place, verdicts)
        if lane is self._lane:
            self._come_up(NEVER if found is None else found.entry.rank)
        return found

    def _come_up(self, rank: Rank) -> None:
        while self._behind and self._behind[-1].rank < rank:
            guest = self._behind.pop()
            if not self._passes_over(guest):
                heappush(self._up, _GuestUp(self.rank_now(guest), len(self._behind), guest))

    def _before(self, rank: Rank) -> Iterator[WaitingJob]:
        """Guests that come before this rank. Ranks only ever get worse."""
        while self._up and self._up[0].rank < rank:
            known = heappop(self._up)
            if self._passes_over(known.guest):
                continue
            again = self.rank_now(known.guest)
            if again > known.rank:
                heappush(self._up, known._replace(rank=again))
            else:
                yield known.guest

    def _passes_over(self, guest: WaitingJob) -> bool:
        verdicts = self._verdicts.on_trial()
        is_plain = verdicts.passes_over(guest)
        if is_plain:
            self.passed[guest] = Outcome(verdicts.why(guest), None)
        return is_plain


def _outcome(entry: WaitingJob, after: After) -> Outcome:
    """Decide about this one, and take back what it was given."""
    ledger, shape = after.cycle.ledger, entry.shape
    promises = [(room, room.promises) for room in ledger.promised.values()]
    known, verdicts = shape.verdict, after.verdicts.on_trial()
    decider = after.decider.on_trial(verdicts)
    decider.take(entry)
    decided = decider.decided.get(entry.id) or verdicts.why(entry)
    date = decider.dates.get(entry.id)
    # What it found out about requests of its shape is not known to the others.
    shape.verdict = known
    if isinstance(decided, Move):
        _take_back(entry, decided, after)
    if isinstance(decided, Move) or date is not None:
        _promise_again(ledger, promises)
    return Outcome(decided, date)


def _take_back(entry: WaitingJob, move: Move, after: After) -> None:
    holding = after.kept.books.holdings[entry.id]
    if isinstance(move, Start):
        portions, ends_at = holding.portions, holding.ends_at
        after.cycle.calendar.note(entry.job.spec, portions, ends_at, sign=-1)
    after.kept.change(entry.id, None)


def _promise_again(ledger: Ledger, promises: list[tuple[Room, tuple[Promise, ...]]]) -> None:
    """Promises as they were: what was taken beside one made it smaller."""
    ledger.forget_promises()
    for room, made in promises:
        ledger.promise(room, made)


def _variant(outcome: Outcome, expected: Expected) -> Variant:
    match outcome:
        case Outcome(decided=Start()):
            return Variant(starts_now=True, expected=expected)
        case Outcome(decided=Clear(until=until)):
            return Variant(starts_now=False, expected=until)
        case Outcome(date=date):
            return Variant(starts_now=False, expected=expected if date is None else date)


def _rank(entry: WaitingJob) -> Rank:
    return entry.rank
