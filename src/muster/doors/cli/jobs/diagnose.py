"""`muster diagnose`: why a job is slow, what that costs, and what to change."""

from collections.abc import Iterator, Mapping

import click

from muster.api.diagnosis import (
    AmountDocument,
    CauseDocument,
    DeviceUseDocument,
    EfficiencyDocument,
    InterruptionsDocument,
)
from muster.doors.cli.jobs.named import labelled, one_job
from muster.doors.cli.jobs.timeline import STEPS, timeline_lines
from muster.doors.cli.options import document_options, example, job_argument
from muster.doors.cli.screen.printing import facts, show_one, wrapped
from muster.doors.cli.screen.screen import BOLD, Screen
from muster.doors.cli.screen.table import Column, lines
from muster.doors.cli.screen.text import memory
from muster.doors.cli.screen.times import Moment, clock_span
from muster.doors.cli.surroundings import Call

_MIB = 1_048_576
_GPU_MILLI = 1_000

SIGNALS: Mapping[str, str] = {
    "busy": "GPU busy",
    "sm": "SMs active",
    "tensor": "tensor cores",
    "dram": "memory bandwidth",
    "memory": "GPU memory",
    "power": "power of its limit",
    "link": "links",
    "cpu": "CPUs granted",
    "thread": "busiest thread",
    "io": "waiting for a disk",
}


@click.command(epilog=example("muster diagnose 17", "muster diagnose 17 --timeline"))
@job_argument
@click.option("--attempt", type=click.IntRange(min=1), help="This attempt; the last one if none.")
@click.option("--timeline", is_flag=True, help="What was measured, met and written, in order.")
@document_options
@click.pass_obj
def diagnose(call: Call, job: str, attempt: int | None, *, timeline: bool) -> None:
    """Say what a job does with its GPUs, why it is slow, what that costs and what to change.

    Every minute of every GPU has one cause; what each took is listed, the dearest first. Of a job
    that ended badly it says why.
    """
    number = one_job(call.client, job)
    if timeline:
        course = call.client.timeline(number, attempt, steps=STEPS)
        show_one(call, course, lambda: timeline_lines(course, call), name=str(number))
        return
    found = call.client.efficiency(number, attempt)
    show_one(call, found, lambda: diagnosed(found, call), name=str(found.job))


def diagnosed(found: EfficiencyDocument, call: Call) -> Iterator[str]:
    """The attempt as a page of text."""
    screen, moment = call.screen, call.moment
    label = labelled(call.client, (found.job,))[found.job]
    sure = f" ({found.confidence})" if found.cause else ""
    yield f"job {label}: {found.text}{sure}"
    if found.ending is not None:
        yield from wrapped(f"It ended badly: {found.ending.text}.", screen)
        if found.ending.line:
            yield f"  {found.ending.line}"
    yield from facts(screen, _head(found, moment))
    if found.causes:
        yield ""
        yield from lines(found.causes, CAUSES, screen)
    yield from _seen(found, screen)
    if found.devices:
        yield ""
        yield from lines(found.devices, DEVICES, screen)
    yield from _interrupted(found.interruptions)
    if found.request:
        yield ""
        yield screen.paint("Less would have done:", BOLD)
        yield from lines(found.request, REQUEST, screen)
    if found.fixes:
        yield ""
        yield screen.paint("What would help:", BOLD)
    for number, fix in enumerate(found.fixes, 1):
        yield from wrapped(f"  {number}. {fix.text}", screen, indent="     ")
        if fix.flag:
            yield f"     {fix.flag}"


def money(micros: int) -> str:
    """`12.34`, in the currency of the pools' prices."""
    return f"{micros / 1_000_000:,.2f}"


def gpu_hours(seconds: int) -> str:
    """`0.25`: hours of whole GPUs."""
    return f"{seconds / 3_600:,.2f}"


def percent(milli: int | None) -> str:
    """`93%`; `-` for what was not measured."""
    return "-" if milli is None else f"{round(milli / 10)}%"


