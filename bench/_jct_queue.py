"""The policies that ours is measured against, one virtual cluster at a time.

FIFO and SJF follow the protocol of Helios' simulator: the queue is sorted, and nobody starts before
the first one that does not fit. The third is what a Slurm site does: age and fair share, and
backfill by time limits.
"""

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from bench._jct_trace import GPUS_PER_NODE, Park, Row

Started = dict[int, int]
"""When each job started, by its number; nobody is stopped."""

Taken = tuple[tuple[int, int], ...]
"""Nodes, and how many GPUs of each."""

HOUR_S = 3_600
LIMITS_S = tuple(HOUR_S * hours for hours in (1, 4, 12, 24, 72, 168, 720, 2_160, 8_760))
OVERESTIMATE = 2
"""Users ask for the next usual limit above so many times of what the job will take."""

AGE_FULL_S = 7 * 24 * HOUR_S
HALF_LIFE_S = 7 * 24 * HOUR_S
TESTED = 500
"""So many jobs of the queue are looked at for backfill."""


def fifo(park: Park) -> Started:
    """First come, first served."""
    return strict(park, lambda row: row.at_s)


def sjf(park: Park) -> Started:
    """The shortest first, by durations that nobody knows."""
    return strict(park, lambda row: row.lasts_s)


def passing(park: Park) -> Started:
    """The shortest first as well, but who does not fit is passed over: stronger, and unfair."""
    return skipping(park, lambda row: row.lasts_s)


class Machines:
    """Free GPUs by node; jobs are kept together."""

    def __init__(self, nodes: int) -> None:
        self.free = [GPUS_PER_NODE] * nodes
        self.idle = nodes * GPUS_PER_NODE

    def room(self, gpus: int, without: frozenset[int] = frozenset()) -> Taken | None:
        """The fullest node that has so many; or free nodes, and one more for the rest."""
        if gpus > self.idle:
            return None
        many, rest = divmod(gpus, GPUS_PER_NODE)
        found: list[tuple[int, int]] = []
        if many:
            whole = [n for n, f in enumerate(self.free) if f == GPUS_PER_NODE and n not in without]
            if len(whole) < many:
                return None
            found = [(node, GPUS_PER_NODE) for node in whole[:many]]
        if rest:
            taken = without.union(node for node, _ in found)
            best = min(
                (
                    f * 1_000_000 + n
                    for n, f in enumerate(self.free)
                    if f >= rest and n not in taken
                ),
                default=None,
            )
            if best is None:
                return None
            found.append((best % 1_000_000, rest))
        return tuple(found)

    def take(self, taken: Taken, sign: int = 1) -> None:
        for node, gpus in taken:
            self.free[node] -= sign * gpus
            self.idle -= sign * gpus


@dataclass(slots=True)
class _Going:
    """Who runs: their ends as they will be."""

    machines: Machines
    ends: list[tuple[int, int, Taken]] = field(default_factory=list[tuple[int, int, Taken]])

    def begin(self, row: Row, taken: Taken, now: int) -> None:
        self.machines.take(taken)
        heappush(self.ends, (now + row.lasts_s, row.number, taken))

    def end_by(self, now: int) -> list[int]:
        gone: list[int] = []
        while self.ends and self.ends[0][0] <= now:
            _, number, taken = heappop(self.ends)
            self.machines.take(taken, -1)
            gone.append(number)
        return gone

    def next_at(self, coming: int | None) -> int | None:
        found = [self.ends[0][0]] if self.ends else []
        return min(found + ([] if coming is None else [coming]), default=None)


def strict(park: Park, key: Callable[[Row], int]) -> Started:
    """In the order of the key, up to the first that does not fit."""
    going = _Going(Machines(park.nodes))
    waiting: list[tuple[int, int, int, Row]] = []
    started: Started = {}
    coming = 0
    rows = park.rows
    while True:
        now = going.next_at(rows[coming].at_s if coming < len(rows) else None)
        if now is None:
            return started
        going.end_by(now)
        while coming < len(rows) and rows[coming].at_s <= now:
            row = rows[coming]
            heappush(waiting, (key(row), row.at_s, row.number, row))
            coming += 1
        while waiting:
            taken = going.machines.room(waiting[0][3].gpus)
            if taken is None:
                break
            row = heappop(waiting)[3]
            going.begin(row, taken, now)
            started[row.number] = now


def skipping(park: Park, key: Callable[[Row], int]) -> Started:
    """In the order of the key, everyone who fits."""
    going = _Going(Machines(park.nodes))
    waiting: list[tuple[int, int, int, Row]] = []
    started: Started = {}
    coming = 0
    rows = park.rows
    while True:
        now = going.next_at(rows[coming].at_s if coming < len(rows) else None)
        if now is None:
            return started
        going.end_by(now)
        while coming < len(rows) and rows[coming].at_s <= now:
            row = rows[coming]
            insort(waiting, (key(row), row.at_s, row.number, row))
            coming += 1
        for row in _who_fits(waiting, going, now):
            started[row.number] = now


