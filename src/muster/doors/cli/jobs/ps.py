"""`muster ps`: jobs that wait or run."""

from collections.abc import Callable
from datetime import datetime
from itertools import islice
from operator import attrgetter
from typing import Any

import click

from muster.api.jobs import JobDocument, JobLine
from muster.api.pages import JobFilter
from muster.doors.cli.jobs.named import Chosen, label_of
from muster.doors.cli.options import example, filter_options, list_options
from muster.doors.cli.screen.printing import note, show_list
from muster.doors.cli.screen.table import Column
from muster.doors.cli.screen.text import memory, number
from muster.doors.cli.screen.times import Moment, clock_span
from muster.doors.cli.surroundings import Call
from muster.model.value import replace

MOST_ENDED = 1_000


@click.command(
    epilog=example(
        "muster ps",
        "muster ps -a --sort -time --columns id,name,state,time",
        "muster ps --mine --state pending",
        "muster ps --queue acme/nlp -o json | jq '.[].id'",
    )
)
@click.option("-m", "--mine", is_flag=True, help="Only my own jobs.")
@click.option("-a", "--all", "ended", is_flag=True, help="Those that are over as well.")
@filter_options
@list_options
@click.pass_obj
def ps(call: Call, *, mine: bool, ended: bool, **chosen: Any) -> None:
    """List jobs that wait or run, in the order of their ids.

    TIME is how long a job runs or ran, or how long it has been waiting. `-a` lists the jobs that
    are over as well, `muster history` those alone, with what they used.
    """
    wanted = Chosen(**chosen)
    if mine:
        wanted = replace(wanted, users=(*wanted.users, call.client.me().user))
    if call.look.is_usual and not ended:
        lines = call.client.all_lines(wanted.filter())
        columns = line_columns(call.moment)
        show_list(call, lines, columns, name=lambda job: job.id, none="There are no such jobs.")
        return
    jobs = (
        _with_ended(call, wanted.filter()) if ended else list(call.client.all_jobs(wanted.filter()))
    )
    columns = job_columns(call.moment)
    show_list(call, jobs, columns, name=lambda job: job.id, none="There are no such jobs.")


def _with_ended(call: Call, wanted: JobFilter) -> list[JobDocument]:
    """Those that wait or run, and the last of those that are over, in the order of their ids."""
    found = list(islice(call.client.all_jobs(replace(wanted, ended=True)), MOST_ENDED + 1))
    if len(found) > MOST_ENDED:
        note(f"Only {MOST_ENDED} jobs are shown; choose others with `muster history --since`.")
    return sorted(found[:MOST_ENDED], key=lambda job: job.id)


def line_columns(moment: Moment) -> list[Column[JobLine]]:
    """Live jobs as they are listed when nobody asks for more."""
    return [
        Column("ID", label_of, "right"),
        Column("NAME", attrgetter("name"), "flexible"),
        Column("USER", attrgetter("user")),
        Column("QUEUE", attrgetter("queue"), "flexible"),
        Column("STATE", attrgetter("state"), "state"),
        Column("TIME", passed_since(moment), "right"),
        Column("GPUS", lambda job: number(job.gpus), "right"),
        Column("NODES OR REASON", attrgetter("where"), "flexible"),
    ]


def job_columns(moment: Moment) -> list[Column[JobDocument]]:
    """Live jobs, one on each line."""
    return [
        Column("ID", label_of, "right"),
        Column("NAME", attrgetter("name"), "flexible"),
        Column("USER", attrgetter("user")),
        Column("QUEUE", attrgetter("queue"), "flexible"),
        Column("CLASS", lambda job: job.job_class, "wide"),
        Column("STATE", attrgetter("state"), "state"),
        Column("TIME", elapsed(moment), "right"),
        Column(
            "LIMIT",
            lambda job: "-" if job.time_limit is None else clock_span(job.time_limit),
            "wide right",
        ),
        Column("TASKS", lambda job: str(job.task_count), "wide right"),
        Column("CPUS", lambda job: number(job.cpus), "wide right"),
        Column("MEMORY", lambda job: memory(job.memory_mib), "wide right"),
        Column("GPUS", lambda job: number(job.gpus), "right"),
        Column("PRIORITY", lambda job: str(job.priority), "wide right"),
        Column("ATTEMPT", lambda job: str(job.attempt), "wide right"),
        Column(moment.titled("SUBMITTED"), lambda job: moment.near(job.submitted_at), "wide"),
        Column(moment.titled("EXPECTED"), lambda job: _expected(job, moment), "wide"),
        Column("NODES OR REASON", where_or_why, "flexible"),
    ]


def _expected(job: JobDocument, moment: Moment) -> str:
    """`14:10 to 15:30` as far as it was forecast."""
    if job.start is not None:
        return moment.between(job.start.early, job.start.late)
    return moment.near(job.expected_start)


def where_or_why(job: JobDocument) -> str:
    """The nodes of a job that has some, else the reason why it has none."""
    if job.nodes:
        return f"{','.join(job.nodes)} (pretend)" if job.pretend else ",".join(job.nodes)
    return job.reason.text if job.reason is not None else ""


def elapsed(moment: Moment) -> Callable[[JobDocument], str]:
    """How long it runs, or waits."""
    span = _span(moment)

    def passed(job: JobDocument) -> str:
        if job.ended_at is not None:
            began = job.started_at or job.ended_at
            return clock_span(moment.since(began) - moment.since(job.ended_at))
        return span(job.started_at or job.submitted_at)

    return passed


def passed_since(moment: Moment) -> Callable[[JobLine], str]:
    """The same, of a line."""
    span = _span(moment)
    return lambda line: span(line.since)


def _span(moment: Moment) -> Callable[[str], str]:
    """From an instant to now; jobs that began in the same second share the work."""
    now = moment.now
    known: dict[str, str] = {}

    def span(began: str) -> str:
        key = began[:19]
        text = known.get(key)
        if text is None:
            passed = (now - datetime.fromisoformat(began)).total_seconds()
            text = known[key] = clock_span(passed)
        return text

    return span
