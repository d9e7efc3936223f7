"""First dates that jobs of a trace get when they must wait, by two methods."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import process_time

from bench._default_ours import Setting, arrivals, backends, rows_by_id
from bench._jct_queue import TESTED, Limits, Profile, Running, Started, easy
from bench._jct_trace import Park, Row
from muster.controller.dates.board import kept_date
from muster.controller.dates.protocol import JobDate, Lessons
from muster.controller.world.transaction import Change
from muster.model.event import JobStarted, JobSubmitted
from muster.model.value import Instant, JobId
from muster.simulator.forecast import Forecaster
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


def forecast(park: Park, setting: Setting, every: int) -> Dates:
    """Run the default policy, and have some jobs that must wait told when they start.

    As in an installation, what becomes of a date is known when its job starts.
    """
    simulation = _Telling(park, setting, every)
    simulation.run(arrivals(park.rows, setting))
    return simulation.dates


class _Telling(Simulation):
    """Asks for a date after the turn in which a job was submitted."""

    def __init__(self, park: Park, setting: Setting, every: int) -> None:
        self.dates = Dates()
        self._forecaster = Forecaster(process_time)
        self._told: dict[JobId, tuple[Instant, JobDate]] = {}
        self._rows = rows_by_id(park)
        self._sample = Sample(every)
        self._new: list[JobId] = []
        super().__init__(setting.site, backends(park, setting))
        self.watch(self._hear)

    def turn(self) -> None:
        super().turn()
        waits = {} if self.plan is None else self.plan.waits
        for job in self._new:
            if job in waits and self._sample.has():
                self._tell(job)
        # A plan can be put off; who starts then did not have to wait for another.
        self._new = [job for job in self._new if job in self.record.waiting and job not in waits]

    def _tell(self, job: JobId) -> None:
        snapshot = self.record.snapshot(self.now)
        told = self._forecaster.date(snapshot, self.record.site, job)
        number = self._rows[job].number
        self.dates.first[number] = None
        if told is not None:
            self._told[job] = (self.now, told)
            date = told.date
            self.dates.first[number] = Range(
                date.early / 1_000, date.middle / 1_000, date.late / 1_000
            )

    def _hear(self, batch: Batch, _: tuple[Change, ...]) -> None:
        for event in batch.events:
            match event:
                case JobSubmitted(job=job):
                    self._new.append(job)
                    self._forecaster.note(self.record.jobs[job])
                case JobStarted(job=job, at=at):
                    self.dates.started.setdefault(self._rows[job].number, _seconds(at))
                    self._learn(event)
                case _:
                    continue
        if batch.ended:
            self._forecaster.learn(Lessons(ended=batch.ended))

    def _learn(self, event: JobStarted) -> None:
        if event.job in self._told:
            told_at, told = self._told.pop(event.job)
            self._forecaster.learn(Lessons(kept=(kept_date(told_at, told, event),)))


def _seconds(at: Instant) -> int:
    return -(-at // 1_000)
