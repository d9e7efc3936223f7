"""Options and arguments that several commands share."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from muster.doors.cli.complete import job_ids, node_names, queue_paths
from muster.doors.cli.screen.screen import recoloured
from muster.doors.cli.surroundings import Call
from muster.model.value import replace

F = TypeVar("F", bound=Callable[..., Any])
Wrap = Callable[[F], F]

CLEARED = "\x1b[H\x1b[J"
"""The cursor is at the top, and nothing below it."""

STATES = "held pending starting running suspended stopping completed failed cancelled".split()


def example(*lines: str) -> str:
    """The examples at the end of a command's help, kept as they are written."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def list_options(command: F) -> F:
    """`-o`, `--columns`, `--sort`, `--watch` and the like, for commands that list things."""
    return output_option(headers_option(chosen_options(colour_option(_repeated(command)))))


def chosen_options(command: F) -> F:
    """`--columns`, `--sort` and `--watch`."""
    options: tuple[Wrap[F], ...] = (
        click.option(
            "--columns",
            metavar="TITLE,...",
            help="Show these columns, also those of -o wide.",
            expose_value=False,
            callback=_set_columns,
        ),
        click.option(
            "--sort",
            metavar="TITLE",
            help="Sort by this column; -TITLE the other way round.",
            expose_value=False,
            callback=_set_sort,
        ),
        click.option(
            "-w",
            "--watch",
            type=click.FloatRange(min=0.5),
            is_flag=False,
            flag_value=2.0,
            metavar="[SECONDS]",
            help="Show it again and again until Ctrl-C.",
            expose_value=False,
            callback=_set_watch,
        ),
    )
    for wrap in reversed(options):
        command = wrap(command)
    return command


def _repeated(command: F) -> F:
    """The command, again and again where `--watch` says so."""

    @wraps(command)
    def again(*args: Any, **given: Any) -> Any:
        call = click.get_current_context().find_object(Call)
        if call is None or call.look.watch_s is None:
            return command(*args, **given)
        try:
            while True:
                sys.stdout.write(CLEARED if call.screen.width is not None else "")
                command(*args, **given)
                sys.stdout.flush()
                call.around.pause(call.look.watch_s)
        except KeyboardInterrupt:
            return 0

    return cast("F", again)


def document_options(command: F) -> F:
    """`-o` and `--color`, for commands that show one thing."""
    return output_option(colour_option(command))


def output_option(command: F) -> F:
    """`-o json` and the like."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "wide", "json", "yaml", "name"]),
        default="table",
        help="How to show it; a table by default.",
        expose_value=False,
        callback=_set_output,
    )(command)


def headers_option(command: F) -> F:
    """`--no-headers`."""
    return click.option(
        "--no-headers",
        is_flag=True,
        help="Leave out the line of titles.",
        expose_value=False,
        callback=_set_headers,
    )(command)


def colour_option(command: F) -> F:
    """`--color`; without it, NO_COLOR, FORCE_COLOR and the terminal decide."""
    return click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        help="Colours; on a terminal by default.",
        expose_value=False,
        callback=_set_colour,
    )(command)


def filter_options(command: F) -> F:
    """`--user --queue --state --name --node`: which jobs are meant."""
    wraps: tuple[Wrap[F], ...] = (
        click.option("-u", "--user", "users", multiple=True, help="Jobs of this user."),
        click.option(
            "--queue",
            "queues",
            multiple=True,
            help="Jobs in this queue and below.",
            shell_complete=queue_paths,
        ),
        click.option(
            "--state",
            "states",
            multiple=True,
            type=click.Choice(STATES),
            metavar="STATE",
            help="Jobs in this state.",
        ),
        click.option("--name", help="Jobs with this name."),
        click.option(
            "--node",
            "nodes",
            multiple=True,
            help="Jobs on this node.",
            shell_complete=node_names,
        ),
    )
    for wrap in reversed(wraps):
        command = wrap(command)
    return command


job_argument = click.argument("job", metavar="JOB", shell_complete=job_ids)
jobs_argument = click.argument("jobs", metavar="JOB...", nargs=-1, shell_complete=job_ids)
node_argument = click.argument("node", metavar="NODE", shell_complete=node_names)
queue_argument = click.argument("queue", metavar="QUEUE", shell_complete=queue_paths)


def _set_output(context: click.Context, _: click.Parameter, value: str) -> None:
    call = context.find_object(Call)
    if call is not None:
        call.look = replace(call.look, output=value)


def _set_headers(context: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001  click calls it
    call = context.find_object(Call)
    if call is not None and value:
        call.look = replace(call.look, headers=False)


def _set_columns(context: click.Context, _: click.Parameter, value: str | None) -> None:
    call = context.find_object(Call)
    if call is not None and value:
        titles = tuple(title.strip() for title in value.split(",") if title.strip())
        call.look = replace(call.look, columns=titles)


def _set_sort(context: click.Context, _: click.Parameter, value: str | None) -> None:
    call = context.find_object(Call)
    if call is not None and value:
        call.look = replace(call.look, sort=value.strip())


def _set_watch(context: click.Context, _: click.Parameter, value: float | None) -> None:
    call = context.find_object(Call)
    if call is not None:
        call.look = replace(call.look, watch_s=value)


def _set_colour(context: click.Context, _: click.Parameter, value: str) -> None:
    call = context.find_object(Call)
    if call is not None:
        call.screen = recoloured(call.screen, value)
