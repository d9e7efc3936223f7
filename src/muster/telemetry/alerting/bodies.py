"""What receivers are sent: the same message in the words of each.

Texts come from users too: they are escaped, and cut where a receiver would refuse them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from muster.model.alerting import Severity
from muster.model.value import Duration, Instant, Value
from muster.telemetry.alerting.judging import Alert, AlertState
from muster.telemetry.alerting.reasons import WHY
from muster.telemetry.alerting.routing import Notification

LONGEST_TEXT: Final = 2_000
MOST_SHOWN: Final = 20
"""Alerts in one message for people; how many there are is told."""

MOST_TOLD: Final = 1_000
"""Alerts in one message for programs."""

NO_INSTANT: Final = "0001-01-01T00:00:00Z"

Json = dict[str, Any]


def webhook_body(told: Notification) -> Json:
    """Alertmanager's, version 4, so that receivers made for it take it."""
    group, shown = _shared_group(told), told.alerts[:MOST_TOLD]
    return {
        "version": "4",
        "groupKey": str(told.key),
        "truncatedAlerts": len(told.alerts) - len(shown) + told.more,
        "status": "resolved" if told.is_over else "firing",
        "receiver": told.key.address.receiver,
        "groupLabels": group,
        "commonLabels": _common(dict(alert.labels) for alert in told.alerts),
        "commonAnnotations": _common(dict(alert.annotations) for alert in told.alerts),
        "externalURL": "",
        "alerts": [_webhook_alert(alert) for alert in shown],
    }


def alertmanager_bodies(
    alerts: Sequence[Alert], now: Instant, resend: Duration
) -> tuple[list[Json], ...]:
    """For `/api/v2/alerts`, all of them. What is not sent again for four times as long is over."""
    batches = range(0, len(alerts), MOST_TOLD)
    return tuple(_batch(alerts[first : first + MOST_TOLD], now, resend) for first in batches)


def _batch(alerts: Iterable[Alert], now: Instant, resend: Duration) -> list[Json]:
    return [
        {
            "labels": dict(alert.labels),
            "annotations": {name: cut(text) for name, text in alert.annotations},
            "startsAt": rfc3339(alert.fired_at or alert.since),
            "endsAt": rfc3339(
                alert.over_at if alert.over_at is not None else Instant(now + 4 * resend)
            ),
            "generatorURL": "",
        }
        for alert in alerts
    ]


def slack_body(told: Notification) -> Json:
    lines = [f"*{slack_text(headline(told))}*"]
    for alert in told.alerts[:MOST_SHOWN]:
        lines.append(f"{_mark(alert)} {slack_text(alert.annotation('description'))}")
        said = (alert.annotation(name) for name in (WHY, "action"))
        lines += [f"> {slack_text(text)}" for text in said if text]
    lines += _more(told)
    return {"text": cut("\n".join(lines))}


def teams_body(told: Notification) -> Json:
    """An adaptive card, as the workflows of Teams take it."""
    texts = [
        " ".join(
            [
                _mark(alert),
                *(teams_text(alert.annotation(name)) for name in ("description", WHY, "action")),
            ]
        )
        for alert in told.alerts[:MOST_SHOWN]
    ]
    blocks: list[Json] = [
        {
            "type": "TextBlock",
            "text": cut(teams_text(headline(told))),
            "weight": "Bolder",
            "size": "Medium",
            "color": _colour(told),
            "wrap": True,
        }
    ]
    blocks += [
        {"type": "TextBlock", "text": cut(text), "wrap": True} for text in (*texts, *_more(told))
    ]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": blocks,
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attachment]}


def _colour(told: Notification) -> str:
    if told.happened and told.alerts[0].label("severity") == Severity.INFO:
        return "Default"
    return "Good" if told.is_over else "Attention"


class MailText(Value):
    """A mail about alerts."""

    subject: str
    body: str


