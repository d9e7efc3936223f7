"""The policies that ours is measured against, one virtual cluster at a time.

FIFO and SJF follow the protocol of Helios' simulator: the queue is sorted, and nothing starts
before the first job that does not fit. The others backfill, in order of arrival (EASY,
conservative) or as a Slurm site does: by age and fair share.

What a policy knows of a job's end is an argument: see KNOWLEDGE.
Nothing is stopped by any of them, and limits are never shorter than what they limit.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import groupby

import numpy as np
import numpy.typing as npt

from bench._jct_trace import GPUS_PER_NODE, Park, Row

Started = dict[int, int]
"""When each job started, by its number."""

Taken = tuple[tuple[int, int], ...]
"""Nodes, and how many GPUs of each."""

Limits = Callable[[Row], int | None]
"""How long a job can run at most, in seconds, as far as the policy knows."""

Watch = Callable[[int, Sequence[Row], Sequence[Row], "Running"], None]
"""Called with the instant, the jobs that arrived, all that still wait in their order, and those
that run, after jobs were started."""

HOUR_S = 3_600
LIMITS_S = tuple(HOUR_S * hours for hours in (1, 4, 12, 24, 72, 168, 720, 2_160, 8_760))
OVERESTIMATE = 2
"""Users ask for the next usual limit above so many times of what the job will take."""

UNLIMITED_S = 365 * 24 * HOUR_S
"""What Slurm's backfill takes a job without a limit to need."""

NEVER = 1 << 60
"""When a job without a limit ends, as far as EASY and conservative backfill know."""

AGE_FULL_S = 7 * 24 * HOUR_S
HALF_LIFE_S = 7 * 24 * HOUR_S
TESTED = 500
"""So many jobs of the queue are looked at for backfill by a Slurm site, and get a reservation by
conservative backfill."""


def no_limit(_: Row) -> None:
    """Users name none."""


def limit_of(row: Row) -> int:
    """What the user would have asked for."""
    wanted = OVERESTIMATE * row.lasts_s
    place = min(bisect_right(LIMITS_S, wanted), len(LIMITS_S) - 1)
    return max(LIMITS_S[place], row.lasts_s)


def exact_limit(row: Row) -> int:
    """What the job takes, which users cannot know."""
    return row.lasts_s


KNOWLEDGE: Mapping[str, Limits] = {"none": no_limit, "users": limit_of, "exact": exact_limit}


def fifo(park: Park) -> Started:
    """First come, first served."""
    return strict(park, lambda row: row.at_s)


def sjf(park: Park) -> Started:
    """The shortest first, by durations that no site knows."""
    return strict(park, lambda row: row.lasts_s)


def passing(park: Park) -> Started:
    """The shortest first as well, but what does not fit is passed over: stronger, and unfair."""
    return skipping(park, lambda row: row.lasts_s)


class Machines:
    """Free GPUs by node; jobs are kept together."""

    def __init__(self, nodes: int) -> None:
        self.free = [GPUS_PER_NODE] * nodes
        self.idle = nodes * GPUS_PER_NODE

    def room(self, gpus: int) -> Taken | None:
        """The fullest node that has so many; or free nodes, and one more for the rest."""
        return None if gpus > self.idle else room_in(self.free, gpus)

    def take(self, taken: Taken, sign: int = 1) -> None:
        for node, gpus in taken:
            self.free[node] -= sign * gpus
            self.idle -= sign * gpus


def room_in(free: Sequence[int], gpus: int, order: Sequence[int] | None = None) -> Taken | None:
    """Where so many GPUs are free: whole nodes, and the fullest of the others for the rest.

    order: among equals the nodes that this makes small come first.
    """
    many, rest = divmod(gpus, GPUS_PER_NODE)
    ranked = range(len(free)) if order is None else sorted(range(len(free)), key=order.__getitem__)
    found: list[tuple[int, int]] = []
    if many:
        whole = [n for n in ranked if free[n] == GPUS_PER_NODE]
        if len(whole) < many:
            return None
        found = [(node, GPUS_PER_NODE) for node in whole[:many]]
    if not rest:
        return tuple(found)
    taken = {node for node, _ in found}
    fits = [n for n in ranked if free[n] >= rest and n not in taken]
    if not fits:
        return None
    return (*found, (min(fits, key=free.__getitem__), rest))


