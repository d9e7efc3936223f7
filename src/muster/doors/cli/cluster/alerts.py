"""`muster alerts` and `muster silence`: what is wrong, and of what nobody is to be told."""

import click

from muster.api.alerts import AlertDocument, SilenceAsked, SilenceDocument
from muster.doors.cli.complete import queue_paths
from muster.doors.cli.options import document_options, example, list_options
from muster.doors.cli.screen.printing import caution, note, say, show_data, show_list
from muster.doors.cli.screen.table import Column
from muster.doors.cli.screen.times import Moment
from muster.doors.cli.surroundings import Call


@click.command(epilog=example("muster alerts", "muster alerts --all", "muster alerts -o json"))
@click.option("-a", "--all", "every", is_flag=True, help="Those that are over as well.")
@list_options
@click.pass_obj
def alerts(call: Call, *, every: bool) -> None:
    """List alerts: what is wrong, since when, and what to do.

    `pending` has not held for long enough yet. MUTED says why nobody is told: a silence,
    or another alert that says it better.
    """
    found = call.client.alerts()
    shown = [each for each in found.alerts if every or each.state != "resolved"]
    show_list(call, shown, _columns(call.moment), name=lambda each: each.name, none="All is well.")
    if call.look.is_table:
        for text in found.problems:
            caution(call, text)
        if found.judged_at is None:
            note("Nothing is judged here: another process leads, or it has just begun.")


@click.group(
    invoke_without_command=True,
    epilog=example(
        "muster silence", "muster silence add alertname=GpuBroken Hostname=n1 --for 2h --why fans"
    ),
)
@click.pass_context
def silence(context: click.Context) -> None:
    """List, make and end silences; without a word more, list them."""
    if context.invoked_subcommand is None:
        _list(context.obj)


@silence.command(name="list", epilog=example("muster silence list -o json"))
@list_options
@click.pass_obj
def silence_list(call: Call) -> None:
    """List silences that have not ended."""
    _list(call)


@silence.command(
    name="add",
    epilog=example(
        "muster silence add alertname=GpuBroken Hostname=n1 --for 2h --why 'new fans'",
        "muster silence add 'alertname=~Job.*' --queue nlp --for 1d --why move",
    ),
)
@click.argument("tests", metavar="LABEL=VALUE...", nargs=-1, required=True)
@click.option("--for", "lasts", required=True, metavar="TIME", help="How long, such as 2h or 3d.")
@click.option("--why", required=True, help="Why; all who see it are told.")
@click.option("--queue", help="Only there and below.", shell_complete=queue_paths)
@document_options
@click.pass_obj
def silence_add(
    call: Call, tests: tuple[str, ...], lasts: str, why: str, queue: str | None
) -> None:
    """Have nobody told of alerts that fulfil all of these tests.

    A test is LABEL=VALUE, LABEL!=VALUE, or LABEL=~PATTERN for a regular expression.
    """
    asked = SilenceAsked(tests=tests, lasts=lasts, comment=why, queue=queue)
    made = call.client.make_silence(asked)
    if not call.look.is_table:
        show_data(call, made)
        return
    ends = f"{call.moment.local(made.ends_at)} {call.moment.zone_name}"
    say(f"silence {made.id} until {ends}")


@silence.command(name="end", epilog=example("muster silence end 3fa9c2d1"))
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.pass_obj
def silence_end(call: Call, ids: tuple[str, ...]) -> None:
    """End silences now."""
    for each in ids:
        ended = call.client.end_silence(each)
        say(f"silence {ended.id} of {ended.by} has ended")


def _list(call: Call) -> None:
    found = call.client.silences()
    columns = _silence_columns(call.moment)
    show_list(call, found, columns, name=lambda each: each.id, none="Nothing is silenced.")


def _about(each: AlertDocument) -> str:
    return each.annotations.get("summary", "") or ",".join(
        f"{name}={value}" for name, value in sorted(each.labels.items())
    )


def _columns(moment: Moment) -> list[Column[AlertDocument]]:
    return [
        Column("ALERT", lambda each: each.name),
        Column("STATE", lambda each: each.state, "state"),
        Column("SEVERITY", lambda each: each.severity),
        Column("SINCE", lambda each: moment.relative(each.since)),
        Column("QUEUE", lambda each: each.labels.get("queue", "-"), "spare"),
        Column("MUTED", lambda each: each.muted_by or "-", "spare"),
        Column("SUMMARY", _about, "flexible"),
        Column("WHY", lambda each: each.annotations.get("why", ""), "wide"),
        Column("ACTION", lambda each: each.annotations.get("action", ""), "wide"),
        Column("LOOK", lambda each: each.annotations.get("muster", ""), "wide"),
    ]


def _silence_columns(moment: Moment) -> list[Column[SilenceDocument]]:
    return [
        Column("ID", lambda each: each.id),
        Column("ENDS", lambda each: moment.relative(each.ends_at)),
        Column("BY", lambda each: each.by),
        Column("QUEUE", lambda each: each.queue or "-", "spare"),
        Column("TESTS", lambda each: " ".join(each.tests), "flexible"),
        Column("WHY", lambda each: each.comment, "flexible"),
    ]
