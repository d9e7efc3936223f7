"""`muster apply` and `muster site`: the configuration file."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from muster.api.site import SiteChange
from muster.doors.cli.options import colour_option, example
from muster.doors.cli.screen.printing import caution, note, say, say_lines
from muster.doors.cli.screen.screen import CYAN, GREEN, RED, YELLOW, Screen
from muster.doors.cli.screen.text import clean_lines, counted
from muster.doors.cli.surroundings import Call

MARKS = {"+": GREEN, "-": RED, "~": YELLOW, "@": CYAN}

file_option = click.option(
    "-f",
    "--file",
    required=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="The file; - reads it from the input.",
)


@click.command(
    epilog=example("muster apply -f cluster.yaml --dry-run", "muster apply -f cluster.yaml")
)
@file_option
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@click.option("--diff", is_flag=True, help="Show the difference of the texts as well.")
@colour_option
@click.pass_obj
def apply(call: Call, file: str, *, dry_run: bool, diff: bool) -> None:
    """Put a configuration file into force, and say what changed.

    Nothing is restarted. A mistake is reported with its line, and then nothing changes.
    """
    text = read_file(file)
    if diff:
        say_lines(_difference(call.client.site(), text, call.screen))
    show_change(call, call.client.apply(text, dry_run=dry_run))


@click.command(epilog=example("muster site > cluster.yaml"))
@click.pass_obj
def site(call: Call) -> None:
    """Print the configuration in force, as `muster apply` reads it."""
    say(call.client.site().rstrip("\n"))


def read_file(file: str) -> str:
    """The text of a file, or of the input for `-`."""
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        raise click.UsageError(f"{file} cannot be read: {wrong}") from wrong


def show_change(call: Call, change: SiteChange) -> None:
    """What changed, or would change, line by line."""
    say_lines(painted(line, call.screen) for line in change.changes)
    for text in change.cautions:
        caution(call, text)
    many = counted(len(change.changes), "change")
    if not change.changes:
        note("Nothing changes.")
    else:
        note(f"{many} applied." if change.applied else f"{many}; nothing was applied.")


def painted(line: str, screen: Screen) -> str:
    """A line of a difference, in the colour of its mark."""
    return screen.paint(clean_lines(line), MARKS.get(line.lstrip()[:1], 0))


def _difference(before: str, after: str, screen: Screen) -> Iterator[str]:
    from difflib import unified_diff  # noqa: PLC0415  only for --diff

    lines = unified_diff(
        before.splitlines(), after.splitlines(), "in force", "new", lineterm="", n=2
    )
    return (painted(line, screen) for line in lines)