@dataclass(slots=True)
class Running:
    """The jobs that run: when they end, and when they end at the latest as far as is known."""

    machines: Machines
    limits: Limits = no_limit
    never: int = NEVER
    """When a job without a limit ends."""

    started: Started = field(default_factory=Started)
    known: dict[int, tuple[int, Taken]] = field(default_factory=dict[int, tuple[int, Taken]])
    ends: list[tuple[int, int, Taken]] = field(default_factory=list[tuple[int, int, Taken]])

    def begin(self, row: Row, taken: Taken, now: int) -> None:
        self.machines.take(taken)
        self.started[row.number] = now
        self.known[row.number] = (self.ends_by(row, now), taken)
        heappush(self.ends, (now + row.lasts_s, row.number, taken))

    def begin_first(self, waiting: list[Row], now: int) -> None:
        """Start jobs from the front, up to the first that does not fit."""
        first = 0
        while first < len(waiting):
            taken = self.machines.room(waiting[first].gpus)
            if taken is None:
                break
            self.begin(waiting[first], taken, now)
            first += 1
        del waiting[:first]

    def ends_by(self, row: Row, now: int) -> int:
        """When it ends at the latest, if it starts now."""
        limit_s = self.limits(row)
        return now + (self.never if limit_s is None else limit_s)

    def end_by(self, now: int) -> None:
        while self.ends and self.ends[0][0] <= now:
            _, number, taken = heappop(self.ends)
            self.machines.take(taken, -1)
            del self.known[number]

    def leaving(self) -> Iterator[tuple[int, list[Taken]]]:
        """What becomes free, and when, as far as is known."""
        known = sorted(each for each in self.known.values() if each[0] < NEVER)
        for at, together in groupby(known, key=lambda each: each[0]):
            yield at, [taken for _, taken in together]


def events(park: Park, running: Running) -> Iterator[tuple[int, list[Row]]]:
    """Each instant at which something changes, after the ends, and the jobs that arrive then."""
    rows, coming = park.rows, 0
    while True:
        arrival = rows[coming].at_s if coming < len(rows) else NEVER
        now = min(arrival, running.ends[0][0] if running.ends else NEVER)
        if now == NEVER:
            return
        running.end_by(now)
        begin = coming
        while coming < len(rows) and rows[coming].at_s <= now:
            coming += 1
        yield now, list(rows[begin:coming])


def strict(park: Park, key: Callable[[Row], int]) -> Started:
    """In the order of the key, up to the first that does not fit."""
    running = Running(Machines(park.nodes))
    waiting: list[tuple[int, int, int, Row]] = []
    for now, came in events(park, running):
        for row in came:
            heappush(waiting, (key(row), row.at_s, row.number, row))
        while waiting:
            taken = running.machines.room(waiting[0][3].gpus)
            if taken is None:
                break
            running.begin(heappop(waiting)[3], taken, now)
    return running.started


def skipping(park: Park, key: Callable[[Row], int]) -> Started:
    """In the order of the key, everything that fits."""
    running = Running(Machines(park.nodes))
    waiting: list[tuple[int, int, int, Row]] = []
    for now, came in events(park, running):
        for row in came:
            insort(waiting, (key(row), row.at_s, row.number, row))
        _begin_what_fits(waiting, running, now)
    return running.started


def _begin_what_fits(waiting: list[tuple[int, int, int, Row]], running: Running, now: int) -> None:
    left: list[tuple[int, int, int, Row]] = []
    too_many = running.machines.idle + 1
    for place, each in enumerate(waiting):
        if not running.machines.idle:
            left += waiting[place:]
            break
        row = each[3]
        taken = None if row.gpus >= too_many else running.machines.room(row.gpus)
        if taken is None:
            # Room only gets less, so that as many GPUs need not be tried again.
            too_many = min(too_many, row.gpus)
            left.append(each)
        else:
            running.begin(row, taken, now)
    waiting[:] = left


def easy(park: Park, limits: Limits, watch: Watch | None = None) -> Started:
    """EASY: in order of arrival; the first that does not fit has a reservation, and no other has.

    A job passes if it ends before the reservation begins, or takes only GPUs that the reservation
    leaves over. Where what is known gives the first job no date, there is no reservation: without
    any limits this is FIFO in which everything that fits passes.
    """
    running = Running(Machines(park.nodes), limits)
    waiting: list[Row] = []
    for now, came in events(park, running):
        waiting += came
        running.begin_first(waiting, now)
        if waiting and running.machines.idle:
            _backfill(waiting, running, now)
        if watch is not None and waiting:
            watch(now, came, waiting, running)
    return running.started