def _interrupted(found: InterruptionsDocument | None) -> Iterator[str]:
    if found is None:
        return
    yield ""
    lost = gpu_hours(found.lost_gpu_seconds)
    yield f"Interrupted {found.times} times, which lost {lost} GPU hours of work."
    if found.recovery_seconds is not None:
        yield f"  It ran again after {clock_span(found.recovery_seconds)} on the mean."
    if found.saved_every_seconds is not None:
        best = found.best_every_seconds
        better = f"; {clock_span(best)} would lose least" if best else ""
        yield f"  It saved every {clock_span(found.saved_every_seconds)}{better}."


def _head(found: EfficiencyDocument, moment: Moment) -> Iterator[tuple[str, str]]:
    elapsed = clock_span(moment.since(found.since) - moment.since(found.until))
    # What it used is counted every quarter of a minute; how it ended is known at once.
    stands = "over" if found.is_over or found.ending is not None else "running"
    yield "Attempt", f"{found.attempt}, {stands} after {elapsed}"
    yield "Held", f"{gpu_hours(found.gpu_seconds)} GPU hours"
    if found.cost_micros:
        yield "Cost", f"{money(found.cost_micros)}, of which wasted {money(found.wasted_micros)}"
    for node in found.nodes:
        yield f"CPUs on {node.node}", _cpu(node.cpu_granted_milli, node.cpu_used_ms, found, moment)
        if node.memory_peak_bytes is not None:
            granted = node.memory_granted_bytes
            of = f" of {memory(granted / _MIB)}" if granted else ""
            yield f"Memory on {node.node}", f"{memory(node.memory_peak_bytes / _MIB)}{of} at most"


def _cpu(
    granted_milli: int | None, used_ms: int | None, found: EfficiencyDocument, moment: Moment
) -> str:
    elapsed_s = moment.since(found.since) - moment.since(found.until)
    if not granted_milli or used_ms is None or elapsed_s <= 0:
        return ""
    part = used_ms * 1_000 / (granted_milli * elapsed_s)
    return f"{granted_milli / 1_000:g} granted, {percent(round(part))} used"


def _seen(found: EfficiencyDocument, screen: Screen) -> Iterator[str]:
    """What was measured while the dearest cause held."""
    if not found.findings:
        return
    first = found.findings[0]
    seen = [
        f"{SIGNALS.get(name, name)} {percent(milli)}"
        for name, milli in first.evidence_milli.items()
    ]
    yield ""
    yield screen.paint(f"Measured while {first.cause}:", BOLD)
    for at in range(0, len(seen), 3):
        yield f"  {', '.join(seen[at : at + 3])}"
    if first.missing:
        yield f"  not measured: {', '.join(SIGNALS.get(name, name) for name in first.missing)}"


def _peak(use: DeviceUseDocument) -> str:
    return "-" if use.memory_peak_bytes is None else memory(use.memory_peak_bytes / _MIB)


def _kwh(energy_mj: int | None) -> str:
    return "-" if energy_mj is None else f"{energy_mj / 3.6e9:.2f}"


CAUSES: tuple[Column[CauseDocument], ...] = (
    Column("CAUSE", lambda each: each.cause),
    Column("GPU HOURS", lambda each: gpu_hours(each.gpu_seconds), "right"),
    Column("WASTED", lambda each: money(each.wasted_micros), "right"),
    Column("MEANING", lambda each: each.text, "flexible"),
)

DEVICES: tuple[Column[DeviceUseDocument], ...] = (
    Column("NODE", lambda each: each.node, "flexible"),
    Column("GPU", lambda each: each.id if each.index is None else str(each.index), "flexible"),
    Column("SHARE", lambda each: f"{each.gpu_milli / _GPU_MILLI:g}", "right"),
    Column("BUSY", lambda each: percent(each.means_milli.get("busy")), "right"),
    Column("SM", lambda each: percent(each.means_milli.get("sm")), "right"),
    Column("TENSOR", lambda each: percent(each.means_milli.get("tensor")), "right"),
    Column("DRAM", lambda each: percent(each.means_milli.get("dram")), "right"),
    Column("MEMORY PEAK", _peak, "right"),
    Column("KWH", lambda each: _kwh(each.energy_mj), "right"),
)

REQUEST: tuple[Column[AmountDocument], ...] = (
    Column("OF", lambda each: each.what),
    Column("ASKED", lambda each: each.asked, "right"),
    Column("USED", lambda each: each.used, "flexible"),
    Column("ENOUGH", lambda each: each.flag),
)
