"""First dates that jobs of a trace get when they must wait, by two methods."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import process_time

from bench._default_ours import Setting, arrivals, backends, rows_by_id
from bench._jct_queue import TESTED, Limits, Profile, Running, Started, easy
from bench._jct_trace import Park, Row
from muster.controller.dates.board import DateBoard
from muster.controller.loop.controller import LastPlan
from muster.controller.world.transaction import Change
from muster.model.dates import KeptDate
from muster.model.event import JobStarted, JobSubmitted
from muster.model.plan import Plan
from muster.model.value import Instant, JobId
from muster.simulator.forecast_server import InlineForecasts
from muster.simulator.run import Simulation
from muster.stores.base import Batch


@dataclass(frozen=True, slots=True)
class Range:
    """When a job starts, it was said: not before, in the middle, and not after, in seconds."""

    early_s: float
    middle_s: float
    late_s: float


@dataclass(slots=True)
class Dates:
    """When jobs started, by number, and the first date that some of those got that had to wait.

    None: the job was asked about, and there was no date.
    """

    first: dict[int, Range | None] = field(default_factory=dict[int, Range | None])
    started: Started = field(default_factory=Started)


class Sample:
    """Each so-manieth of the jobs that must wait."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._waited = 0

    def has(self) -> bool:
        """Is the next of them in it?"""
        self._waited += 1
        return (self._waited - 1) % self._every == 0


def waited(park: Park, limits: Limits) -> int:
    """How many jobs wait under EASY, about as many as under other policies."""
    started = easy(park, limits)
    return sum(started[row.number] > row.at_s for row in park.rows)


def by_limits(park: Park, limits: Limits, every: int) -> Dates:
    """Slurm's method, under EASY: all that run leave at their limits, and those ahead go first.

    Jobs behind so many as are tested get no date, nor do those that wait for one without a limit.
    """
    dates, sample = Dates(), Sample(every)

    def watch(now: int, came: Sequence[Row], waiting: Sequence[Row], running: Running) -> None:
        numbers = {row.number for row in came}
        asked = {row.number for row in waiting if row.number in numbers and sample.has()}
        if not asked:
            return
        dates.first |= dict.fromkeys(asked)
        profile = Profile(running, now)
        left = len(asked)
        for row in waiting[:TESTED]:
            limit_s = running.ends_by(row, now) - now
            found = profile.earliest(row.gpus, limit_s)
            if found is not None:
                profile.reserve(*found, limit_s)
            if row.number in asked:
                dates.first[row.number] = (
                    None if found is None else Range(found[0], found[0], found[0])
                )
                left -= 1
            if not left:
                return

    dates.started = easy(park, limits, watch)
    return dates


def forecast(
    park: Park, setting: Setting, every: int, stopwatch: Callable[[], float] = process_time
) -> Dates:
    """Run the default policy, and have some jobs that must wait told when they start.

    The board of an installation asks and remembers: the date is the first that it shows, be it
    early news of one course or a sketch, and it learns from all jobs that it told one.
    """
    simulation = _Telling(park, setting, every, stopwatch)
    simulation.run(arrivals(park.rows, setting))
    simulation.settle()
    return simulation.dates


class _Telling(Simulation):
    """Has the board look after the turn in which a job was submitted."""

    def __init__(
        self, park: Park, setting: Setting, every: int, stopwatch: Callable[[], float]
    ) -> None:
        self.dates = Dates()
        self._rows = rows_by_id(park)
        self._sample = Sample(every)
        self._new: list[JobId] = []
        self._asked: dict[JobId, Instant] = {}
        super().__init__(setting.site, backends(park, setting))
        self._last_plan = LastPlan()
        forecasts = InlineForecasts(stopwatch)
        self._board = DateBoard(
            self.journal, self._last_plan, forecasts, lambda: self.now, self.journal.write
        )
        self._board.begin(self.journal.transaction())
        self.watch(self._hear)

    def turn(self) -> None:
        super().turn()
        plan = self.plan
        waits = {} if plan is None else plan.waits
        for job in self._new:
            if plan is not None and job in waits and self._sample.has():
                self._ask(job, plan)
        # A plan can be put off; who starts then did not have to wait for another.
        self._new = [job for job in self._new if job in self.record.waiting and job not in waits]

    def settle(self) -> None:
        """All jobs are over: have the last outcomes written down as well."""
        self._board.look()

    def _ask(self, job: JobId, plan: Plan) -> None:
        self._asked[job] = self.now
        self.dates.first[self._rows[job].number] = None
        self._last_plan.settle(plan, self.now, 0)
        self._board.look()

    def _hear(self, batch: Batch, _: tuple[Change, ...]) -> None:
        for event in batch.events:
            match event:
                case JobSubmitted(job=job):
                    self._new.append(job)
                case JobStarted(job=job, at=at):
                    self.dates.started.setdefault(self._rows[job].number, _seconds(at))
                case _:
                    continue
        for kept in batch.dates:
            # Who got none when it was asked about may have got one later.
            if self._asked.get(kept.job) == kept.told_at:
                self.dates.first[self._rows[kept.job].number] = _range(kept)


def _range(kept: KeptDate) -> Range:
    return Range(kept.early / 1_000, kept.middle / 1_000, kept.late / 1_000)


def _seconds(at: Instant) -> int:
    return -(-at // 1_000)
