"""When a job that does not use its GPUs is warned, and when something is done (pure)."""

from enum import StrEnum

from muster.model.idle import INTERACTIVE_FOR, IdleAction, IdleRule
from muster.model.value import Instant, Value


class Step(StrEnum):
    """What to do now."""

    WARN = "warn"
    ACT = "act"


class Idler(Value, gc=False):
    """What is known of one attempt. idle_ms: for how long it has left all its GPUs alone."""

    idle_ms: int
    since: Instant
    gpu_milli: int
    is_interactive: bool = False


class Told(Value, gc=False):
    """What was done about this stretch of idleness so far."""

    warned_at: Instant | None = None
    has_acted: bool = False


def step_of(rule: IdleRule, idler: Idler, told: Told, now: Instant) -> Step | None:
    """The warning comes first, and what it warns of no sooner than it says."""
    if rule.after is None or is_over(rule, idler) or _is_spared(rule, idler, now):
        return None
    if told.warned_at is None:
        return Step.WARN
    is_time = now - told.warned_at >= rule.warn_before and idler.idle_ms >= rule.after
    if is_time and not told.has_acted and rule.do is not IdleAction.WARN:
        return Step.ACT
    return None


def is_over(rule: IdleRule, idler: Idler) -> bool:
    """Has it begun to work again, so that the next stretch is warned of anew?"""
    return rule.after is None or idler.idle_ms < rule.after - rule.warn_before


def _is_spared(rule: IdleRule, idler: Idler, now: Instant) -> bool:
    return (
        rule.spares_interactive
        and idler.is_interactive
        and idler.gpu_milli <= 1_000
        and now - idler.since < INTERACTIVE_FOR
    )
