"""`muster show`: everything about a job."""

import shlex
from collections.abc import Iterator

import click

from muster.api.jobs import AttemptDocument, JobDocument, LaunchDocument, TaskDocument
from muster.doors.cli.jobs.dates import starts_text
from muster.doors.cli.jobs.named import job_numbers, label_of
from muster.doors.cli.jobs.ps import where_or_why
from muster.doors.cli.options import document_options, example, jobs_argument
from muster.doors.cli.screen.printing import facts, say_lines, show_data
from muster.doors.cli.screen.screen import BOLD, Screen
from muster.doors.cli.screen.table import Column, lines
from muster.doors.cli.screen.text import clean_lines, memory, number
from muster.doors.cli.screen.times import Moment, clock_span, exact_span, hours
from muster.doors.cli.surroundings import Call


@click.command(epilog=example("muster show 17", "muster show 17 -o json"))
@jobs_argument
@document_options
@click.option("--script", is_flag=True, help="Print only the script that it runs.")
@click.pass_obj
def show(call: Call, jobs: tuple[str, ...], *, script: bool) -> None:
    """Show everything about a job: where it is and why, what it asked for, holds and used.

    What it runs is shown to its owner and to administrators.
    """
    if not jobs:
        raise click.UsageError("Name at least one job.")
    found = [call.client.job(each) for each in job_numbers(call.client, jobs)]
    if script:
        say_lines((job.launch and job.launch.script) or "" for job in found)
    elif call.look.output == "name":
        say_lines(str(job.id) for job in found)
    elif not call.look.is_table:
        show_data(call, found[0] if len(found) == 1 else found)
    else:
        pages = ("\n".join(described(job, call.screen, call.moment)) for job in found)
        say_lines(["\n\n".join(pages)])


def described(job: JobDocument, screen: Screen, moment: Moment) -> Iterator[str]:
    """The job as a page of text."""
    yield from facts(screen, _head(job, moment))
    if job.tasks:
        yield from ("", screen.paint("Tasks", BOLD))
        yield from lines(job.tasks, TASK_COLUMNS, screen)
    if job.attempts:
        yield from ("", screen.paint("Attempts", BOLD))
        yield from lines(job.attempts, _attempt_columns(moment), screen)
    if job.launch is not None:
        yield ""
        yield from facts(screen, _launch(job.launch))


def _head(job: JobDocument, moment: Moment) -> Iterator[tuple[str, str]]:
    yield "Job", f"{label_of(job)} (id {job.id})" if job.array is not None else str(job.id)
    yield "Name", job.name
    yield "User", job.user
    yield "Queue", job.queue
    yield "Class", job.job_class
    yield "Priority", str(job.priority) if job.priority else ""
    yield "State", job.state
    yield "Reason", job.reason.text if job.reason is not None else ""
    yield "Exit code", "" if job.exit_code is None else str(job.exit_code)
    yield "Signal", str(job.signal) if job.signal else ""
    yield "Asked for", _asked(job)
    yield "Nodes", where_or_why(job) if job.nodes else ""
    yield "Cluster", job.cluster or ""
    yield "Submitted", moment.relative(job.submitted_at)
    yield "Starts", starts_text(job, moment)
    yield "Started", moment.relative(job.started_at) if job.started_at else ""
    yield "Ended", moment.relative(job.ended_at) if job.ended_at else ""
    yield "Time limit", "" if job.time_limit is None else exact_span(job.time_limit)
    yield "Checkpoint", moment.relative(job.checkpointed_at) if job.checkpointed_at else ""
    yield "Used", _used(job)
    yield "Mail", f"{', '.join(job.mail_on)} to {job.mail_to or job.user}" if job.mail_on else ""
    yield "Labels", ", ".join(f"{name}={value}" for name, value in job.labels.items())


def _asked(job: JobDocument) -> str:
    parts = [
        f"{job.task_count} tasks" if job.task_count > 1 else "",
        _several(job.gpus, "GPU"),
        _several(job.cpus, "CPU"),
        f"{memory(job.memory_mib)} of memory" if job.memory_mib else "",
    ]
    return ", ".join(part for part in parts if part)


def _several(amount: float, noun: str) -> str:
    return f"{number(amount)} {noun if amount == 1 else noun + 's'}" if amount else ""


def _used(job: JobDocument) -> str:
    lost = f", {hours(job.lost_gpu_seconds)} of them lost" if job.lost_gpu_seconds else ""
    return f"{hours(job.gpu_seconds)} GPU-hours{lost}" if job.gpu_seconds else ""


def _launch(launch: LaunchDocument) -> Iterator[tuple[str, str]]:
    yield "Command" if launch.script is None else "Arguments", shlex.join(launch.command)
    yield "Image", launch.image or ""
    yield "Folder", launch.workdir or ""
    yield "Output", launch.stdout or ""
    yield "Errors", launch.stderr or ""
    yield "Variables", f"{len(launch.env)} (see -o json)" if launch.env else ""
    if launch.script is not None:
        indented = clean_lines(launch.script).rstrip("\n").replace("\n", "\n  ")
        yield "Script", f"\n  {indented}"


def _devices(task: TaskDocument) -> str:
    return ",".join(
        share.device if share.slice is None else f"{share.device}[{share.slice}, {share.enforced}]"
        for share in task.devices
    )


TASK_COLUMNS: list[Column[TaskDocument]] = [
    Column("TASK", lambda task: f"{task.group}/{task.index}"),
    Column("NODE", lambda task: task.node),
    Column("POOL", lambda task: task.pool),
    Column("CPUS", lambda task: number(task.cpus), "right"),
    Column("MEMORY", lambda task: memory(task.memory_mib), "right"),
    Column("GPUS", lambda task: number(task.gpus), "right"),
    Column("DEVICES", _devices, "flexible"),
]


def _attempt_columns(moment: Moment) -> list[Column[AttemptDocument]]:
    return [
        Column("ATTEMPT", lambda each: str(each.number), "right"),
        Column(moment.titled("STARTED"), lambda each: moment.near(each.started_at)),
        Column("LASTED", lambda each: moment.lasted(each.started_at, each.ended_at), "right"),
        Column("GPU-HOURS", lambda each: hours(each.gpu_seconds), "right spare"),
        Column("LOST", lambda each: hours(each.lost_gpu_seconds), "right spare"),
        Column("CPU TIME", _cpu_time, "right spare"),
        Column("MAX MEMORY", _max_memory, "right"),
        Column("NODES", lambda each: ",".join(each.nodes), "flexible"),
        Column("END", lambda each: each.reason.text if each.reason else "", "flexible"),
    ]


def _cpu_time(attempt: AttemptDocument) -> str:
    return "-" if attempt.cpu_seconds is None else clock_span(attempt.cpu_seconds)


def _max_memory(attempt: AttemptDocument) -> str:
    return "-" if attempt.max_memory_mib is None else memory(attempt.max_memory_mib)
