"""`muster ps`: jobs that wait or run."""

from collections.abc import Callable
from datetime import datetime
from operator import attrgetter
from typing import Any

import click

from muster.api.jobs import JobDocument, JobLine
from muster.doors.cli.jobs.named import Chosen
from muster.doors.cli.options import example, filter_options, list_options
from muster.doors.cli.screen.printing import show_list
from muster.doors.cli.screen.table import Column
from muster.doors.cli.screen.text import memory, number
from muster.doors.cli.screen.times import Moment, clock_span
from muster.doors.cli.surroundings import Call
from muster.model.value import replace


@click.command(
    epilog=example(
        "muster ps",
        "muster ps --mine --state pending",
        "muster ps --queue acme/nlp -o json | jq '.[].id'",
    )
)
@click.option("-m", "--mine", is_flag=True, help="Only my own jobs.")
@filter_options
@list_options
@click.pass_obj
def ps(call: Call, *, mine: bool, **chosen: Any) -> None:
    """List jobs that wait or run, in the order of their ids.

    TIME is how long a job runs, or how long it has been waiting. `muster history` lists the jobs
    that are over.
    """
    wanted = Chosen(**chosen)
    if mine:
        wanted = replace(wanted, users=(*wanted.users, call.client.me().user))
    if call.look.output == "table":
        lines = call.client.all_lines(wanted.filter())
        columns = line_columns(call.moment)
        show_list(call, lines, columns, name=lambda job: job.id, none="There are no such jobs.")
        return
    jobs = list(call.client.all_jobs(wanted.filter()))
    columns = job_columns(call.moment)
    show_list(call, jobs, columns, name=lambda job: job.id, none="There are no such jobs.")


def line_columns(moment: Moment) -> list[Column[JobLine]]:
    """Live jobs as they are listed when nobody asks for more."""
    return [
        Column("ID", job_id, "right"),
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
        Column("ID", job_id, "right"),
        Column("NAME", attrgetter("name"), "flexible"),
        Column("USER", attrgetter("user")),
        Column("QUEUE", attrgetter("queue"), "flexible"),
        Column("CLASS", lambda job: job.job_class, "wide"),
        Column("STATE", attrgetter("state"), "state"),
        Column("TIME", elapsed(moment), "right"),
        Column("LIMIT", _limit, "wide right"),
        Column("TASKS", lambda job: str(job.task_count), "wide right"),
        Column("CPUS", lambda job: number(job.cpus), "wide right"),
        Column("MEMORY", lambda job: memory(job.memory_mib), "wide right"),
        Column("GPUS", lambda job: number(job.gpus), "right"),
        Column("PRIORITY", lambda job: str(job.priority), "wide right"),
        Column("ATTEMPT", lambda job: str(job.attempt), "wide right"),
        Column("SUBMITTED", lambda job: moment.near(job.submitted_at), "wide"),
        Column("EXPECTED", lambda job: moment.near(job.expected_start), "wide"),
        Column("NODES OR REASON", where_or_why, "flexible"),
    ]


def job_id(job: JobDocument | JobLine) -> str:
    """`17`, or `12_3` for a member of an array."""
    return str(job.id) if job.array is None else f"{job.array}_{job.array_index}"


def where_or_why(job: JobDocument) -> str:
    """The nodes of a job that has some, else the reason why it has none."""
    if job.nodes:
        return f"{','.join(job.nodes)} (pretend)" if job.pretend else ",".join(job.nodes)
    return job.reason.text if job.reason is not None else ""


def elapsed(moment: Moment) -> Callable[[JobDocument], str]:
    """How long it runs, or waits."""
    span = _span(moment)
    return lambda job: span(job.started_at or job.submitted_at)


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


def _limit(job: JobDocument) -> str:
    return "-" if job.time_limit is None else clock_span(job.time_limit)
