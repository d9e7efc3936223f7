"""Runs the planner and the verifier over a world, cycle by cycle, and measures each.

A controller that runs for long freezes the garbage collector's view of its world once it is
loaded, so that collections need not walk through it again, and lets them come less often; so does
this, after the world is built and again after the first plan. As there, snapshots name what changed
since the one before, and a register is kept for the verifier.
"""

import cProfile
import gc
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import median
from typing import TypeVar

from bench.world import Size, advance, world
from muster.model.job import WAITING
from muster.model.plan import Backlog, Clear, NoEstimate, Plan, Start
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.schedule.plan import Planner
from muster.schedule.verify import Register, violations

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Lap:
    """How long something took, by the clock on the wall and by the processor's own."""

    wall_s: float
    cpu_s: float

    def __add__(self, other: "Lap") -> "Lap":
        return Lap(wall_s=self.wall_s + other.wall_s, cpu_s=self.cpu_s + other.cpu_s)


@dataclass(frozen=True, kw_only=True)
class Cycle:
    """What one plan and its verification took, and what the plan comes to."""

    plan: Lap
    verify: Lap
    jobs: int
    started: int
    placements: int
    gpu_milli: int
    cleared: int
    reasons: Sequence[str]
    estimated: int

    @property
    def both(self) -> Lap:
        return self.plan + self.verify


@dataclass(frozen=True, kw_only=True)
class Run:
    """The first plan into an empty cluster, the cycles after it, and the most memory they took."""

    size: Size
    first: Cycle
    later: Sequence[Cycle]
    peak_rss_mib: int


@dataclass(kw_only=True)
class Stopwatch:
    """Times work; when `profiles` is given, it also profiles each phase, which makes it slower."""

    profiles: dict[str, cProfile.Profile] | None = None
    laps: dict[str, Lap] = field(default_factory=dict[str, Lap])

    def time(self, phase: str, work: Callable[[], T]) -> T:
        if self.profiles is not None:
            profile = self.profiles.setdefault(phase, cProfile.Profile())
            return self._time(phase, lambda: profile.runcall(work))
        return self._time(phase, work)

    def _time(self, phase: str, work: Callable[[], T]) -> T:
        wall, cpu = time.perf_counter(), time.process_time()
        done = work()
        self.laps[phase] = Lap(wall_s=time.perf_counter() - wall, cpu_s=time.process_time() - cpu)
        return done


def run(size: Size, *, seed: int, cycles: int, watch: Stopwatch | None = None) -> Run:
    """Plan into an empty cluster, then let 100 jobs end and 100 arrive before each later cycle."""
    watch = watch or Stopwatch()
    register = Register()
    rng = Random(seed)
    planner = Planner(Policy())
    snapshot = world(size, seed)
    settle()
    plan, first = _cycle("first", (planner, register), snapshot, watch)
    later: list[Cycle] = []
    for _ in range(cycles):
        snapshot = advance(snapshot, plan, rng)
        if not later:
            settle()
        plan, cycle = _cycle("later", (planner, register), snapshot, watch)
        later.append(cycle)
    peak = peak_rss_mib()
    gc.unfreeze()
    return Run(size=size, first=first, later=later, peak_rss_mib=peak)


def settle() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


def peak_rss_mib() -> int:
    """The most memory this process ever had; Linux counts it in KiB, macOS in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // (2**20 if sys.platform == "darwin" else 2**10)


def median_of(laps: Sequence[Lap]) -> Lap:
    """The median by either clock; they need not be of the same lap."""
    return Lap(wall_s=median(lap.wall_s for lap in laps), cpu_s=median(lap.cpu_s for lap in laps))


def _cycle(
    when: str, thinkers: tuple[Planner, Register], snapshot: Snapshot, watch: Stopwatch
) -> tuple[Plan, Cycle]:
    planner, register = thinkers
    plan = watch.time(f"{when}-plan", lambda: planner.plan(snapshot))
    broken = watch.time(f"{when}-verify", lambda: violations(snapshot, plan, register))
    assert not broken, broken[:10]
    backlog = watch.time(f"{when}-backlog", planner.backlog)
    assert_everyone_is_answered(snapshot, plan, backlog)
    starts = [one for one in plan.moves if isinstance(one, Start)]
    placements = [placement for start in starts for placement in start.placements]
    return plan, Cycle(
        plan=watch.laps[f"{when}-plan"],
        verify=watch.laps[f"{when}-verify"],
        jobs=len(plan.moves) + len(plan.waits),
        started=len(starts),
        placements=len(placements),
        gpu_milli=sum(placement.amount.gpu_milli for placement in placements),
        cleared=sum(isinstance(one, Clear) for one in plan.moves),
        reasons=[type(one.why).__name__ for one in plan.waits.values()],
        estimated=sum(not isinstance(one.expected, NoEstimate) for one in backlog.values()),
    )


def assert_everyone_is_answered(snapshot: Snapshot, plan: Plan, backlog: Backlog) -> None:
    """One decision for each waiting job; if it waits, until when or why that is unknown."""
    waiting = {job.id for job in snapshot.jobs.values() if job.state in WAITING}
    moved = [one.job for one in plan.moves]
    assert len(moved) + len(plan.waits) == len(waiting)
    assert {*moved, *plan.waits} == waiting
    assert backlog.keys() == plan.waits.keys()
    for one in backlog.values():
        assert isinstance(one.expected, NoEstimate) or one.expected >= snapshot.now
