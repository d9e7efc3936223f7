"""`muster audit`: who changed what."""

import click

from muster.api.site import AuditDocument
from muster.doors.cli.options import example, list_options
from muster.doors.cli.screen.printing import show_list
from muster.doors.cli.screen.table import Column
from muster.doors.cli.screen.times import Moment
from muster.doors.cli.surroundings import Call


@click.command(epilog=example("muster audit --limit 20"))
@click.option("--limit", type=click.IntRange(1, 1_000), default=100, help="The most to list.")
@list_options
@click.pass_obj
def audit(call: Call, limit: int) -> None:
    """List who changed what, the newest first."""
    found = call.client.audit(limit=limit).entries
    columns = _columns(call.moment)
    show_list(call, found, columns, name=lambda entry: entry.subject, none="Nothing was changed.")


def _columns(moment: Moment) -> list[Column[AuditDocument]]:
    return [
        Column(moment.titled("AT"), lambda entry: moment.local(entry.at)),
        Column("USER", lambda entry: entry.user),
        Column("DOOR", lambda entry: entry.door),
        Column("TOKEN", lambda entry: entry.token or "-", "wide"),
        Column("ACTION", lambda entry: entry.action),
        Column("SUBJECT", lambda entry: entry.subject, "flexible"),
        Column("DETAIL", lambda entry: entry.detail, "flexible"),
    ]
