"""`muster version`."""

import click

from muster import __version__
from muster.doors.cli.options import example
from muster.doors.cli.screen.printing import say
from muster.doors.cli.surroundings import Call


@click.command(epilog=example("muster version", "muster version --server"))
@click.option("--server", is_flag=True, help="Also the version of the server.")
@click.pass_obj
def version(call: Call, *, server: bool) -> None:
    """Print the version."""
    say(f"muster {__version__}")
    if server:
        say(f"server {call.client.status().version}")
