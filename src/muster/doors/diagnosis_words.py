"""What was found of a job, in the words that mails and events of pods share (pure)."""

from collections.abc import Iterator

from muster.controller.queries.diagnosis import Diagnosed
from muster.model.finding import SENTENCES, Cause, Confidence
from muster.telemetry.diagnosis.fixes import Fix

_MICROS = 1_000_000
_MS_PER_HOUR = 3_600_000


def in_short(found: Diagnosed) -> str:
    """One sentence and the first thing to change; empty where there is nothing to say yet."""
    report = found.report
    if report.headline is None:
        return ""
    text = _said(report.headline, report.confidence)
    return f"{text} {_fix(found.fixes[0])}" if found.fixes else text


def at_length(found: Diagnosed) -> str:
    """The report as the text of a mail; empty where there is nothing to say."""
    report = found.report
    if report.headline is None and found.ended is None:
        return ""
    return "\n".join((*_lines(found), "", f"More: muster diagnose {report.job} --timeline", ""))


def _lines(found: Diagnosed) -> Iterator[str]:
    report = found.report
    if found.ended is not None:
        yield f"It ended badly: {found.ended.text}."
        if found.ended.line:
            yield f"  {found.ended.line}"
    if report.headline is not None:
        yield _said(report.headline, report.confidence)
        cost = f", {report.cost_micros / _MICROS:,.2f}" if report.cost_micros else ""
        wasted = f", of which wasted {report.wasted_micros / _MICROS:,.2f}" if cost else ""
        yield f"Held: {report.gpu_ms / _MS_PER_HOUR:,.2f} GPU hours{cost}{wasted}"
        for each in report.causes:
            hours = each.gpu_ms / _MS_PER_HOUR
            yield f"  {each.cause:<14} {hours:8,.2f} GPU hours  {SENTENCES[each.cause]}"
    if found.request:
        yield ""
        yield f"Less would have done: {' '.join(each.flag for each in found.request)}"
    if found.fixes:
        yield ""
        yield "What would help:"
        yield from (f"  {number}. {_fix(fix)}" for number, fix in enumerate(found.fixes, 1))


def _said(cause: Cause, confidence: Confidence) -> str:
    text = SENTENCES[cause]
    return f"{text[0].upper()}{text[1:]} ({confidence})."


def _fix(fix: Fix) -> str:
    return f"{fix.text}: {fix.flag}" if fix.flag else f"{fix.text}."