def _who_fits(waiting: list[tuple[int, int, int, Row]], going: "_Going", now: int) -> Iterator[Row]:
    left: list[tuple[int, int, int, Row]] = []
    too_many = going.machines.idle + 1
    for place, each in enumerate(waiting):
        if not going.machines.idle:
            left += waiting[place:]
            break
        row = each[3]
        taken = None if row.gpus >= too_many else going.machines.room(row.gpus)
        if taken is None:
            # Room only gets less, so that as many GPUs need not be tried again.
            too_many = min(too_many, row.gpus) if row.gpus <= GPUS_PER_NODE else too_many
            left.append(each)
        else:
            going.begin(row, taken, now)
            yield row
    waiting[:] = left


def limit_of(row: Row) -> int:
    """What the user would have asked for."""
    wanted = OVERESTIMATE * row.lasts_s
    place = min(bisect_right(LIMITS_S, wanted), len(LIMITS_S) - 1)
    return max(LIMITS_S[place], row.lasts_s)


class Multifactor:
    """Age and fair share decide the order; whoever does not delay the first in line goes ahead."""

    def __init__(self, park: Park) -> None:
        self._rows = park.rows
        self._machines = Machines(park.nodes)
        self._going = _Going(self._machines)
        self._must_end: dict[int, tuple[int, Taken]] = {}
        self._used: dict[str, float] = {}
        self._as_of = 0
        self._waiting: list[Row] = []
        self._started: Started = {}

    def run(self) -> Started:
        coming = 0
        rows = self._rows
        while True:
            now = self._going.next_at(rows[coming].at_s if coming < len(rows) else None)
            if now is None:
                return self._started
            for number in self._going.end_by(now):
                del self._must_end[number]
            while coming < len(rows) and rows[coming].at_s <= now:
                self._waiting.append(rows[coming])
                coming += 1
            if self._waiting:
                self._let_start(now)

    def _let_start(self, now: int) -> None:
        self._decay(now)
        whole = sum(self._used.values()) or 1.0
        users = max(1, len(self._used))
        share = {user: 2.0 ** (-used / whole * users) for user, used in self._used.items()}

        def turn(row: Row) -> tuple[float, int, int]:
            age = min(1.0, (now - row.at_s) / AGE_FULL_S)
            return (-(1_000 * age + 4_000 * share.get(row.user, 1.0)), row.at_s, row.number)

        self._waiting.sort(key=turn)
        first = 0
        while first < len(self._waiting):
            taken = self._machines.room(self._waiting[first].gpus)
            if taken is None:
                break
            self._begin(self._waiting[first], taken, now)
            first += 1
        del self._waiting[:first]
        if self._waiting and self._machines.idle:
            self._backfill(now)

    def _backfill(self, now: int) -> None:
        at, kept = self._promise(self._waiting[0], now)
        left = [self._waiting[0]]
        for row in self._waiting[1 : TESTED + 1]:
            in_time = now + limit_of(row) <= at
            taken = self._machines.room(row.gpus, frozenset() if in_time else kept)
            if taken is None:
                left.append(row)
            else:
                self._begin(row, taken, now)
        self._waiting[: TESTED + 1] = left

    def _promise(self, row: Row, now: int) -> tuple[int, frozenset[int]]:
        """When the first in line starts at the latest, and on which nodes."""
        then = Machines(len(self._machines.free))
        then.free, then.idle = list(self._machines.free), self._machines.idle
        for at, taken in sorted(self._must_end.values()):
            then.take(taken, -1)
            room = then.room(row.gpus)
            if room is not None:
                return at, frozenset(node for node, _ in room)
        return now, frozenset()

    def _begin(self, row: Row, taken: Taken, now: int) -> None:
        self._going.begin(row, taken, now)
        self._must_end[row.number] = (now + limit_of(row), taken)
        self._started[row.number] = now
        # What it will use counts at once: nobody starts everything he has before others start.
        self._used[row.user] = self._used.get(row.user, 0.0) + row.gpus * row.lasts_s

    def _decay(self, now: int) -> None:
        factor = 0.5 ** ((now - self._as_of) / HALF_LIFE_S)
        self._as_of = now
        for user in self._used:
            self._used[user] *= factor


def multifactor(park: Park) -> Started:
    """A Slurm site with users who ask for more time than they need."""
    return Multifactor(park).run()


def ends_of(park: Park, started: Started) -> dict[int, int]:
    """When each job ended, if nobody was stopped."""
    return {row.number: started[row.number] + row.lasts_s for row in park.rows}


def all_ends(parks: Iterable[Park], policy: Callable[[Park], Started]) -> dict[int, int]:
    """The whole trace by one policy."""
    found: dict[int, int] = {}
    for park in parks:
        found |= ends_of(park, policy(park))
    return found
