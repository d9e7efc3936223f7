"""`muster report`: what jobs did with GPUs, and what became of all the others."""

from collections.abc import Callable, Iterator

import click

from muster.api.diagnosis import (
    ChangeDocument,
    EfficiencyDocument,
    FleetDocument,
    UseDocument,
)
from muster.doors.cli.jobs.diagnose import diagnosed, gpu_hours, money, percent
from muster.doors.cli.jobs.history import earlier
from muster.doors.cli.jobs.named import one_job
from muster.doors.cli.options import document_options, example
from muster.doors.cli.screen.printing import show_one
from muster.doors.cli.screen.screen import BOLD
from muster.doors.cli.screen.table import Column, lines
from muster.doors.cli.screen.text import clean
from muster.doors.cli.screen.times import short_span
from muster.doors.cli.surroundings import Call


@click.command(
    epilog=example(
        "muster report",
        "muster report 17",
        "muster report --user ada --since 1d",
        "muster report --since 1d --rehearse",
    )
)
@click.argument("job", required=False)
@click.option("--queue", help="Of this queue and those below it.")
@click.option("--user", help="Of this user: what their jobs did with GPUs.")
@click.option("--since", help="Of jobs that were not over before then: 2h, 1d or an instant.")
@click.option("--by", help="Columns of the table: some of pool, queue, user, use, cause.")
@click.option(
    "--rehearse", is_flag=True, help="With one change for each of the dearest, and what it brings."
)
@document_options
@click.pass_obj
def report(call: Call, job: str | None, *, rehearse: bool, **asked: str | None) -> None:
    """Show what became of every second of every GPU, and which jobs wasted most.

    With JOB, the same of one job. What nobody held says why: nobody wanted it, or why those wait
    who did. The table begins when this Muster began to lead.
    """
    if job is not None:
        if rehearse or any(asked.values()):
            raise click.UsageError("Name a job, or say which jobs; not both.")
        found = call.client.efficiency(one_job(call.client, job))
        show_one(call, found, lambda: diagnosed(found, call), name=str(found.job))
        return
    fleet = call.client.report(
        by=asked["by"],
        queue=asked["queue"],
        user=asked["user"],
        since=earlier(asked["since"], call.moment.now),
        rehearse=rehearse or None,
    )
    of = _whose(asked["user"], asked["queue"])
    show_one(call, fleet, lambda: _lines(call, fleet, of), name="report")


def _whose(user: str | None, queue: str | None) -> str:
    """Whose jobs were asked for, as words; empty for everybody's."""
    return (f" of {clean(user)}" if user else "") + (f" in {clean(queue)}" if queue else "")


def _lines(call: Call, found: FleetDocument, of: str) -> Iterator[str]:
    if found.rows:
        total = sum(row.gpu_seconds for row in found.rows)
        columns = _columns(found, total)
        yield from lines(found.rows, columns, call.screen)
        cost = sum(row.cost_micros for row in found.rows)
        yield f"together {gpu_hours(total)} GPU hours" + (f", {money(cost)}" if cost else "")
        yield ""
    for change in found.changes:
        yield from _change(call, change)
    if not found.jobs:
        yield f"No job{of} has held a GPU for a whole minute yet."
        return
    yield call.screen.paint("Jobs that wasted most", BOLD)
    yield from lines(found.jobs, JOBS, call.screen)


def _change(call: Call, each: ChangeDocument) -> Iterator[str]:
    """A row, what to change about it, and what that would bring."""
    cost = f", {money(each.wasted_micros)}" if each.wasted_micros else ""
    head = f"{each.what} in {each.pool}: {gpu_hours(each.wasted_gpu_seconds)} GPU hours{cost}"
    yield call.screen.paint(head, BOLD)
    jobs = tuple(map(str, each.jobs))
    whose = (("job", jobs), ("user", each.users), ("queue", each.queues))
    named = [f"{what} {', '.join(names)}" for what, names in whose if names]
    if named:
        yield f"  most of it: {'; '.join(named)}"
    yield f"  change: {each.text}"
    if each.rehearsed:
        yield f"  rehearsed: {each.rehearsed}"
    if each.gained_gpu_seconds is not None:
        yield f"  within a day: {', '.join(_gains(each))}"
    yield ""


def _gains(each: ChangeDocument) -> Iterator[str]:
    yield f"{_signed(each.gained_gpu_seconds or 0, gpu_hours)} GPU hours"
    if each.gained_micros:
        yield _signed(each.gained_micros, money)
    if each.sooner_seconds:
        less = "less" if each.sooner_seconds > 0 else "more"
        yield f"{short_span(abs(each.sooner_seconds))} {less} of waiting in all"


def _signed(amount: int, shown: Callable[[int], str]) -> str:
    return f"{'-' if amount < 0 else '+'}{shown(abs(amount))}"


def _columns(found: FleetDocument, total: int) -> tuple[Column[UseDocument], ...]:
    """Those that were asked for, and what they sum."""
    return (
        *(column for column in NAMED if any(column.cell(row) for row in found.rows)),
        Column("GPU HOURS", lambda row: gpu_hours(row.gpu_seconds), "right"),
        Column("PART", lambda row: percent(1_000 * row.gpu_seconds // max(1, total)), "right"),
        Column("COST", lambda row: money(row.cost_micros), "right"),
    )


NAMED: tuple[Column[UseDocument], ...] = (
    Column("POOL", lambda row: row.pool or "", "flexible"),
    Column("QUEUE", lambda row: row.queue or "", "flexible"),
    Column("USER", lambda row: row.user or "", "flexible"),
    Column("USE", lambda row: row.use or ""),
    Column("CAUSE", lambda row: row.cause or ""),
)

JOBS: tuple[Column[EfficiencyDocument], ...] = (
    Column("JOB", lambda each: str(each.job), "right"),
    Column("USER", lambda each: each.user, "flexible"),
    Column("QUEUE", lambda each: each.queue, "flexible"),
    Column("GPU HOURS", lambda each: gpu_hours(each.gpu_seconds), "right"),
    Column("BUSY", lambda each: percent(each.means_milli.get("busy")), "right"),
    Column("WASTED", lambda each: money(each.wasted_micros), "right"),
    Column("CAUSE", lambda each: each.cause or "-"),
    Column("CONFIDENCE", lambda each: each.confidence if each.cause else "-", "spare"),
)
