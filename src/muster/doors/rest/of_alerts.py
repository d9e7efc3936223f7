"""Routes about alerts and silences."""

import math
import re

from muster.api.alerts import (
    AlertDocument,
    AlertPage,
    SilenceAsked,
    SilenceDocument,
    SilencePage,
)
from muster.controller.alerting.board import Standing
from muster.controller.alerting.loop import shipped_rules
from muster.controller.alerting.use_cases import SilenceRequest
from muster.doors.request.bad import BadRequestError, read
from muster.doors.rest.operation import Asked, Content, Operation, Parameter, done
from muster.doors.rest.show_jobs import stamp, stamp_or_none
from muster.doors.units import duration
from muster.model.alerting import LabelTest, Silence
from muster.model.site import Role
from muster.model.value import DAY, QueuePath
from muster.telemetry.alerting.judging import Alert
from muster.telemetry.alerting.muting import pattern_fault

YAML = "application/yaml"
LONGEST_SILENCE = 90 * DAY
MOST_TESTS = 20

_TEST = re.compile(r"([a-zA-Z_][a-zA-Z0-9_]*)(=~|!~|!=|=)(.*)", re.DOTALL)


async def _alerts(asked: Asked) -> AlertPage:
    standing = asked.queries.alerts.standing(asked.caller)
    wanted = asked.text("state")
    documents = tuple(
        _document(alert, standing)
        for alert in standing.alerts
        if wanted is None or alert.state.value == wanted
    )
    return AlertPage(
        alerts=documents, judged_at=stamp_or_none(standing.at), problems=standing.problems
    )


async def _rules(asked: Asked) -> Content:
    return Content(body=asked.queries.alerts.rules().encode(), media=YAML)


async def _shipped(_: Asked) -> Content:
    return Content(body=shipped_rules().encode(), media=YAML)


async def _silences(asked: Asked) -> SilencePage:
    return SilencePage(
        silences=tuple(map(_silence_document, asked.queries.alerts.silences(asked.caller)))
    )


async def _make_silence(asked: Asked) -> SilenceDocument:
    document: SilenceAsked = asked.document
    lasts = read("lasts", duration, document.lasts)
    if not 0 < lasts <= LONGEST_SILENCE:
        raise BadRequestError("lasts", "a silence lasts for more than nothing and 90d at most")
    if not 0 < len(document.tests) <= MOST_TESTS:
        raise BadRequestError("tests", "name at least one label, such as `alertname=GpuBroken`")
    request = SilenceRequest(
        tests=tuple(map(label_test, document.tests)),
        lasts=lasts,
        comment=comment_of(document.comment),
        queue=QueuePath(document.queue) if document.queue else None,
    )
    return _silence_document(await done(asked.service.make_silence(asked.caller, request)))


async def _end_silence(asked: Asked) -> SilenceDocument:
    ended = await done(asked.service.end_silence(asked.caller, asked.path["id"]))
    return _silence_document(ended)


def comment_of(text: str) -> str:
    """Why something is silenced; it is shown on the screens of others."""
    if not text.strip() or len(text) > 1_000:
        raise BadRequestError("comment", "say why, in 1000 characters at most")
    _demand_printable("comment", text)
    return text


def label_test(text: str) -> LabelTest:
    """One test, such as `gpu=0`."""
    _demand_printable("tests", text)
    found = _TEST.fullmatch(text)
    if found is None or len(text) > 1_000:
        raise BadRequestError("tests", f"`{text[:80]}` is no test such as `gpu=0` or `queue=~a.*`")
    name, operator, value = found.groups()
    if operator in {"=~", "!~"} and (why := pattern_fault(value)):
        raise BadRequestError("tests", f"`{text[:80]}`: {why}")
    return LabelTest(name=name, operator=operator, value=value)


def _demand_printable(where: str, text: str) -> None:
    if not text.isprintable():
        raise BadRequestError(where, "it has control characters; leave them out")


def _document(alert: Alert, standing: Standing) -> AlertDocument:
    mute = standing.mutes.get(alert)
    return AlertDocument(
        name=alert.name,
        state=alert.state.value,
        severity=alert.label("severity"),
        since=stamp(alert.since),
        labels={name: value for name, value in alert.labels if name != "alertname"},
        annotations=dict(alert.annotations),
        value=alert.value if math.isfinite(alert.value) else None,
        muted=None if mute is None else mute.kind.value,
        muted_by=None if mute is None else mute.by,
    )


def _silence_document(silence: Silence) -> SilenceDocument:
    return SilenceDocument(
        id=silence.id,
        tests=tuple(f"{each.name}{each.operator}{each.value}" for each in silence.tests),
        begins_at=stamp(silence.begins_at),
        ends_at=stamp(silence.ends_at),
        by=silence.by,
        comment=silence.comment,
        queue=silence.queue,
    )


OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/alerts",
        summary="List alerts: those that wait for their time, that fire, and that are just over",
        answer=_alerts,
        gives=AlertPage,
        parameters=(Parameter(name="state", text="`pending`, `firing` or `resolved`"),),
    ),
    Operation(
        method="GET",
        path="/v1/alert-rules",
        summary="Read the administrators' own rules of alerts",
        needs=Role.ADMIN,
        answer=_rules,
        media=YAML,
    ),
    Operation(
        method="GET",
        path="/v1/alert-rules/shipped",
        summary="Read the rules of alerts that come with Muster, for a Prometheus",
        answer=_shipped,
        media=YAML,
    ),
    Operation(
        method="GET",
        path="/v1/silences",
        summary="List silences that have not ended",
        answer=_silences,
        gives=SilencePage,
    ),
    Operation(
        method="POST",
        path="/v1/silences",
        summary="Have nobody told of some alerts for a while",
        needs=Role.QUEUE_ADMIN,
        answer=_make_silence,
        takes=SilenceAsked,
        gives=SilenceDocument,
        status=201,
    ),
    Operation(
        method="DELETE",
        path="/v1/silences/{id}",
        summary="End a silence",
        needs=Role.QUEUE_ADMIN,
        answer=_end_silence,
        gives=SilenceDocument,
    ),
)
