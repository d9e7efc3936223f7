"""EASY backfilling, written down a second time to compare the planner with, and worlds for it.

Every job takes whole nodes, and all nodes are alike: so when a job starts depends on numbers of
nodes alone, and never on which of them it gets. The same holds for GPUs of one node.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from muster.model.policy import Policy
from muster.model.value import MINUTE, Instant
from stories.outcome import Outcome
from stories.world import World

GPUS_PER_NODE = 2


@dataclass(frozen=True, order=True)
class Gang:
    """A job: when it is submitted, how many nodes it takes, for how long at most, and really.

    All times are minutes. Where `lasts` is above `limit` it overruns: it is late in ending.
    """

    at: int
    id: int
    nodes: int
    limit: int
    lasts: int


@dataclass(frozen=True)
class Yard:
    """So many nodes, and all jobs that are submitted."""

    nodes: int
    gangs: tuple[Gang, ...]


def easy(yard: Yard) -> dict[int, int]:
    """When each job starts.

    At each instant at which a job ends or is submitted, first all that end then end, then all that
    are submitted then wait, and then jobs start, in order of submission, then of id:

    - Those at the front start, up to the first that does not fit. That one has a reservation: the
      earliest instant at which enough nodes are free if each running job leaves at its limit. One
      that is beyond its limit leaves in the next moment, which is too soon for any job to be
      over by then.
    - Each job behind it, one after the other, starts if enough nodes are free now and it ends by
      its limit before the reservation begins (or just then), or takes no more nodes than are left
      over at that instant beside the reservation and those that started before it to stay longer.
    """
    playing = _Playing(yard.nodes)
    waiting: list[Gang] = []
    for now in _instants(yard, playing):
        playing.end_by(now)
        waiting += sorted(gang for gang in yard.gangs if gang.at == now)
        waiting = _after_starts(waiting, playing, now)
    assert not waiting
    return playing.started


@dataclass
class _Playing:
    free: int
    running: list[Gang] = field(default_factory=list[Gang])
    started: dict[int, int] = field(default_factory=dict[int, int])

    def start(self, gang: Gang, now: int) -> None:
        self.started[gang.id] = now
        self.running.append(gang)
        self.free -= gang.nodes

    def end_by(self, now: int) -> None:
        over = [gang for gang in self.running if self.started[gang.id] + gang.lasts <= now]
        self.running = [gang for gang in self.running if gang not in over]
        self.free += sum(gang.nodes for gang in over)

    def leaves_at(self, gang: Gang, now: int) -> int:
        """By its limit."""
        return max(now, self.started[gang.id] + gang.limit)


def _instants(yard: Yard, playing: _Playing) -> Iterator[int]:
    """When jobs are submitted, and when those end that were started."""
    now = -1
    while True:
        coming = [gang.at for gang in yard.gangs]
        ending = [playing.started[gang.id] + gang.lasts for gang in playing.running]
        later = [at for at in (*coming, *ending) if at > now]
        if not later:
            return
        now = min(later)
        yield now


def _after_starts(waiting: Sequence[Gang], playing: _Playing, now: int) -> list[Gang]:
    """Start what may start; the others still wait."""
    line = list(waiting)
    while line and line[0].nodes <= playing.free:
        playing.start(line.pop(0), now)
    if not line:
        return []
    at, spare = _reservation(line[0], playing, now)
    left = [line[0]]
    for gang in line[1:]:
        is_in_time = now + gang.limit <= at
        if gang.nodes > playing.free or not (is_in_time or gang.nodes <= spare):
            left.append(gang)
            continue
        if not is_in_time:
            spare -= gang.nodes
        playing.start(gang, now)
    return left


def _reservation(first: Gang, playing: _Playing, now: int) -> tuple[int, int]:
    """When it starts at the latest, and how many nodes are left over then."""
    leaving = sorted({playing.leaves_at(gang, now) for gang in playing.running})
    for at in leaving:
        gone = (gang.nodes for gang in playing.running if playing.leaves_at(gang, now) <= at)
        free = playing.free + sum(gone)
        if free >= first.nodes:
            return at, free - first.nodes
    raise AssertionError(f"{first} is larger than the yard")


def promised(yard: Yard, started: Mapping[int, int], now: int) -> tuple[int, int] | None:
    """Who is first in line then, by when these starts were, and when it starts at the latest if
    nobody who came after it delays it: when enough of those that run have reached their limits.
    """
    running = [gang for gang in yard.gangs if _runs(gang, started[gang.id], now)]
    waiting = [gang for gang in yard.gangs if gang.at <= now < started[gang.id]]
    if not waiting:
        return None
    first = min(waiting)
    free = yard.nodes - sum(gang.nodes for gang in running)
    at, _ = _reservation(first, _Playing(free, running, dict(started)), now)
    return first.id, at


def _runs(gang: Gang, started: int, now: int) -> bool:
    return started <= now < started + gang.lasts


@st.composite
def yards(draw: DrawFn, largest: int = 6, gangs: int = 12) -> Yard:
    """Crowded yards: gangs of any size; some limits are kept, some just so, some overrun."""
    nodes = draw(st.integers(1, largest))
    count = draw(st.integers(1, gangs))
    return Yard(nodes, tuple(draw(_gangs(number, nodes)) for number in range(1, count + 1)))


def _gangs(number: int, nodes: int) -> SearchStrategy[Gang]:
    def with_limit(limit: int) -> SearchStrategy[Gang]:
        lasts = st.one_of(st.integers(1, limit), st.just(limit), st.integers(limit, 2 * limit))
        return st.builds(
            Gang,
            at=st.integers(0, 12),
            id=st.just(number),
            nodes=st.integers(1, nodes),
            limit=st.just(limit),
            lasts=lasts,
        )

    return st.integers(1, 12).flatmap(with_limit)


@dataclass
class Told:
    """When jobs start by the dates of each plan, the first in line first: in minutes."""

    by_plan: list[dict[int, float]] = field(default_factory=list[dict[int, float]])


def planned(
    yard: Yard,
    policy: Policy,
    *,
    on_one_node: bool = False,
    has_limits: bool = True,
    told: Told | None = None,
) -> dict[int, int]:
    """When each job starts by the planner, which plans at the same instants.

    It breaks ties by ids, which the world gives in order of submission.
    on_one_node: GPUs of one node take the part of the nodes.
    has_limits: otherwise jobs are only expected to take as long as their limit.
    told: gets the dates of those that wait, where they are known.
    """
    world = World(policy)
    if on_one_node:
        world.has_nodes("n0", gpus=yard.nodes)
    else:
        world.has_nodes(*(f"n{number}" for number in range(yard.nodes)), gpus=GPUS_PER_NODE)
    begin = world.scene.now
    playing = _Playing(yard.nodes)
    for now in _instants(yard, playing):
        # Not `passes`, which ends jobs at their limits: some are late.
        world.scene.now = Instant(begin + now * MINUTE)
        before = playing.running
        playing.end_by(now)
        world.finishes(*(str(gang.id) for gang in before if gang not in playing.running))
        for gang in sorted(gang for gang in yard.gangs if gang.at == now):
            tasks, gpus = (1, gang.nodes) if on_one_node else (gang.nodes, GPUS_PER_NODE)
            name, minutes = str(gang.id), gang.limit
            if has_limits:
                world.submits(name, tasks=tasks, gpus=gpus, minutes=minutes)
            else:
                world.submits(name, tasks=tasks, gpus=gpus, expected_minutes=minutes)
        outcome = world.goes_on()
        if told is not None:
            told.by_plan.append(_dates(outcome, yard, now))
        begun = {int(name) for name in outcome.started()}
        for gang in yard.gangs:
            if gang.id in begun:
                playing.start(gang, now)
    return playing.started


def _dates(outcome: Outcome, yard: Yard, now: int) -> dict[int, float]:
    """By job, in their order of submission: when it starts as far as that is known."""
    waiting = set(outcome.waiting())
    line = [gang.id for gang in sorted(yard.gangs) if str(gang.id) in waiting]
    minutes = ((number, outcome.expected(str(number))) for number in line)
    return {number: now + wait for number, wait in minutes if isinstance(wait, float)}
