"""The life of one attempt in Slurm: what is to be told of it, and what is to be done to it. Pure.

Slurm's limits are whole minutes and its grace is one for all jobs, so that Muster itself keeps
time: it sends the signals, and Slurm's own limit is there for when nobody does.
"""

import signal
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from muster.backends.base import Limit, Stop
from muster.backends.slurm.listing import Phase, QueuedJob
from muster.backends.slurm.notes import Note
from muster.backends.timeline import DueAction, StopOrder, StopRules, Timeline
from muster.model.event import Event, JobEnded, JobStarted, JobSuspended
from muster.model.job import (
    Cancelled,
    EndReason,
    Exited,
    NodeFailed,
    OutOfMemory,
    Requeued,
    Signaled,
    TimedOut,
)
from muster.model.value import Duration, Instant, NodeId, UserName, Value, replace

SLURM = UserName("slurm")
"""On whose behalf Slurm itself ends a job, or an administrator with its commands."""


_RESUMES_IN = Duration(2_500)
"""Suspending takes slurmstepd two seconds, and until a job has gone on it loses its signals."""
_AGAIN_IN = Duration(2_000)
_TIMES_AGAIN = 5
"""On a busy node it takes longer, and nobody says when: SIGTERM is sent again while it runs."""


class Send(Value, gc=False):
    """Send this signal to the job's processes: to all, or to the first one."""

    signal: int
    first_only: bool = False


class Kill(Value, gc=False):
    """End it now, whatever it does."""


class Resume(Value, gc=False):
    """Let suspended processes go on."""


Deed = Send | Kill | Resume


