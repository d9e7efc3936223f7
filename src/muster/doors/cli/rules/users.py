"""`muster users`: who is known by name."""

import click

from muster.api.site import UserDocument
from muster.doors.cli.options import example, list_options
from muster.doors.cli.screen.printing import note, show_list
from muster.doors.cli.screen.table import Column
from muster.doors.cli.surroundings import Call


@click.command(epilog=example("muster users"))
@list_options
@click.pass_obj
def users(call: Call) -> None:
    """List users and what they may do; the configuration file names them."""
    page = call.client.users()
    show_list(call, page.users, COLUMNS, name=lambda user: user.name, none="Nobody is named.")
    if call.look.is_table:
        note(f"Everybody else on this machine: {page.everyone}.")


COLUMNS: list[Column[UserDocument]] = [
    Column("USER", lambda user: user.name),
    Column("ROLES", lambda user: ", ".join(user.roles) or "-", "flexible"),
    Column("DEFAULT QUEUE", lambda user: user.default_queue or "-"),
]
