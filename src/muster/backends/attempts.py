"""The life of one attempt on an engine that is only looked at. Pure.

It says what is to be told of the attempt, and what is to be done to it. Engines have limits in
minutes, or one grace for all: so Muster itself keeps time and sends the signals, and what the
engine has of its own is there for when nobody does.
"""

import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

import msgspec

from muster.backends.base import Limit, Stop
from muster.backends.notes import Note
from muster.backends.timeline import DueAction, StopOrder, StopRules, Timeline
from muster.model.event import Event, JobEnded, JobStarted, JobSuspended
from muster.model.job import EndReason, NodeFailed
from muster.model.value import Duration, Instant, NodeId, Value, replace

_RESUMES_IN = Duration(2_500)
"""Suspending takes slurmstepd two seconds, and until a job has gone on it loses its signals."""
_AGAIN_IN = Duration(2_000)
_TIMES_AGAIN = 5
"""On a busy node it takes longer, and nobody says when: SIGTERM is sent again while it runs."""


class Phase(Enum):
    """Where the engine's own object stands, as far as it matters to an attempt."""

    WAITS = "waits"
    RUNS = "runs"
    STANDS = "stands"
    LEAVES = "leaves"
    OVER = "over"


class Look(Value):
    """What the engine says of an attempt now.

    started_at: when it began, if it ever did; ended_at and why: how it ended, if it is over.
    """

    phase: Phase
    started_at: Instant | None = None
    ended_at: Instant | None = None
    why: EndReason | None = None


class Send(Value, gc=False):
    """Send this signal to the attempt's processes: to all, or to the first one."""

    signal: int
    first_only: bool = False


class End(Value, gc=False):
    """Ask all of its processes to end; in so much time they are killed."""

    grace: Duration


class Kill(Value, gc=False):
    """End it now, whatever it does."""


class Resume(Value, gc=False):
    """Let suspended processes go on."""


Deed = Send | End | Kill | Resume


@dataclass(kw_only=True)
class Attempt:
    """One attempt and its note. seen: what was last seen of it."""

    note: Note
    seen: Look | None = None
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
        return self.note.nodes[0] if self.note.nodes else NodeId("unknown")

    def look(self, seen: Look, now: Instant) -> Iterator[Event]:
        """What is seen of it that was not told before."""
        self.seen = seen
        if self.is_over:
            return
        if self._begins(seen):
            yield from self._started(seen)
        if seen.phase is Phase.STANDS:
            yield from self._stands(now)
        elif seen.phase is Phase.RUNS and self.timeline is not None and self.timeline.is_suspended:
            self.timeline.resume(now)
            self._told.discard(JobSuspended)
        if seen.phase is Phase.OVER:
            why = self._ordered() or seen.why or NodeFailed(node=self.node)
            yield from self.end(why, self._ended_at(seen, now))

    def lost(self, now: Instant) -> Iterator[Event]:
        """The engine does not know it, and does not say how it ended."""
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

    def break_off(self, now: Instant) -> None:
        """A part of it failed: the others end too."""
        if self.timeline is not None:
            self.timeline.break_off(now, self.note.grace)

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
            yield self._deed(action, self.timeline, now)
        yield from self._end_again(self.timeline, now)

    def next_due(self) -> int | None:
        if self.timeline is None or self.is_over:
            return None
        dues = [due for due in (self.timeline.next_ms(), self._again_at) if due is not None]
        return max(min(dues), self._resumes_at or 0) if dues else None

    def _end_again(self, timeline: Timeline, now: Instant) -> Iterator[Deed]:
        if self._again_at is None or now < self._again_at:
            return
        runs = self.seen is not None and self.seen.phase is Phase.RUNS
        self._times_again -= 1
        self._again_at = Instant(now + _AGAIN_IN) if runs and self._times_again > 0 else None
        if runs:
            yield self._deed(DueAction.END, timeline, now)

    def _begins(self, seen: Look) -> bool:
        begun = seen.started_at is not None and seen.phase is not Phase.WAITS
        return self.timeline is None and begun

    def _started(self, seen: Look) -> Iterator[Event]:
        at = self.note.started_at
        if at is None:
            at = Instant(max(seen.started_at or 0, self.note.began_at))
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

    def _deed(self, action: DueAction, timeline: Timeline, now: Instant) -> Deed:
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
                killed_ms = timeline.next_ms()
                left = 0 if killed_ms is None else max(0, killed_ms - now)
                return End(grace=Duration(left))
            case DueAction.KILL:
                return Kill()

    def _ended_at(self, seen: Look, now: Instant) -> Instant:
        """Engines tell the second: not before what made it end, and not to come."""
        note = self.note
        least = max(note.started_at or note.began_at, note.stopped_at or 0, self._acted_at or 0)
        return Instant(min(max(seen.ended_at or 0, least), now))

    def _ordered(self) -> EndReason | None:
        """Why we ended it, if we did."""
        if self.timeline is not None and self.timeline.why is not None:
            return msgspec.convert(self.timeline.why, EndReason)  # pyright: ignore[reportArgumentType] - a union
        return None if self.note.stop is None else self.note.stop.why


def _stop_order(order: Stop) -> StopOrder:
    return StopOrder(
        why=msgspec.to_builtins(order.why), grace_ms=order.grace, checkpoint=order.checkpoint
    )