def mail_text(told: Notification) -> MailText:
    """Subject and body; the subject has one line, whatever users write."""
    lines: list[str] = []
    for alert in told.alerts[:MOST_SHOWN]:
        lines += [f"{_mark(alert)} {alert.annotation('summary')}"]
        for name in ("description", WHY, "action", "muster", "runbook_url"):
            if text := alert.annotation(name):
                lines.append(f"    {text}" if name != "muster" else f"    $ {text}")
        lines.append(f"    {'at' if told.happened else 'since'} {rfc3339(alert.since)}")
        lines.append("")
    body = "\n".join([*lines, *_more(told)])
    subject = "".join(letter if letter.isprintable() else " " for letter in headline(told))
    return MailText(subject=subject[:200], body=body[:20_000])


def headline(told: Notification) -> str:
    """`[FIRING:2] GpuBroken acme: GPU 0 of n1 is broken`."""
    if told.happened:
        return _happened(told)
    firing = sum(alert.state is AlertState.FIRING for alert in told.alerts)
    state = f"FIRING:{firing}" if firing else "RESOLVED"
    queue = f" {told.key.queue}" if told.key.queue else ""
    return f"[{state}] {told.key.alert}{queue}: {told.alerts[0].annotation('summary')}"


def _happened(told: Notification) -> str:
    """`JobFailed acme: job 17 (train) of ada failed, and 2 more`."""
    count = len(told.alerts) + told.more
    queue = f" {told.key.queue}" if told.key.queue else ""
    more = f", and {count - 1} more" if count > 1 else ""
    return f"{told.key.alert}{queue}: {told.alerts[0].annotation('summary')}{more}"


def fingerprint(alert: Alert) -> str:
    """What Prometheus calls the alert: FNV-1a over its labels."""
    found = 0xCBF29CE484222325
    for name, value in alert.labels:
        for byte in name.encode() + b"\xff" + value.encode() + b"\xff":
            found = ((found ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{found:016x}"


def rfc3339(at: Instant) -> str:
    """`2026-12-01T08:00:00.250Z`, from the calendar's own arithmetic."""
    days, rest = divmod(at, 86_400_000)
    shifted = days + 719_468
    era, day_of_era = divmod(shifted, 146_097)
    years = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * years + years // 4 - years // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    year = years + era * 400 + (month <= 2)
    seconds, milliseconds = divmod(rest, 1_000)
    hours, seconds = divmod(seconds, 3_600)
    minutes, seconds = divmod(seconds, 60)
    date = f"{year:04d}-{month:02d}-{day:02d}"
    return f"{date}T{hours:02d}:{minutes:02d}:{seconds:02d}.{milliseconds:03d}Z"


def cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def slack_text(text: str) -> str:
    """Nothing in it is a link, a mention or a style of Slack's."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for sign in "*_~`":
        escaped = escaped.replace(sign, f"\u200b{sign}")
    return escaped


def teams_text(text: str) -> str:
    """Nothing in it is Markdown."""
    return "".join(f"\\{letter}" if letter in "\\*_[]()#`~<>" else letter for letter in text)


def _webhook_alert(alert: Alert) -> Json:
    is_over = alert.state is AlertState.RESOLVED
    return {
        "status": "resolved" if is_over else "firing",
        "labels": dict(alert.labels),
        "annotations": {name: cut(text) for name, text in alert.annotations},
        "startsAt": rfc3339(alert.fired_at or alert.since),
        "endsAt": rfc3339(alert.over_at) if alert.over_at is not None else NO_INSTANT,
        "generatorURL": "",
        "fingerprint": fingerprint(alert),
    }


def _shared_group(told: Notification) -> dict[str, str]:
    group = {"alertname": told.key.alert, "queue": told.key.queue}
    return {name: value for name, value in group.items() if value}


def _common(each: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """What is the same in all of them."""
    first, *others = each
    return {
        name: value
        for name, value in first.items()
        if all(other.get(name) == value for other in others)
    }


def _mark(alert: Alert) -> str:
    return "over:" if alert.state is AlertState.RESOLVED else f"{alert.label('severity')}:"


def _more(told: Notification) -> list[str]:
    left = len(told.alerts) - MOST_SHOWN + told.more
    look = "muster ps" if told.happened else "muster alerts"
    return [f"and {left} more; see {look}"] if left > 0 else []
