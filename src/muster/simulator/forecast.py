"""When waiting jobs start: the real cycle, run forward from the state of this moment.

Each draw is one course that things may take: how long jobs last is drawn from what was learned of
their like, and requests come as they lately came. The same draw of the same world is the same
course, so that dates move only when the world does.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import log, sqrt
from statistics import fmean, median

from muster.backends.simulated.attempt import Behaviour
from muster.controller.dates.protocol import JobDate, Lessons
from muster.controller.planner.client import InlinePlanner
from muster.lifecycle.calibration import Calibration
from muster.lifecycle.durations import Durations
from muster.lifecycle.predict import Predictor
from muster.model.dates import Foreseen, Moved, StartDate
from muster.model.history import Ended
from muster.model.job import Job, JobSpec, JobState
from muster.model.placement import Allocation
from muster.model.site import Site
from muster.model.snapshot import Snapshot
from muster.model.value import Duration, Instant, JobId
from muster.simulator.chance import chance
from muster.simulator.course import (
    IN_LINE,
    LONGEST_FORECAST,
    MOST_PASSING,
    Course,
    CourseStart,
    Lasting,
    Opening,
    opening,
    simulation_of,
)
from muster.simulator.recent import RecentArrivals
from muster.simulator.run import rare_collections
from muster.simulator.settled import Expected, SettledPredictions
from muster.simulator.sketch import Lasts, sketched

MOST_DRAWS = 5
BUDGET_S = 2.0
"""Further courses are played while all of them together take no longer than this."""

LONGEST_S = 15.0
"""No course is played for longer than this; the start of who still waits then is sketched."""

FIRST_LOOK_S = 0.2
LOOK_S = 2.0
"""What is known of those first in line is told after so long, and then so often."""

COARSE_PART, OF_LASTING, MANY = 0.05, 0.2, 20_000
"""Where so many wait, no plan is made for a while after one: for up to the first part of how far
ahead it lies, and up to the second of what jobs last. Where fewer wait, both are less."""

SAMPLED = 200

LONGEST_SUPPOSED_S = 5.0
"""So long a supposed world is played at most: who asks about it waits."""

NOTEWORTHY = Duration(60_000)
"""Who starts less earlier or later than this does not move."""

TURN = 0.618_033_988_749_895
"""Each further draw of a job is so far from the one before: together they are spread evenly."""

LEAST_MS = 1_000

Stopwatch = Callable[[], float]
"""Seconds of work so far."""


class Forecaster:
    """Learns how long jobs take and what comes, and plays what may happen. One thread calls."""

    def __init__(self, stopwatch: Stopwatch) -> None:
        self._stopwatch = stopwatch
        self._planner = InlinePlanner()
        self._durations = Durations()
        # What the live world expects, from the same lessons; and what that is, while it holds.
        self._predictor = Predictor()
        self._expected: Expected = {}
        self._recent = RecentArrivals()
        self._calibration = Calibration()

    def learn(self, lessons: Lessons) -> None:
        """What happened since the last time, the oldest first."""
        for ended in lessons.ended:
            self._learn_duration(ended)
        self._calibration.learn_all(lessons.kept)

    def note(self, job: Job) -> None:
        """A job was submitted."""
        self._recent.note(job)

    def dates(self, snapshot: Snapshot, site: Site) -> Iterator[list[JobDate]]:
        """The dates of all who wait: early news of the first in line, in the end all of them."""
        began = self._stopwatch()
        wanted = [job.id for job in snapshot.jobs.values() if job.state is JobState.PENDING]
        if not wanted:
            return
        with rare_collections():
            start = opening(snapshot, site, self._planner)
        lasts = self._lasts(snapshot.now, 0)
        yield from self._sketch(snapshot, start.order, lasts)
        first = self.course(start, 0, wanted)
        yield from self._news(snapshot, first, began)
        found = [first.found]
        for draw in range(1, MOST_DRAWS):
            if self._is_over(began, draw):
                break
            course = self.course(start, draw, wanted)
            course.play(self._until(began, LONGEST_S))
            found.append(course.found)
        rest = [job for job in start.order if job not in first.found]
        if rest:
            found[0] = {**first.found, **dict(sketched(first.snapshot, rest, lasts))}
        yield self.told(snapshot, found)

    def date(self, snapshot: Snapshot, site: Site, job: JobId) -> JobDate | None:
        """The date of one job that waits, if it starts in most courses."""
        start = opening(snapshot, site, InlinePlanner())
        began = self._stopwatch()
        found: list[Mapping[JobId, CourseStart]] = []
        while len(found) < MOST_DRAWS and not self._is_over(began, len(found)):
            course = self.course(start, len(found), [job])
            course.play(self._until(began, LONGEST_S))
            found.append(course.found)
        told = self.told(snapshot, found)
        return told[0] if told else None

    def moved(self, usual: tuple[Snapshot, Site], changed: tuple[Snapshot, Site]) -> list[Moved]:
        """Who would start at another time: the same course is played in both worlds."""
        before, after = self._played(*usual), self._played(*changed)
        return [
            Moved(job=job, before=start.at, after=after[job].at)
            for job, start in before.items()
            if job in after and abs(after[job].at - start.at) >= NOTEWORTHY
        ]

    def _played(self, snapshot: Snapshot, site: Site) -> Mapping[JobId, CourseStart]:
        wanted = [job.id for job in snapshot.jobs.values() if job.state is JobState.PENDING]
        course = self.course(opening(snapshot, site, InlinePlanner()), 0, wanted)
        course.play(self._until(self._stopwatch(), LONGEST_SUPPOSED_S))
        return course.found

    def _sketch(
        self, snapshot: Snapshot, order: Sequence[JobId], lasts: Lasts
    ) -> Iterator[list[JobDate]]:
        """Where many wait, at once: the first in line before the others."""
        found = sketched(snapshot, order, lasts)
        for part in (islice(found, IN_LINE), found):
            told = self.told(snapshot, [dict(part)])
            if told:
                yield told

    def _news(self, snapshot: Snapshot, course: Course, began: float) -> Iterator[list[JobDate]]:
        """Play the first course, and tell of those who start in it while it goes on."""
        told, look_s = 0, self._stopwatch() - began + FIRST_LOOK_S
        while not course.play(self._until(began, look_s)) and look_s < LONGEST_S:
            look_s += LOOK_S if course.found else FIRST_LOOK_S
            new = dict(islice(course.found.items(), told, None))
            told += len(new)
            if new:
                yield self.told(snapshot, [new])

    def told(
        self, snapshot: Snapshot, courses: Sequence[Mapping[JobId, CourseStart]]
    ) -> list[JobDate]:
        """A date for each job that starts in most of these courses."""
        waiting = sum(job.state is JobState.PENDING for job in snapshot.jobs.values())
        jobs = dict.fromkeys(job for course in courses for job in course)
        return [
            self._told(snapshot, job, [course.get(job) for course in courses], waiting)
            for job in jobs
            if 2 * sum(job in course for course in courses) > len(courses)
        ]

    def course(self, start: Opening, draw: int, wanted: Iterable[JobId]) -> Course:
        """One course of things, to be played until all of these have started."""
        snapshot = start.snapshot
        simulation = simulation_of(
            start,
            self._lasting(snapshot.now, draw),
            self._pause(snapshot),
            SettledPredictions(self._predictor, self._expected),
        )
        return Course(simulation, self._recent.coming(snapshot.now, draw), wanted, start.lines)

    def _pause(self, snapshot: Snapshot) -> Callable[[Instant], Duration]:
        """How exact starts must be that are far ahead, and where many jobs wait."""
        now, waiting = snapshot.now, len(snapshot.jobs) - len(snapshot.allocations)
        lasting = [
            self._durations.drawn(snapshot.jobs[job].spec, 0.5)
            for job in islice(snapshot.allocations, SAMPLED)
        ]
        many = min(1.0, waiting / MANY)
        longest, part = median(lasting or [0]) * OF_LASTING * many, COARSE_PART * many
        return lambda at: Duration(int(min(longest, (at - now) * part)))

    def _told(
        self, snapshot: Snapshot, job: JobId, begun: Sequence[CourseStart | None], waiting: int
    ) -> JobDate:
        now, spec = snapshot.now, snapshot.jobs[job].spec
        known = [each for each in begun if each is not None]
        waits = [LONGEST_FORECAST if each is None else max(0, each.at - now) for each in begun]
        measures = [log(wait + LEAST_MS) for wait in waits]
        foreseen = Foreseen(
            queue=spec.queue,
            job_class=spec.job_class,
            wait=Duration(round(median(waits))),
            spread_milli=round(1_000 * _deviation(measures)),
            waiting=waiting,
            gpu_milli=_gpu_milli(spec),
            courses=sum(not each.is_sketched for each in known),
        )
        wait = self._calibration.range(foreseen)
        date = StartDate(
            early=Instant(now + wait.early),
            middle=Instant(now + wait.middle),
            late=Instant(now + wait.late),
            after=known[0].after,
            newcomers=round(fmean(each.newcomers for each in known)),
            passing=_most_often(each.passing for each in known),
        )
        return JobDate(job=job, date=date, foreseen=foreseen)

    def _is_over(self, began: float, played: int) -> bool:
        """Would one more course be too long?"""
        used = self._stopwatch() - began
        return bool(played) and used + used / played > BUDGET_S

    def _until(self, began: float, look_s: float) -> Callable[[], bool]:
        stopwatch = self._stopwatch
        return lambda: stopwatch() - began > look_s

    def _lasting(self, now: Instant, draw: int) -> Lasting:
        lasts = self._lasts(now, draw)
        return lambda job, allocation: Behaviour(work=lasts(job, allocation))

    def _lasts(self, now: Instant, draw: int) -> Lasts:
        def lasts(job: Job, allocation: Allocation | None) -> Duration:
            ran = 0
            if allocation is not None and allocation.started_at is not None:
                until = now if allocation.stands_since is None else allocation.stands_since
                ran = max(0, until - allocation.started_at - allocation.stood)
            part = (chance(job.id) + TURN * draw) % 1.0
            return self._durations.drawn(job.spec, part, ran)

        return lasts

    def _learn_duration(self, ended: Ended) -> None:
        self._recent.note(ended.job)
        if ended.started_at is not None:
            lasted = ended.ended_at - ended.started_at
            self._durations.learn(ended.job.id, ended.job.spec, lasted)
            self._predictor.learn(ended.job.id, ended.job.spec, lasted)
            self._expected.clear()


def _most_often(passing: Iterable[tuple[JobId, ...]]) -> tuple[JobId, ...]:
    """Some of those that pass, first those that do so in the most courses."""
    often = Counter(job for some in passing for job in some)
    return tuple(sorted(sorted(often, key=lambda job: (-often[job], job))[:MOST_PASSING]))


def _deviation(measures: Sequence[float]) -> float:
    mean = fmean(measures)
    return sqrt(fmean((each - mean) ** 2 for each in measures))


def _gpu_milli(spec: JobSpec) -> int:
    return sum(group.each.amount(None).gpu_milli * group.count for group in spec.groups)