@dataclass(slots=True)
class Reservation:
    """When the first job starts at the latest, and how many GPUs of each node are over then."""

    at: int
    spare: list[int]

    def room(self, machines: Machines, gpus: int) -> Taken | None:
        """Room that the first job does not need."""
        return room_in(list(map(min, machines.free, self.spare)), gpus)

    def take(self, taken: Taken) -> None:
        for node, gpus in taken:
            self.spare[node] -= gpus


def reservation(running: Running, gpus: int) -> Reservation:
    """The earliest date for so many GPUs.

    It takes the nodes that are fullest now, so that free ones are left over.
    """
    now = running.machines.free
    then = Machines(len(now))
    then.free, then.idle = list(now), running.machines.idle
    for at, left in running.leaving():
        for taken in left:
            then.take(taken, -1)
        room = None if gpus > then.idle else room_in(then.free, gpus, order=now)
        if room is not None:
            then.take(room)
            return Reservation(at, then.free)
    return Reservation(NEVER, then.free)


def _backfill(waiting: list[Row], running: Running, now: int) -> None:
    machines = running.machines
    left = waiting[:1]
    promise: Reservation | None = None
    # Room only gets less: as many GPUs need not be tried again, nor as many for jobs that stay.
    too_many = too_many_that_stay = machines.idle + 1
    for place, row in enumerate(waiting[1:], start=1):
        if not machines.idle:
            left += waiting[place:]
            break
        taken = None if row.gpus >= too_many else machines.room(row.gpus)
        if taken is None:
            too_many = min(too_many, row.gpus)
            left.append(row)
            continue
        promise = promise or reservation(running, waiting[0].gpus)
        stays = promise.at < running.ends_by(row, now) and promise.at < NEVER
        if stays:
            taken = None
            if row.gpus < too_many_that_stay:
                taken = promise.room(machines, row.gpus)
            if taken is None:
                too_many_that_stay = min(too_many_that_stay, row.gpus)
                left.append(row)
                continue
            promise.take(taken)
        running.begin(row, taken, now)
    waiting[:] = left


def conservative(park: Park, limits: Limits) -> Started:
    """Conservative backfill: in order of arrival, each job reserves the earliest room there is.

    Reservations are made again whenever something changes, as Slurm does it, and for so many jobs
    as are tested. Jobs that cannot be given a date hold nothing.
    """
    running = Running(Machines(park.nodes), limits)
    waiting: list[Row] = []
    for now, came in events(park, running):
        waiting += came
        running.begin_first(waiting, now)
        if waiting and running.machines.idle:
            _reserve_in_turn(waiting, running, now)
    return running.started


def _reserve_in_turn(waiting: list[Row], running: Running, now: int) -> None:
    """Start those whose reservation begins now; the others only matter to those behind them."""
    tested = waiting[: TESTED + 1]
    least = _least_from(tested)
    profile: Profile | None = None
    begun: set[int] = set()
    for place, row in enumerate(tested):
        if running.machines.room(least[place]) is None:
            break
        profile = profile or Profile(running, now)
        limit_s = running.ends_by(row, now) - now
        found = profile.earliest(row.gpus, limit_s)
        if found is None:
            continue
        profile.reserve(*found, limit_s)
        at, taken = found
        if at == now:
            running.begin(row, taken, now)
            begun.add(row.number)
    if begun:
        waiting[: len(tested)] = [row for row in tested if row.number not in begun]


def _least_from(rows: Sequence[Row]) -> list[int]:
    """The fewest GPUs that any job from here on asks for."""
    least: list[int] = []
    fewest = NEVER
    for row in reversed(rows):
        fewest = min(fewest, row.gpus)
        least.append(fewest)
    return least[::-1]


