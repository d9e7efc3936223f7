"""The dearest rows of the fleet's table, one change for each, and what it would bring (pure).

    for dear in dearest(parts):
        CHANGES.get(dear.what)          # what to change in the rules, or in the jobs of the row
    gained(courses, now)                # from a rehearsal of it

A change is worth the GPU time that jobs would have had more, within a day from now, of which the
rehearsal says when they would start: what would start sooner less what would start later.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

from muster.model.finding import Cause, Use
from muster.model.value import DAY, ClusterName, Duration, Instant, PoolName, Value
from muster.telemetry.diagnosis.ledger import BROKEN, DRAINED, NO_DEMAND, NOBODY, Row
from muster.telemetry.diagnosis.money import NO_TIME, Time

MOST_ROWS = 3
MOST_NAMED = 3

HORIZON = Duration(DAY)
"""A rehearsal says little about what comes later."""

_MILLI = 1_000


class Change(StrEnum):
    """What is rehearsed. QUOTA to BACKFILL are rules, the others are of the row's own jobs."""

    QUOTA = "quota"
    """A queue may hold more than its limit."""
    CEILING = "ceiling"
    """So may users of a class, and queues may have more jobs."""
    PREEMPTION = "preemption"
    """Jobs may be stopped for others that had less."""
    BACKFILL = "backfill"
    """More of those that wait get a reservation, and room is looked for further ahead."""
    END = "end"
    """Jobs that leave their GPUs alone end, as `on_idle` of their class would see to."""
    SHARES = "shares"
    """Jobs that need a part of a GPU ask for that part."""
    CPUS = "cpus"
    """Jobs that wait for their CPUs ask for more of them."""


CHANGES: dict[str, Change] = {
    "free_over_limit": Change.QUOTA,
    "free_borrowed_out": Change.QUOTA,
    "free_over_class_limit": Change.CEILING,
    "free_too_many_jobs": Change.CEILING,
    "free_no_room": Change.PREEMPTION,
    "free_behind": Change.BACKFILL,
    "free_reserved": Change.BACKFILL,
    Cause.NEVER_USED: Change.END,
    Cause.SOME_UNUSED: Change.END,
    Cause.HANG: Change.END,
    Cause.IDLE: Change.END,
    Cause.OVERSIZED: Change.SHARES,
    Cause.SMALL_WORK: Change.SHARES,
    Cause.INPUT_CPU: Change.CPUS,
}

_NO_CHANGE: dict[str, str] = {
    BROKEN: "repair or replace it; `muster nodes --devices` says which and why",
    DRAINED: "resume the nodes that may work again; `muster nodes` says why they are out",
    Cause.BROKEN: "repair or replace it; `muster nodes --devices` says which and why",
    Cause.HEAT: "look at fans, inlets and the racks' heat; no rule helps",
    Cause.POWER: "raise the power limit, or take the throttling as the price of it",
    Cause.BRAKE: "look at the power supplies of these nodes",
    Cause.CLOCKS: "give the clocks back: nvidia-smi -rgc",
    Cause.STARTING: "keep images and data near: fewer minutes go before the first kernel",
}
_CODE = "the jobs must change; `muster diagnose` says to each of their users how"


class Part(Value, gc=False):
    """One row of the table, and its price."""

    row: Row
    time: Time
    micros: int


class Dear(Value):
    """What went into nothing for one reason in one pool, and of whom most of it was.

    what: why nobody held it, such as `free_no_room`, or the cause. micros: what bought nothing.
    """

    cluster: ClusterName
    pool: PoolName
    use: str
    what: str
    time: Time
    micros: int
    queues: tuple[str, ...] = ()
    users: tuple[str, ...] = ()

    @property
    def change(self) -> Change | None:
        return CHANGES.get(self.what)

    @property
    def advice(self) -> str:
        """Where there is no change to rehearse."""
        return _NO_CHANGE.get(self.what, _CODE)


class Course(Value, gc=False):
    """How much a job takes, for how long, and when it starts before and after a change.

    None: not within the day.
    """

    gpu_milli: int
    lasts: int
    before: Instant | None
    after: Instant | None


def dearest(parts: Iterable[Part], most: int = MOST_ROWS) -> tuple[Dear, ...]:
    """What cost most and bought nothing; the rows of what nobody wanted or saw are no waste."""
    grouped: dict[tuple[str, str, str, str], list[Part]] = {}
    for part in parts:
        row = part.row
        if row.use not in {Use.WORKING, Use.UNMEASURED, NO_DEMAND} and part.time.wasted:
            what = str(row.cause or row.use)
            grouped.setdefault((row.cluster, row.pool, row.use, what), []).append(part)
    found = [_dear(key, found) for key, found in grouped.items()]
    found.sort(key=lambda each: (-each.micros, -each.time.wasted, each.pool, each.what))
    return tuple(found[:most])


def gained(courses: Iterable[Course], now: Instant) -> int:
    """Thousandths of a GPU times milliseconds that jobs would have more within the day."""
    return sum(
        each.gpu_milli * (_had(each, each.after, now) - _had(each, each.before, now))
        for each in courses
    )


def sooner(courses: Iterable[Course], now: Instant) -> int:
    """How many milliseconds jobs would wait less within the day, all of them together.

    Where GPUs are free again before the day is over, a change gains no GPU time, and this alone.
    """
    end = Instant(now + HORIZON)

    def start(at: Instant | None) -> Instant:
        return end if at is None else min(max(at, now), end)

    return sum(start(each.before) - start(each.after) for each in courses)


def _had(course: Course, start: Instant | None, now: Instant) -> int:
    """How long it would have run when the day is over."""
    if start is None:
        return 0
    return max(0, min(now + HORIZON - max(start, now), course.lasts))


def _dear(key: tuple[str, str, str, str], parts: list[Part]) -> Dear:
    cluster, pool, use, what = key
    time = NO_TIME
    for each in parts:
        time += each.time
    return Dear(
        cluster=ClusterName(cluster),
        pool=PoolName(pool),
        use=use,
        what=what,
        time=time,
        micros=sum(map(wasted_of, parts)),
        queues=tuple(_most(parts, lambda each: each.row.queue if each.row.queue != NOBODY else "")),
        users=tuple(_most(parts, lambda each: each.row.user)),
    )


def wasted_of(part: Part) -> int:
    """What of its price bought nothing."""
    whole = part.time.milli_ms * _MILLI
    return part.micros * part.time.wasted // whole if whole else 0


def _most(parts: Iterable[Part], whose: Callable[[Part], str]) -> Iterator[str]:
    """Whose most of it was; nobody's is not told."""
    wasted: dict[str, int] = {}
    for each in parts:
        wasted[whose(each)] = wasted.get(whose(each), 0) + each.time.wasted
    named = sorted((name for name in wasted if name), key=lambda name: (-wasted[name], name))
    yield from named[:MOST_NAMED]
