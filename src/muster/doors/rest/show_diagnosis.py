"""Why jobs are slow, and what became of GPUs, as documents (pure)."""

from collections.abc import Callable, Iterable, Sequence

from muster.api.diagnosis import (
    AmountDocument,
    CauseDocument,
    ChangeDocument,
    DeviceUseDocument,
    EfficiencyDocument,
    EndingDocument,
    FindingDocument,
    FixDocument,
    FleetDocument,
    HappenedDocument,
    InterruptionsDocument,
    NodeUseDocument,
    TimelineDocument,
    UseDocument,
)
from muster.controller.queries.advising import Advice
from muster.controller.queries.diagnosis import Diagnosed, FleetRow, Timeline
from muster.doors.rest.words import happened, kind
from muster.doors.units import rfc3339
from muster.model.efficiency import JobReport
from muster.model.finding import SENTENCES, Finding
from muster.model.words import Labels
from muster.telemetry.diagnosis import money
from muster.telemetry.diagnosis.ending import Ended
from muster.telemetry.diagnosis.interruptions import Interruptions
from muster.telemetry.diagnosis.money import Time

BY = ("pool", "queue", "user", "use", "cause")
"""By what the fleet's table can be asked for; the use is always among them."""


def efficiency_document(found: Diagnosed) -> EfficiencyDocument:
    """One attempt, with what to change."""
    report = found.report
    return EfficiencyDocument(
        job=report.job,
        attempt=report.attempt,
        user=report.user,
        queue=report.queue,
        pool=report.pool,
        since=rfc3339(report.since),
        until=rfc3339(report.until),
        is_over=report.is_over,
        cause=report.headline.value if report.headline else None,
        text=_text(report),
        confidence=report.confidence,
        gpu_seconds=report.gpu_ms // 1_000,
        cost_micros=report.cost_micros,
        wasted_micros=report.wasted_micros,
        means_milli=report.means,
        causes=_causes(report),
        findings=tuple(map(finding_document, report.findings)),
        devices=_devices(report),
        nodes=_nodes(report),
        fixes=tuple(
            FixDocument(text=fix.text, flag=fix.flag, cause=fix.cause.value if fix.cause else None)
            for fix in found.fixes
        ),
        ending=None if found.ended is None else _ending(found.ended),
        request=tuple(
            AmountDocument(what=each.what, asked=each.asked, used=each.used, flag=each.flag)
            for each in found.request
        ),
        interruptions=_interruptions(found.interrupted),
    )


def timeline_document(found: Timeline, labels: Labels) -> TimelineDocument:
    """One attempt on one axis."""
    curves = found.curves
    return TimelineDocument(
        job=found.job,
        attempt=found.attempt,
        start=rfc3339(curves.start) if curves.causes else None,
        step_seconds=curves.step // 1_000,
        causes=tuple(None if each is None else each.value for each in curves.causes),
        values=curves.values,
        events=tuple(
            HappenedDocument(
                at=rfc3339(each.event.at),
                kind=kind(each.event),
                text=happened(each.event, labels),
            )
            for each in found.events
        ),
        log=found.log,
        ending=None if found.ended is None else _ending(found.ended),
    )


def _text(report: JobReport) -> str:
    if report.headline is not None:
        return SENTENCES[report.headline]
    return "it held no GPU" if report.is_over and not report.gpu_ms else "it has only begun"


def _ending(ended: Ended) -> EndingDocument:
    return EndingDocument(what=ended.what, text=ended.text, line=ended.line)


def _interruptions(found: Interruptions | None) -> InterruptionsDocument | None:
    if found is None:
        return None
    return InterruptionsDocument(
        times=found.times,
        by=found.by,
        lost_gpu_seconds=found.lost_gpu_ms // 1_000,
        recovery_seconds=_seconds(found.recovery_ms),
        saved_every_seconds=_seconds(found.saved_every_ms),
        best_every_seconds=_seconds(found.best_every_ms),
    )


def _seconds(ms: int | None) -> int | None:
    return None if ms is None else ms // 1_000