class Profile:
    """Free GPUs by node from each of some instants on, as far as is known."""

    def __init__(self, running: Running, now: int) -> None:
        free = np.array(running.machines.free, dtype=np.int8)
        self._times, rows = [now], [free]
        for at, left in running.leaving():
            free = free.copy()
            for node, gpus in (each for taken in left for each in taken):
                free[node] += gpus
            self._times.append(at)
            rows.append(free)
        self._free: npt.NDArray[np.int8] = np.array(rows)
        self._not_before: dict[tuple[int, int], int] = {}

    def earliest(self, gpus: int, limit_s: int) -> tuple[int, Taken] | None:
        """When so many GPUs are free for so long, and where."""
        times = self._times
        fits = self._fits(gpus)
        # Room only gets less, so that an equal job finds none before the last one did.
        place = bisect_left(times, self._not_before.get((gpus, limit_s), 0))
        while place < len(times):
            end = bisect_left(times, times[place] + limit_s)
            narrow = np.flatnonzero(~fits[place:end])
            if narrow.size:
                place += int(narrow[-1]) + 1
                continue
            room = room_in(self._free[place:end].min(axis=0).tolist(), gpus)
            if room is not None:
                self._not_before[gpus, limit_s] = times[place]
                return times[place], room
            place += 1
        self._not_before[gpus, limit_s] = NEVER
        return None

    def _fits(self, gpus: int) -> npt.NDArray[np.bool_]:
        """At which instants there is room, however long."""
        many, rest = divmod(gpus, GPUS_PER_NODE)
        if not many:
            return self._free.max(axis=1) >= rest
        whole = (self._free == GPUS_PER_NODE).sum(axis=1) >= many
        return whole & ((self._free >= rest).sum(axis=1) > many) if rest else whole

    def reserve(self, at: int, taken: Taken, limit_s: int) -> None:
        begin = self._split(at)
        end = len(self._times) if at + limit_s >= NEVER else self._split(at + limit_s)
        for node, gpus in taken:
            self._free[begin:end, node] -= gpus

    def _split(self, at: int) -> int:
        """The place of an instant, which begins a row of its own."""
        place = bisect_left(self._times, at)
        if place == len(self._times) or self._times[place] != at:
            self._times.insert(place, at)
            self._free = np.insert(self._free, place, self._free[place - 1], axis=0)
        return place


class Multifactor:
    """Age and fair share decide the order; what does not delay the first job goes ahead.

    The reservation holds whole nodes, as Slurm's does.
    """

    def __init__(self, park: Park, limits: Limits) -> None:
        self._park = park
        self._running = Running(Machines(park.nodes), limits, never=UNLIMITED_S)
        self._used: dict[str, float] = {}
        self._as_of = 0
        self._waiting: list[Row] = []

    def run(self) -> Started:
        for now, came in events(self._park, self._running):
            self._waiting += came
            if self._waiting:
                self._let_start(now)
        return self._running.started

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
            taken = self._running.machines.room(self._waiting[first].gpus)
            if taken is None:
                break
            self._begin(self._waiting[first], taken, now)
            first += 1
        del self._waiting[:first]
        if self._waiting and self._running.machines.idle:
            self._backfill(now)

    def _backfill(self, now: int) -> None:
        at, kept = self._promise(self._waiting[0], now)
        machines = self._running.machines
        left = [self._waiting[0]]
        for row in self._waiting[1 : TESTED + 1]:
            if self._running.ends_by(row, now) <= at:
                taken = machines.room(row.gpus)
            else:
                free = [0 if node in kept else free for node, free in enumerate(machines.free)]
                taken = room_in(free, row.gpus)
            if taken is None:
                left.append(row)
            else:
                self._begin(row, taken, now)
        self._waiting[: TESTED + 1] = left

    def _promise(self, row: Row, now: int) -> tuple[int, frozenset[int]]:
        """When the first in line starts at the latest, and on which nodes."""
        machines = self._running.machines
        then = Machines(len(machines.free))
        then.free, then.idle = list(machines.free), machines.idle
        for at, left in self._running.leaving():
            for taken in left:
                then.take(taken, -1)
            room = then.room(row.gpus)
            if room is not None:
                return at, frozenset(node for node, _ in room)
        return now, frozenset()

    def _begin(self, row: Row, taken: Taken, now: int) -> None:
        self._running.begin(row, taken, now)
        # What it will use counts at once: no user starts everything before others start.
        self._used[row.user] = self._used.get(row.user, 0.0) + row.gpus * row.lasts_s

    def _decay(self, now: int) -> None:
        factor = 0.5 ** ((now - self._as_of) / HALF_LIFE_S)
        self._as_of = now
        for user in self._used:
            self._used[user] *= factor


def multifactor(park: Park, limits: Limits = limit_of) -> Started:
    """A Slurm site; by default with users who ask for more time than they need."""
    return Multifactor(park, limits).run()


def ends_of(park: Park, started: Started) -> dict[int, int]:
    """When each job ended, if nobody was stopped."""
    return {row.number: started[row.number] + row.lasts_s for row in park.rows}


def all_ends(parks: Iterable[Park], policy: Callable[[Park], Started]) -> dict[int, int]:
    """The whole trace by one policy."""
    found: dict[int, int] = {}
    for park in parks:
        found |= ends_of(park, policy(park))
    return found
