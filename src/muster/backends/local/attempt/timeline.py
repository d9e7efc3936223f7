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
    """Somebody wants the attempt to end, for this reason, within this grace."""

    why: Why
    grace_ms: int
    checkpoint: bool = False


@dataclass(kw_only=True)
class Timeline:
    """The deeds ahead. `why` is set with the first signal that is sent to end the attempt."""

    manners: StopRules
    began_ms: int
    why: Why | None = None
    _ahead: list[tuple[int, DueAction]] = field(default_factory=list[tuple[int, DueAction]])
    _ends_ms: int | None = None
    _stands_since_ms: int | None = None
    _stood_ms: int = 0
    _is_ending: bool = False
    _is_warned: bool = False
    _awaits_checkpoint: bool = False

    @property
    def is_ending(self) -> bool:
        return self._is_ending

    @property
    def stands(self) -> bool:
        return self._stands_since_ms is not None

    @property
    def awaits_checkpoint(self) -> bool:
        return self._awaits_checkpoint

    def limit(self, ends_ms: int | None) -> None:
        """The attempt must end by then, or need not end at all."""
        self._ends_ms = ends_ms
        if self._is_ending:
            return
        self._ahead = [] if ends_ms is None else self._to_the_limit(ends_ms)

    def stop(self, told: StopOrder, now_ms: int) -> None:
        """End it; a second order can only make it end sooner."""
        last = now_ms + told.grace_ms
        if self._is_ending:
            self._ahead = [(min(at, last), deed) for at, deed in self._ahead]
            return
        self._is_ending = True
        self.why = told.why
        asks = told.checkpoint and self.manners.asks_checkpoint
        self._awaits_checkpoint = asks
        deeds = [(now_ms, DueAction.ASK_CHECKPOINT)] if asks else []
        if self._warns_of(told) and not self._is_warned:
            deeds.append((now_ms, DueAction.WARN))
        self._ahead = [
            *deeds,
            (now_ms + self._pause(told, asks=asks), DueAction.END),
            (last, DueAction.KILL),
        ]

    def break_off(self, now_ms: int, grace_ms: int) -> None:
        """One task failed: the others end too, and the failure stays the reason."""
        if self._is_ending:
            return
        self._is_ending = True
        self._ahead = [(now_ms, DueAction.END), (now_ms + grace_ms, DueAction.KILL)]

    def stand(self, now_ms: int) -> None:
        """The processes stand still, and so does the time limit."""
        if self._stands_since_ms is None:
            self._stands_since_ms = now_ms

    def go_on(self, now_ms: int) -> None:
        if self._stands_since_ms is None:
            return
        stood = now_ms - self._stands_since_ms
        self._stands_since_ms = None
        self._stood_ms += stood
        self._ahead = [(at + stood, deed) for at, deed in self._ahead]
        if self._ends_ms is not None:
            self._ends_ms += stood

    def checkpointed(self, now_ms: int) -> None:
        """The checkpoint that was asked for is there: no need to wait any longer."""
        if not self._awaits_checkpoint:
            return
        self._awaits_checkpoint = False
        self._ahead = [(now_ms if deed is DueAction.END else at, deed) for at, deed in self._ahead]

    def due(self, now_ms: int) -> list[DueAction]:
        """The deeds whose time has come, each told once; none while the attempt stands still."""
        if self.stands:
            return []
        deeds = [deed for at, deed in self._ahead if at <= now_ms]
        self._ahead = [(at, deed) for at, deed in self._ahead if at > now_ms]
        if DueAction.END in deeds:
            self._awaits_checkpoint = False
            self._time_is_up()
        self._is_warned = self._is_warned or DueAction.WARN in deeds
        return deeds

    def next_ms(self) -> int | None:
        """When something is due next."""
        if self.stands:
            return None
        return min((at for at, _ in self._ahead), default=None)

    def _to_the_limit(self, ends_ms: int) -> list[tuple[int, DueAction]]:
        lead = self.manners.warn_lead_ms
        warning = [] if lead is None or self._is_warned else [(ends_ms - lead, DueAction.WARN)]
        grace = self.manners.grace_ms
        return [*warning, (ends_ms, DueAction.END), (ends_ms + grace, DueAction.KILL)]

    def _warns_of(self, told: StopOrder) -> bool:
        """A warning says that the job should see to its return.

        Many clients answer it with a requeue, which nobody wants who has just cancelled.
        """
        return self.manners.warn_lead_ms is not None and told.why["type"] == "preempted"

    def _pause(self, told: StopOrder, *, asks: bool) -> int:
        """How long after the order SIGTERM comes."""
        if asks:
            return told.grace_ms - min(told.grace_ms // 4, 5_000)
        if self._warns_of(told):
            return min(self.manners.warn_lead_ms or 0, told.grace_ms // 2)
        # Often the job asks for it itself: whichever process did so shall hear the answer.
        return min(1_000, told.grace_ms // 2) if told.why["type"] == "requeued" else 0

    def _time_is_up(self) -> None:
        if self._is_ending or self._ends_ms is None:
            return
        self._is_ending = True
        limit_ms = self._ends_ms - self.began_ms - self._stood_ms
        self.why = {"type": "timed_out", "limit": max(0, limit_ms)}
