"""What is due when in the life of one attempt: warning, SIGTERM, SIGKILL. Pure; time is given.

Times are milliseconds on a clock that only goes forward.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

Why = dict[str, Any]
"""An EndReason in its JSON form."""


class DueAction(Enum):
    """What is to be done to the attempt's processes."""

    ASK_CHECKPOINT = "ask for a checkpoint"
    WARN = "warn"
    END = "ask to end"
    KILL = "kill"


@dataclass(frozen=True, kw_only=True)
class StopRules:
    """How an attempt is ended: its own wishes, and the grace at its time limit."""

    grace_ms: int
    warn_lead_ms: int | None = None
    asks_checkpoint: bool = False


@dataclass(frozen=True, kw_only=True)
class StopOrder:
    """The attempt must end, for this reason, within this grace."""

    why: Why
    grace_ms: int
    checkpoint: bool = False


@dataclass(kw_only=True)
class Timeline:
    """What is due when. `why` is set with the first signal that is sent to end the attempt."""

    rules: StopRules
    began_ms: int
    why: Why | None = None
    _ahead: list[tuple[int, DueAction]] = field(default_factory=list[tuple[int, DueAction]])
    _ends_ms: int | None = None
    _suspended_since_ms: int | None = None
    _suspended_ms: int = 0
    _is_ending: bool = False
    _is_warned: bool = False
    _awaits_checkpoint: bool = False

    @property
    def is_ending(self) -> bool:
        return self._is_ending

    @property
    def is_suspended(self) -> bool:
        return self._suspended_since_ms is not None

    @property
    def awaits_checkpoint(self) -> bool:
        return self._awaits_checkpoint

    def limit(self, ends_ms: int | None) -> None:
        """The attempt must end by then, or need not end at all."""
        self._ends_ms = ends_ms
        if self._is_ending:
            return
        self._ahead = [] if ends_ms is None else self._to_the_limit(ends_ms)

    def stop(self, order: StopOrder, now_ms: int) -> None:
        """End it; a second order can only make it end sooner."""
        last = now_ms + order.grace_ms
        if self._is_ending:
            self._ahead = [(min(at, last), action) for at, action in self._ahead]
            return
        self._is_ending = True
        self.why = order.why
        asks = order.checkpoint and self.rules.asks_checkpoint
        self._awaits_checkpoint = asks
        actions = [(now_ms, DueAction.ASK_CHECKPOINT)] if asks else []
        if self._warns_of(order) and not self._is_warned:
            actions.append((now_ms, DueAction.WARN))
        self._ahead = [
            *actions,
            (now_ms + self._pause(order, asks=asks), DueAction.END),
            (last, DueAction.KILL),
        ]

    def break_off(self, now_ms: int, grace_ms: int) -> None:
        """One task failed: the others end too, and the failure stays the reason."""
        if self._is_ending:
            return
        self._is_ending = True
        self._ahead = [(now_ms, DueAction.END), (now_ms + grace_ms, DueAction.KILL)]

    def suspend(self, now_ms: int) -> None:
        """The processes are stopped in place, and the time limit waits."""
        if self._suspended_since_ms is None:
            self._suspended_since_ms = now_ms

    def resume(self, now_ms: int) -> None:
        if self._suspended_since_ms is None:
            return
        suspended = now_ms - self._suspended_since_ms
        self._suspended_since_ms = None
        self._suspended_ms += suspended
        self._ahead = [(at + suspended, action) for at, action in self._ahead]
        if self._ends_ms is not None:
            self._ends_ms += suspended

    def checkpointed(self, now_ms: int) -> None:
        """The checkpoint that was asked for is there: no need to wait any longer."""
        if not self._awaits_checkpoint:
            return
        self._awaits_checkpoint = False
        self._ahead = [
            (now_ms if action is DueAction.END else at, action) for at, action in self._ahead
        ]

    def due(self, now_ms: int) -> list[DueAction]:
        """What is due by now, each once; nothing while the attempt is suspended."""
        if self.is_suspended:
            return []
        actions = [action for at, action in self._ahead if at <= now_ms]
        self._ahead = [(at, action) for at, action in self._ahead if at > now_ms]
        if DueAction.END in actions:
            self._awaits_checkpoint = False
            self._time_is_up()
        self._is_warned = self._is_warned or DueAction.WARN in actions
        return actions

    def next_ms(self) -> int | None:
        """When something is due next."""
        if self.is_suspended:
            return None
        return min((at for at, _ in self._ahead), default=None)

    def _to_the_limit(self, ends_ms: int) -> list[tuple[int, DueAction]]:
        lead = self.rules.warn_lead_ms
        warning = [] if lead is None or self._is_warned else [(ends_ms - lead, DueAction.WARN)]
        grace = self.rules.grace_ms
        return [*warning, (ends_ms, DueAction.END), (ends_ms + grace, DueAction.KILL)]

    def _warns_of(self, order: StopOrder) -> bool:
        """A warning says that the job should see to its return.

        Many clients answer it with a requeue, which would be wrong after a cancellation.
        """
        return self.rules.warn_lead_ms is not None and order.why["type"] == "preempted"

    def _pause(self, order: StopOrder, *, asks: bool) -> int:
        """How long after the order SIGTERM comes."""
        if asks:
            return order.grace_ms - min(order.grace_ms // 4, 5_000)
        if self._warns_of(order):
            return min(self.rules.warn_lead_ms or 0, order.grace_ms // 2)
        # Often the job asks for it itself: whichever process did so shall hear the answer.
        return min(1_000, order.grace_ms // 2) if order.why["type"] == "requeued" else 0

    def _time_is_up(self) -> None:
        if self._is_ending or self._ends_ms is None:
            return
        self._is_ending = True
        limit_ms = self._ends_ms - self.began_ms - self._suspended_ms
        self.why = {"type": "timed_out", "limit": max(0, limit_ms)}
