"""When to plan: after events that may let a job start, and when something falls due."""

import heapq
from collections.abc import Iterator

from muster.controller.world.record import Record
from muster.controller.world.reservations import current_windows
from muster.controller.world.transaction import Change
from muster.model.event import (
    ClusterSeen,
    DeadlineMissForeseen,
    Event,
    JobCheckpointed,
    JobPlaced,
    JobResized,
    JobStarted,
    JobSubmitted,
)
from muster.model.job import Dependency, DependencyKind, Job, JobState
from muster.model.levels import bracket_of, end_of, has_saved, ran_by
from muster.model.site import Site
from muster.model.value import DAY, Duration, Instant, JobId
from muster.stores.base import Batch

Quiet = JobPlaced | JobStarted | JobCheckpointed | JobResized | ClusterSeen | DeadlineMissForeseen
"""Events that are no reason to plan again: they take room or report what was decided."""

HEARTBEAT_MS = Duration(30_000)
"""Priorities change as jobs age and usage decays: while any job waits, plan at least so often."""


QUIET_FOR = Duration(8 * DAY)
"""Reservations that come back are no reason to look again when nothing has happened for so long:
each of them was open meanwhile. In pretend time somebody waits for the last reason."""


class PlanTriggers:
    """Is there a reason to plan? Follows every commit; asked in between."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._due: list[Instant] = []
        self._leaving: list[tuple[Instant, JobId]] = []
        self._leaves_at: dict[JobId, Instant] = {}
        self._site: Site | None = None
        self._windows: set[Instant] = set()
        self._comes_back = False
        self._noted_at = Instant(0)

    def note(self, batch: Batch, changes: tuple[Change, ...], now: Instant) -> bool:
        """Is this a reason to plan now? What falls due later is remembered."""
        for change in changes:
            self._remember(change.after, now)
        self._remember_delays(batch, now)
        self._noted_at = now
        self._remember_site(now)
        if self._comes_back:
            self._remember_windows(now)
        return any(map(self._matters, batch.events))

    def look_around(self, now: Instant) -> None:
        """Remember what falls due of all that was there before."""
        self._noted_at = now
        self._remember_site(now)
        for job in self._record.every_job():
            self._remember(job, now)

    def ring(self, now: Instant) -> bool:
        """Is something due by now? It is due once."""
        rang = self._leave_brackets(now)
        while self._due and self._due[0] <= now:
            heapq.heappop(self._due)
            rang = True
        if rang and self._comes_back:
            self._remember_windows(now)
        return rang

    def next_at(self) -> Instant | None:
        """When something falls due next."""
        found = self._due[:1] + [at for at, _ in self._next_leaving()]
        return min(found, default=None)

    def _next_leaving(self) -> list[tuple[Instant, JobId]]:
        """Who was stopped meanwhile leaves its bracket at another time, if at all."""
        leaving = self._leaving
        while leaving and self._leaves_at.get(leaving[0][1]) != leaving[0][0]:
            heapq.heappop(leaving)
        return leaving[:1]

    def _leave_brackets(self, now: Instant) -> bool:
        """Jobs that ran so long may stand on another level, and others may now take their room."""
        rang = False
        while (due := self._next_leaving()) and due[0][0] <= now:
            _, job_id = heapq.heappop(self._leaving)
            self._leaves_at.pop(job_id, None)
            job = self._record.jobs.get(job_id)
            if job is not None:
                self._remember_bracket(job, now)
            rang = True
        return rang

    def _remember_bracket(self, job: Job, now: Instant) -> None:
        if job.state is not JobState.RUNNING or not self._stands_on_level(job):
            self._leaves_at.pop(job.id, None)
            return
        ran = ran_by(job, self._record.allocations.get(job.id), now)
        at = Instant(now + end_of(bracket_of(ran)) - ran)
        if self._leaves_at.get(job.id) != at:
            self._leaves_at[job.id] = at
            heapq.heappush(self._leaving, (at, job.id))

    def _stands_on_level(self, job: Job) -> bool:
        """May others take its room by service, now or later?"""
        site = self._record.site
        if site.policy.counts_all_service:
            return True
        is_saved = has_saved(job, site.classes.get(job.spec.job_class))
        return site.policy.preempt.by_service_if_saved and is_saved

    def _remember(self, job: Job, now: Instant) -> None:
        self._remember_bracket(job, now)
        if job.state is not JobState.PENDING:
            return
        for at in (*_due_for(job), *self._delays_of(job)):
            if at > now:
                heapq.heappush(self._due, at)

    def _remember_site(self, now: Instant) -> None:
        if self._record.site is self._site:
            return
        self._site = self._record.site
        for job in self._record.every_job():
            self._remember_bracket(job, now)
        self._comes_back = any(each.every for each in self._site.reservations)
        self._windows.clear()
        self._remember_windows(now)

    def _remember_windows(self, now: Instant) -> None:
        if self._site is None or now > self._noted_at + QUIET_FOR:
            return
        self._windows = {at for at in self._windows if at > now}
        for each in current_windows(self._site.reservations, now):
            for at in (each.begins_at, each.ends_at):
                if at > now and at not in self._windows:
                    self._windows.add(at)
                    heapq.heappush(self._due, at)

    def _remember_delays(self, batch: Batch, now: Instant) -> None:
        """Others may wait for some time after a start or an end."""
        started = [event.job for event in batch.events if isinstance(event, JobStarted)]
        met = {job for job in started if self._record.is_awaited(job)}
        met.update([each.job.id for each in batch.ended if each.job.id in self._record.finished])
        if not met:
            return
        for job in self._record.dependents(met):
            if any(each.job in met and each.delay for each in job.spec.after):
                self._remember(job, now)

    def _delays_of(self, job: Job) -> Iterator[Instant]:
        """When what the job depends on will be long enough ago, as far as that is known."""
        for each in job.spec.after:
            since = self._since(each) if each.delay else None
            if since is not None:
                yield Instant(since + each.delay)

    def _since(self, dependency: Dependency) -> Instant | None:
        other = dependency.job
        if other is None:
            return None
        is_start = dependency.kind is DependencyKind.AFTER
        finished = self._record.finished.get(other)
        if finished is not None:
            return (finished.started_at if is_start else None) or finished.ended_at
        allocation = self._record.allocations.get(other)
        return allocation.started_at if is_start and allocation is not None else None

    def _matters(self, event: Event) -> bool:
        if isinstance(event, JobStarted) and self._record.is_awaited(event.job):
            return True
        if isinstance(event, JobSubmitted):
            return not event.held
        return not isinstance(event, Quiet)


def _due_for(job: Job) -> Iterator[Instant]:
    if job.begin_at is not None:
        yield job.begin_at
    if job.claim is not None:
        yield job.claim.until
    if job.spec.deadline is not None:
        yield Instant(job.spec.deadline - (job.spec.time_limit or 0) + 1)
