"""Which job is next: the one with the highest priority.

A job's priority is its merit (class, size, queue, age) plus its user's fair share, and what evens
out how short the jobs of its queue are; a queue that is within its guarantee goes before those who
borrow. Fair share falls with every job that starts, for
that user and all queues above, so a priority is worked out again when its job comes up: in a plan
priorities only ever fall.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heapreplace
from operator import attrgetter
from typing import NamedTuple, Self

from muster.model.value import Instant, JobId, QueuePath
from muster.schedule.policy.merit import waited_since
from muster.schedule.policy.verdicts import Verdicts
from muster.schedule.state.follow import PlannerState
from muster.schedule.state.quota import Quotas
from muster.schedule.state.roster import Lane, Roster, WaitingJob
from muster.schedule.state.share import Shares

OVERDUE_FIRST = 1 << 52
"""More than any priority: who has waited for too long goes before all others."""

OWN_FIRST = 1 << 50
"""More than any merit: what is guaranteed goes before what is borrowed."""


class Next(NamedTuple):
    """The next job of a lane. Smallest first; the job's id makes every two different."""

    minus_priority: int
    submitted_at: Instant
    job: JobId
    place: int
    entry: WaitingJob
    revision: int


class _Stretch(NamedTuple):
    """Entries of a lane, from a place to before another, that wait for reasons known already.

    They come up later, with this share; until then the state of things must stay as it is.
    """

    lane: Lane
    begin: int
    end: int
    share: int


class Standing(NamedTuple):
    """What all jobs of a lane have in common: their user's fair share, and their queue's evening.

    evened: by queue, the same throughout a plan.
    """

    shares: Shares
    weight: int
    evened: Mapping[QueuePath, int]

    @classmethod
    def of(cls, kept: PlannerState) -> Self:
        """As it is before the first decision of a plan."""
        weight = kept.policy.order.fair_share
        return cls(kept.books.shares, weight, kept.roster.brevity.evened())

    def fair_share(self, lane: Lane) -> int:
        """Its points, by what is held now."""
        return self.weight * self.shares.factor(lane.leaf)

    def points(self, lane: Lane) -> int:
        """Those of both, by what is held now."""
        return self.fair_share(lane) + self.evened.get(lane.queue, 0)


