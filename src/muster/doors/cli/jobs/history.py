"""`muster history`: jobs that are over, and what they used."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import click

from muster.api.jobs import JobDocument
from muster.doors.cli.jobs.endings import FINAL
from muster.doors.cli.jobs.named import Chosen, label_of
from muster.doors.cli.options import example, filter_options, list_options
from muster.doors.cli.screen.printing import note, say, show_list
from muster.doors.cli.screen.table import Column
from muster.doors.cli.screen.text import counted, number
from muster.doors.cli.screen.times import Moment, back, hours
from muster.doors.cli.surroundings import Call
from muster.model.value import replace

LARGEST_PAGE = 1_000


@click.command(
    epilog=example(
        "muster history --since 7d",
        "muster history --queue acme --since 2026-11-01 --until 2026-12-01",
        "muster history --user alice --state failed -o json",
    )
)
@filter_options
@click.option("--since", help="Ended at this time or later: 7d (ago), yesterday, 2026-11-01.")
@click.option("--until", help="Ended before this time.")
@click.option("--limit", type=click.IntRange(min=1), default=1_000, help="The most to list.")
@list_options
@click.pass_obj
def history(call: Call, *, limit: int, **chosen: Any) -> None:
    """List jobs that are over, those that ended last first, and what they used."""
    now = call.around.now()
    chosen["states"] = _final(chosen["states"])
    since, until = (earlier(chosen.pop(name), now) for name in ("since", "until"))
    wanted = replace(
        Chosen(**chosen).filter(limit=min(limit + 1, LARGEST_PAGE)),
        ended=True,
        ended_from=since,
        ended_to=until,
    )
    found = list(islice(call.client.all_jobs(wanted), limit + 1))
    jobs = found[:limit]
    columns = _columns(call.moment)
    show_list(call, jobs, columns, name=lambda job: job.id, none="No job has ended there.")
    if jobs and call.look.is_table and call.look.headers:
        say(_total(jobs))
    if len(found) > limit:
        note(f"There are more; list them with --limit {10 * limit}, or choose with --since.")


def _final(states: tuple[str, ...]) -> tuple[str, ...]:
    """Only states of jobs that are over: asked for those, the server leaves live jobs aside."""
    if live := set(states) - FINAL:
        text = f"No job is {' or '.join(sorted(live))} when it is over; see `muster ps`."
        raise click.UsageError(text)
    return states or tuple(sorted(FINAL))


def earlier(text: str | None, now: datetime) -> str | None:
    """RFC 3339 in UTC, from what people write."""
    if text is None:
        return None
    # Only here: it brings the model along, and few ask for it.
    from muster.doors.units import BadTextError, duration  # noqa: PLC0415

    there = back(now, text)
    if there is None:
        try:
            there = now - timedelta(milliseconds=duration(text.removesuffix(" ago")))
        except BadTextError:
            there = _date(text)
    local = there if there.tzinfo else there.replace(tzinfo=now.tzinfo)
    return local.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _date(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as wrong:
        forms = "`7d` for seven days ago, `yesterday`, `2026-11-01` or `2026-11-01T08:00`"
        raise click.UsageError(f"{text!r} is no time; write {forms}.") from wrong


def _columns(moment: Moment) -> list[Column[JobDocument]]:
    return [
        Column("ID", label_of, "right"),
        Column("NAME", lambda job: job.name, "flexible"),
        Column("USER", lambda job: job.user, "flexible"),
        Column("QUEUE", lambda job: job.queue, "flexible spare"),
        Column("STATE", lambda job: job.state, "state"),
        Column("EXIT", _exit, "right spare"),
        Column(moment.titled("SUBMITTED"), lambda job: moment.near(job.submitted_at), "wide"),
        Column(moment.titled("STARTED"), lambda job: moment.near(job.started_at), "wide"),
        Column(moment.titled("ENDED"), lambda job: moment.near(job.ended_at)),
        Column("LASTED", lambda job: moment.lasted(job.started_at, job.ended_at), "right"),
        Column("GPUS", lambda job: number(job.gpus), "right spare"),
        Column("GPU-HOURS", lambda job: hours(job.gpu_seconds), "right spare"),
        Column("LOST", lambda job: hours(job.lost_gpu_seconds), "right spare"),
        Column("ATTEMPTS", lambda job: str(job.attempt), "wide right"),
        Column("NODES", _nodes, "wide"),
        Column("REASON", lambda job: job.reason.text if job.reason else "", "flexible"),
    ]


def _nodes(job: JobDocument) -> str:
    names = ",".join(job.nodes)
    return f"{names} (pretend)" if names and job.pretend else names


def _exit(job: JobDocument) -> str:
    if job.signal:
        return f"sig {job.signal}"
    return "-" if job.exit_code is None else str(job.exit_code)


def _total(jobs: Sequence[JobDocument]) -> str:
    used = sum(job.gpu_seconds for job in jobs)
    lost = sum(job.lost_gpu_seconds for job in jobs)
    return f"{counted(len(jobs), 'job')}, {hours(used)} GPU-hours, {hours(lost)} of them lost"
