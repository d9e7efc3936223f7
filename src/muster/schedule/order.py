"""Whose turn it is.

A job's turn is its merit (class, size, queue, age) plus its user's fair share; a queue that is
within its guarantee goes before those who borrow. Fair share falls with every job that starts, for
that user and all queues above him, so turns are looked at again as they come up: they only ever
get later.
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heapreplace
from operator import attrgetter
from typing import NamedTuple

from muster.model.value import Instant, JobId
from muster.schedule.quota import Quotas
from muster.schedule.roster import Entry, Lane, Roster
from muster.schedule.share import Shares

OWN_FIRST = 1 << 50
"""More than any merit: what is guaranteed goes before what is borrowed."""


class _Turn(NamedTuple):
    """Smallest first; the job's id makes every two turns different."""

    late: int
    submitted_at: Instant
    job: JobId
    place: int
    entry: Entry


class Order:
    """Turns for one plan."""

    def __init__(self, shares: Shares, quotas: Quotas, fair_share_weight: int) -> None:
        self._shares = shares
        self._quotas = quotas
        self._weight = fair_share_weight

    def in_turn(
        self, lanes: Iterable[Lane], passes_over: Callable[[Entry], bool]
    ) -> Iterator[Entry]:
        """Jobs as their turn comes, without those that need not be looked at any more."""
        heap = [turn for lane in lanes if (turn := self._next(lane, 0, passes_over)) is not None]
        heapify(heap)
        while heap:
            turn = heap[0]
            again = self._next(turn.entry.lane, turn.place, passes_over)
            if again is None:
                heappop(heap)
            elif again.job != turn.job or again.late > turn.late:
                heapreplace(heap, again)
            else:
                yield turn.entry
                after = self._next(turn.entry.lane, turn.place + 1, passes_over)
                if after is None:
                    heappop(heap)
                else:
                    heapreplace(heap, after)

    def settled(self, roster: Roster) -> list[Entry]:
        """All jobs in the order that holds at the end of the plan."""
        for lane in roster.lanes.values():
            share = self._weight * self._shares.factor(lane.leaf)
            for entry in lane.entries:
                late, submitted_at, job_id = entry.rank
                entry.turn = (late - share, submitted_at, job_id)
        line = roster.line()
        line.sort(key=attrgetter("turn"))
        return line

    def _next(self, lane: Lane, place: int, passes_over: Callable[[Entry], bool]) -> _Turn | None:
        entries = lane.entries
        while place < len(entries) and passes_over(entries[place]):
            place += 1
        if place == len(entries):
            return None
        entry = entries[place]
        key = entry.merit + self._weight * self._shares.factor(lane.leaf)
        if self._quotas.is_own(lane.queue, entry.shape.least_gpu_milli):
            key += OWN_FIRST
        return _Turn(-key, entry.rank[1], entry.id, place, entry)
