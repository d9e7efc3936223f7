"""How alerts stand, as doors show them."""

from collections.abc import Mapping

from muster.model.value import Instant, Value
from muster.telemetry.alerting.judging import Alert, AlertState, Judgement
from muster.telemetry.alerting.muting import Mute

MOST_SHOWN = 10_000
"""Alerts that doors show; more than these nobody reads, and every answer would carry them."""


class Standing(Value):
    """What the last evaluation found. at: None before the first, and where another process leads.

    problems: rules that cannot be evaluated, and receivers that cannot be reached.
    """

    at: Instant | None = None
    alerts: tuple[Alert, ...] = ()
    mutes: Mapping[Alert, Mute] = {}
    problems: tuple[str, ...] = ()


def standing_of(
    found: Judgement, mutes: Mapping[Alert, Mute], problems: tuple[str, ...]
) -> Standing:
    """What was found; of too many alerts those that fire before others."""
    alerts = found.alerts
    if len(alerts) > MOST_SHOWN:
        alerts = tuple(sorted(alerts, key=lambda each: _TURN[each.state])[:MOST_SHOWN])
        mutes = {each: mutes[each] for each in alerts if each in mutes}
        more = len(found.alerts) - MOST_SHOWN
        text = f"{more} alerts more than the {MOST_SHOWN} that are shown; narrow down the rules"
        problems = (*problems, text)
    return Standing(at=found.at, alerts=alerts, mutes=mutes, problems=problems)


_TURN = {AlertState.FIRING: 0, AlertState.PENDING: 1, AlertState.RESOLVED: 2}


class AlertBoard:
    """Written by the thread that judges, read by all others: one value takes another's place."""

    def __init__(self) -> None:
        self.standing = Standing()