@dataclass(kw_only=True)
class Attempt:
    """One attempt and its note. seen: Slurm's job as it was last listed."""

    note: Note
    seen: QueuedJob | None = None
    timeline: Timeline | None = None
    _told: set[type[Event]] = field(default_factory=set[type[Event]])
    _acted_at: Instant | None = None
    _resumes_at: Instant | None = None
    _again_at: Instant | None = None
    _times_again: int = 0

    @property
    def is_over(self) -> bool:
        return self.note.ended is not None

    @property
    def node(self) -> NodeId:
        return self.note.nodes[0] if self.note.nodes else NodeId("slurm")

    def look(self, job: QueuedJob, now: Instant) -> Iterator[Event]:
        """What the listing says of it that was not told before."""
        self.seen = job
        if self.is_over:
            return
        if self._begins(job):
            yield from self._started(job)
        if job.phase is Phase.STANDS:
            yield from self._stands(now)
        elif job.phase is Phase.RUNS and self.timeline is not None and self.timeline.is_suspended:
            self.timeline.resume(now)
            self._told.discard(JobSuspended)
        if job.phase is Phase.OVER:
            yield from self.end(self._why(job), self._ended_at(job, now))

    def lost(self, now: Instant) -> Iterator[Event]:
        """Slurm does not know it, and does not say how it ended."""
        yield from self.end(self._ordered() or NodeFailed(node=self.node), now)

    def end(self, why: EndReason, at: Instant) -> Iterator[Event]:
        """It is over."""
        if self.is_over:
            return
        ended = JobEnded(at=at, job=self.note.job, attempt=self.note.attempt, why=why)
        self.note = replace(self.note, ended=ended)
        yield ended

    def stop(self, order: Stop, now: Instant) -> None:
        """End it; a second order can only make it end sooner."""
        if self.note.stop is None:
            self.note = replace(self.note, stop=order, stopped_at=now)
        if self.timeline is not None:
            self.timeline.resume(now)
            self.timeline.stop(_stop_order(order), now)

    def limit(self, order: Limit) -> None:
        self.note = replace(self.note, changed_limit=True, ends_at=order.ends_at)
        if self.timeline is not None:
            self.timeline.limit(order.ends_at)

    def checkpointed(self, now: Instant) -> None:
        if self.timeline is not None:
            self.timeline.checkpointed(now)

    def due(self, now: Instant) -> Iterator[Deed]:
        """What is to be done now; nothing before it runs but to end it."""
        if self.is_over or self.note.handle is None:
            return
        if self.timeline is None:
            if self.note.stop is not None:
                yield Kill()
            return
        if self._resumes_at is not None and now < self._resumes_at:
            return
        if self._stands_to_end():
            self._resumes_at = Instant(now + _RESUMES_IN)
            yield Resume()
            return
        for action in self.timeline.due(now):
            self._acted_at = now
            if action is DueAction.END and self._resumes_at is not None:
                self._again_at, self._times_again = Instant(now + _AGAIN_IN), _TIMES_AGAIN
            yield self._deed(action)
        yield from self._end_again(now)

    def next_due(self) -> int | None:
        if self.timeline is None or self.is_over:
            return None
        dues = [due for due in (self.timeline.next_ms(), self._again_at) if due is not None]
        return max(min(dues), self._resumes_at or 0) if dues else None

    def _end_again(self, now: Instant) -> Iterator[Deed]:
        if self._again_at is None or now < self._again_at:
            return
        runs = self.seen is not None and self.seen.phase is Phase.RUNS
        self._times_again -= 1
        self._again_at = Instant(now + _AGAIN_IN) if runs and self._times_again > 0 else None
        if runs:
            yield self._deed(DueAction.END)

    def _begins(self, job: QueuedJob) -> bool:
        return self.timeline is None and job.started_s is not None and job.phase is not Phase.WAITS

    def _started(self, job: QueuedJob) -> Iterator[Event]:
        if job.phase is Phase.OVER and not job.nodes:
            # Cancelled while it waited: Slurm says that it started when it was cancelled.
            return
        at = self.note.started_at
        if at is None:
            at = Instant(max(1_000 * (job.started_s or 0), self.note.began_at))
        self.note = note = replace(self.note, started_at=at)
        self._keep_time(at)
        yield JobStarted(at=at, job=note.job, attempt=note.attempt, handle=note.handle)

    def _keep_time(self, began_at: Instant) -> None:
        note = self.note
        rules = StopRules(
            grace_ms=note.grace,
            warn_lead_ms=None if note.warn is None else note.warn.lead,
            asks_checkpoint=note.checkpoint is not None and note.checkpoint.signal is not None,
        )
        self.timeline = Timeline(rules=rules, began_ms=began_at)
        if note.changed_limit:
            self.timeline.limit(note.ends_at)
        elif note.limit is not None:
            self.timeline.limit(began_at + note.limit)
        if note.stop is not None:
            self.timeline.stop(_stop_order(note.stop), note.stopped_at or began_at)

    def _stands_to_end(self) -> bool:
        stands = self.seen is not None and self.seen.phase is Phase.STANDS
        return stands and self.timeline is not None and self.timeline.is_ending

    def _stands(self, now: Instant) -> Iterator[Event]:
        if self.timeline is not None and not self.timeline.is_ending:
            self.timeline.suspend(now)
        if JobSuspended not in self._told:
            self._told.add(JobSuspended)
            yield JobSuspended(at=now, job=self.note.job, attempt=self.note.attempt)

    def _deed(self, action: DueAction) -> Deed:
        note = self.note
        match action:
            case DueAction.ASK_CHECKPOINT:
                wanted = None if note.checkpoint is None else note.checkpoint.signal
                return Send(signal=wanted or signal.SIGUSR1)
            case DueAction.WARN:
                warn = note.warn
                if warn is None:
                    return Send(signal=signal.SIGUSR1)
                return Send(signal=warn.signal, first_only=warn.shell_only)
            case DueAction.END:
                return Send(signal=signal.SIGTERM)
            case DueAction.KILL:
                return Kill()

    def _ended_at(self, job: QueuedJob, now: Instant) -> Instant:
        """Slurm tells the second: not before what made it end, and not to come."""
        note = self.note
        least = max(note.started_at or note.began_at, note.stopped_at or 0, self._acted_at or 0)
        return Instant(min(max(1_000 * (job.ended_s or 0), least), now))

    def _ordered(self) -> EndReason | None:
        """Why we ended it, if we did."""
        if self.timeline is not None and self.timeline.why is not None:
            return msgspec.convert(self.timeline.why, EndReason)  # pyright: ignore[reportArgumentType] - a union
        return None if self.note.stop is None else self.note.stop.why

    def _why(self, job: QueuedJob) -> EndReason:
        ordered = self._ordered()
        if ordered is not None:
            return ordered
        match job.state:
            case "NODE_FAIL" | "BOOT_FAIL":
                return NodeFailed(node=self.node)
            case "OUT_OF_MEMORY":
                return OutOfMemory(node=self.node)
            case "TIMEOUT" | "DEADLINE":
                return TimedOut(limit=self.note.limit or Duration(0))
            case "CANCELLED":
                return Cancelled(by=SLURM)
            case "PREEMPTED" | "REVOKED":
                return Requeued(by=SLURM)
            case _:
                number = job.status & 0x7F
                return Signaled(signal=number) if number else Exited(code=job.status >> 8)


def _stop_order(order: Stop) -> StopOrder:
    return StopOrder(
        why=msgspec.to_builtins(order.why), grace_ms=order.grace, checkpoint=order.checkpoint
    )
