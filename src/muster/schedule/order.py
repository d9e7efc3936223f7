"""Whose turn it is.

A job's turn is its merit (class, size, queue, age) plus its user's fair share; a queue that is
within its guarantee goes before those who borrow. Fair share falls with every job that starts, for
that user and all queues above him, so turns are looked at again as they come up: they only ever
get later.
"""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heapreplace
from operator import attrgetter
from typing import NamedTuple, Protocol

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


class Gate(Protocol):
    """Knows which jobs need not be looked at.

    number: of the plan; only_room_counts: jobs whose shape has no room are passed over unseen.
    """

    number: int

    @property
    def only_room_counts(self) -> bool:
        """Nobody gets a promise or victims any more."""
        ...

    def passes_over(self, entry: Entry) -> bool:
        """Is it plain that the job cannot start?"""
        ...


class Order:
    """Turns for one plan."""

    def __init__(self, shares: Shares, quotas: Quotas, fair_share_weight: int) -> None:
        self._shares = shares
        self._quotas = quotas
        self._weight = fair_share_weight

    def in_turn(self, lanes: Iterable[Lane], gate: Gate) -> Iterator[Entry]:
        """Jobs as their turn comes, without those that need not be looked at any more."""
        heap = [turn for lane in lanes if (turn := self._next(lane, 0, gate)) is not None]
        heapify(heap)
        while heap:
            turn = heap[0]
            again = self._next(turn.entry.lane, turn.place, gate)
            if again is None:
                heappop(heap)
            elif again.job != turn.job or again.late > turn.late:
                heapreplace(heap, again)
            else:
                yield turn.entry
                after = self._next(turn.entry.lane, turn.place + 1, gate)
                if after is None:
                    heappop(heap)
                else:
                    heapreplace(heap, after)

    def settled(self, roster: Roster) -> list[Entry]:
        """All jobs in the order that holds at the end of the plan."""
        for lane in roster.lanes.values():
            share = self._weight * self._shares.factor(lane.leaf)
            if share != lane.share or lane.has_new:
                _set_turns(lane, share)
        line = roster.line()
        line.sort(key=attrgetter("turn"))
        return line

    def _next(self, lane: Lane, place: int, gate: Gate) -> _Turn | None:
        place = _first_open(lane.entries, place, gate)
        if place == len(lane.entries):
            return None
        entry = lane.entries[place]
        key = entry.merit + self._weight * self._shares.factor(lane.leaf)
        if self._quotas.is_own(lane.queue, entry.shape.least_gpu_milli):
            key += OWN_FIRST
        return _Turn(-key, entry.rank[1], entry.id, place, entry)


def _set_turns(lane: Lane, share: int) -> None:
    for entry in lane.entries:
        late, submitted_at, job_id = entry.rank
        entry.turn = (late - share, submitted_at, job_id)
    lane.share, lane.has_new = share, False


def _first_open(entries: list[Entry], place: int, gate: Gate) -> int:
    """The place of the next job to look at. It runs over every waiting job, so it is spelt out."""
    number, is_quick, end = gate.number, gate.only_room_counts, len(entries)
    while place < end:
        entry = entries[place]
        shape = entry.shape
        has_no_room = shape.blocked_in == number and entry.limit_ms >= shape.blocked_ms
        if not (is_quick and has_no_room and not entry.is_watched) and not gate.passes_over(entry):
            return place
        place += 1
    return place