def finding_document(finding: Finding) -> FindingDocument:
    """One cause of one attempt."""
    return FindingDocument(
        job=finding.job,
        attempt=finding.attempt,
        user=finding.user,
        queue=finding.queue,
        cause=finding.cause.value,
        text=SENTENCES[finding.cause],
        confidence=finding.confidence,
        since=rfc3339(finding.since),
        until=rfc3339(finding.until),
        gpu_seconds=finding.held_ms // 1_000,
        wasted_micros=finding.wasted_micros,
        micros_per_hour=finding.micros_per_hour,
        wasted_gpu_milli=finding.wasted_gpu_milli,
        devices=tuple(map(str, finding.devices)),
        evidence_milli={each.signal: each.milli for each in finding.evidence},
        missing=finding.missing,
    )


def fleet_document(
    rows: Sequence[FleetRow],
    by: Sequence[str],
    jobs: Iterable[JobReport],
    advice: Iterable[Advice] = (),
) -> FleetDocument:
    """The table, summed by these columns; seconds are rounded so that they make the whole."""
    grouped: dict[tuple[str | None, ...], tuple[Time, int]] = {}
    for each in rows:
        key = tuple(COLUMNS[name](each) if name in by else None for name in BY)
        time, micros = grouped.get(key, (money.NO_TIME, 0))
        grouped[key] = (time + each.time, micros + each.cost_micros)
    total = sum(time.milli_ms for time, _ in grouped.values()) // 1_000_000
    seconds = money.shared_out({key: time.milli_ms for key, (time, _) in grouped.items()}, total)
    return FleetDocument(
        rows=tuple(
            UseDocument(
                **dict(zip(BY, key, strict=True)),
                gpu_seconds=seconds[key],
                cost_micros=micros,
            )
            for key, (_, micros) in grouped.items()
        ),
        jobs=tuple(efficiency_document(Diagnosed(report=each)) for each in jobs),
        changes=tuple(map(_change, advice)),
    )


def _change(each: Advice) -> ChangeDocument:
    dear, more = each.dear, each.gained_milli_ms
    return ChangeDocument(
        pool=dear.pool,
        use=dear.use,
        what=dear.what,
        text=each.text,
        wasted_gpu_seconds=dear.time.wasted // 1_000_000_000,
        wasted_micros=dear.micros,
        jobs=each.jobs,
        users=dear.users,
        queues=dear.queues,
        rehearsed=each.rehearsed,
        gained_gpu_seconds=None if more is None else more // 1_000_000,
        gained_micros=each.gained_micros,
        sooner_seconds=_seconds(each.sooner_ms),
    )


COLUMNS: dict[str, Callable[[FleetRow], str | None]] = {
    "pool": lambda each: each.row.pool,
    "queue": lambda each: each.row.queue,
    "user": lambda each: each.row.user,
    "use": lambda each: str(each.row.use),
    "cause": lambda each: each.row.cause.value if each.row.cause else "",
}


def _causes(report: JobReport) -> tuple[CauseDocument, ...]:
    seconds = money.shared_out(
        {each.cause: each.gpu_ms for each in report.causes}, report.gpu_ms // 1_000
    )
    return tuple(
        CauseDocument(
            cause=each.cause.value,
            text=SENTENCES[each.cause],
            gpu_seconds=seconds[each.cause],
            wasted_micros=each.wasted_micros,
        )
        for each in report.causes
    )


def _devices(report: JobReport) -> tuple[DeviceUseDocument, ...]:
    return tuple(
        DeviceUseDocument(
            id=each.device,
            node=each.node,
            gpu_milli=each.gpu_milli,
            index=each.index,
            means_milli=each.means,
            memory_bytes=each.memory_bytes,
            memory_peak_bytes=each.memory_peak_bytes,
            energy_mj=each.energy_mj,
        )
        for each in report.devices
    )


def _nodes(report: JobReport) -> tuple[NodeUseDocument, ...]:
    return tuple(
        NodeUseDocument(
            node=each.node,
            cpu_granted_milli=each.cpu_granted_milli,
            cpu_used_ms=each.cpu_used_ms,
            memory_peak_bytes=each.memory_peak_bytes,
            memory_granted_bytes=each.memory_granted_bytes,
        )
        for each in report.nodes
    )