class Order:
    """The order of jobs in one plan.

    overdue: who has waited for longer than anybody should, the longest wait first.
    """

    def __init__(
        self, standing: Standing, quotas: Quotas, overdue: Iterable[WaitingJob] = ()
    ) -> None:
        self._standing = standing
        self._quotas = quotas
        self._overdue = dict.fromkeys(overdue)

    @classmethod
    def of(cls, kept: PlannerState) -> Self:
        """The order of those who wait."""
        overdue: Iterable[WaitingJob] = ()
        if patience := kept.policy.patience:
            overdue = kept.roster.waiting_since(Instant(kept.snapshot.now - patience - 1))
        return cls(Standing.of(kept), kept.books.quotas, overdue)

    def by_priority(self, lanes: Iterable[Lane], verdicts: Verdicts) -> Iterator[WaitingJob]:
        """Jobs by priority, without those that need not be looked at any more."""
        for entry in self._overdue:
            if not verdicts.passes_over(entry):
                yield entry
        for entry in self._in_lanes(lanes, verdicts):
            if entry not in self._overdue:
                yield entry

    def _in_lanes(self, lanes: Iterable[Lane], verdicts: Verdicts) -> Iterator[WaitingJob]:
        heap = [each for lane in lanes if (each := self._next(lane, 0, verdicts)) is not None]
        heapify(heap)
        ahead: list[_Stretch] = []
        while heap:
            first = heap[0]
            if first.revision != verdicts.revision:
                again = self._next(first.entry.lane, first.place, verdicts)
                if again is None:
                    heappop(heap)
                    continue
                if again.job != first.job or again.minus_priority > first.minus_priority:
                    heapreplace(heap, again)
                    continue
            state = verdicts.state
            yield first.entry
            if verdicts.state != state:
                heap = self._back(heap, ahead, verdicts)
                ahead = []
            self._step(heap, first, ahead, verdicts)

    def _step(
        self, heap: list[Next], first: Next, ahead: list[_Stretch], verdicts: Verdicts
    ) -> None:
        """The next of the lane that was just looked at."""
        lane, place = first.entry.lane, first.place + 1
        if not self._quotas.may_own(lane.queue):
            end = _kept_until(lane.entries, place, verdicts)
            if end > place:
                ahead.append(_Stretch(lane, place, end, self._standing.points(lane)))
                place = end
        after = self._next(lane, place, verdicts)
        if after is None:
            heappop(heap)
        else:
            heapreplace(heap, after)

    def _back(self, heap: list[Next], ahead: list[_Stretch], verdicts: Verdicts) -> list[Next]:
        """The first of the heap has changed things: jobs that come after it are looked at again.

        Stretches of a lane follow each other, so that the first of them says where to go on.
        """
        now = heap[0]
        again: dict[Lane, int] = {}
        for lane, begin, end, share in ahead:
            bound = (now.minus_priority + share, now.submitted_at, now.job)
            place = bisect_left(lane.rows.read(), bound, begin, end)
            for entry in {each.equivalents: each for each in lane.entries[begin:place]}.values():
                verdicts.no_room(entry, verdicts.reasons[entry.id])
            if place < end:
                again.setdefault(lane, place)
        if not again:
            return heap
        heap = [each for each in heap if each.entry.lane not in again]
        found = (self._next(lane, place, verdicts) for lane, place in again.items())
        heap.extend(each for each in found if each is not None)
        heapify(heap)
        return heap

    def final(self, roster: Roster) -> list[WaitingJob]:
        """All jobs in the order that holds at the end of the plan."""
        for lane in roster.lanes.values():
            share = self._standing.points(lane)
            if share != lane.share or lane.has_new:
                _set_ranks(lane, share)
        line = roster.line()
        line.sort(key=attrgetter("final_rank"))
        return line

    def _next(self, lane: Lane, place: int, verdicts: Verdicts) -> Next | None:
        place = _first_open(lane, place, verdicts)
        if place == len(lane.entries):
            return None
        entry = lane.entries[place]
        return Next(*self.rank_now(entry), place, entry, verdicts.revision)

    def rank_now(self, entry: WaitingJob) -> tuple[int, Instant, JobId]:
        """The job's place among all, as things stand: smallest first."""
        if entry in self._overdue:
            return (-OVERDUE_FIRST, waited_since(entry.job), entry.id)
        lane = entry.lane
        key = entry.points + self._standing.points(lane)
        if self._quotas.is_own(lane.queue, entry.shape.least_gpu_milli):
            key += OWN_FIRST
        return (-key, entry.rank[1], entry.id)


def _set_ranks(lane: Lane, share: int) -> None:
    for entry in lane.entries:
        late, submitted_at, job_id = entry.rank
        entry.final_rank = (late - share, submitted_at, job_id)
    lane.share, lane.has_new = share, False


def _first_open(lane: Lane, place: int, verdicts: Verdicts) -> int:
    """The place of the next job to look at. It runs over every waiting job, so it is spelt out."""
    entries, number, is_quick = lane.entries, verdicts.plan, verdicts.only_room_counts(lane)
    end = len(entries)
    while place < end:
        entry = entries[place]
        verdict = entry.shape.verdict
        has_no_room = verdict.plan == number and entry.limit_ms >= verdict.from_ms
        is_plain = is_quick and has_no_room and not entry.is_watched and not entry.may_preempt
        if not is_plain and not verdicts.passes_over(entry):
            return place
        place += 1
    return place


def _kept_until(entries: list[WaitingJob], place: int, verdicts: Verdicts) -> int:
    """The place of the next job of which it is not known why it waits."""
    equivalents, why, reasons = None, None, verdicts.reasons
    for entry in entries[place:]:
        if entry.equivalents is None:
            break
        if entry.equivalents is not equivalents:
            equivalents, why = entry.equivalents, verdicts.keeps(entry)
        if why is None:
            break
        reasons[entry.id] = why
        place += 1
    return place
