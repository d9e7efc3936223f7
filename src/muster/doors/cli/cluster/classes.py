"""`muster classes`: job classes."""

import click

from muster.api.site import ClassDocument
from muster.doors.cli.options import example, list_options
from muster.doors.cli.screen.printing import show_list
from muster.doors.cli.screen.table import Column
from muster.doors.cli.screen.times import exact_span
from muster.doors.cli.surroundings import Call


@click.command(epilog=example("muster classes"))
@list_options
@click.pass_obj
def classes(call: Call) -> None:
    """List job classes: their priority, whom they push aside, what becomes of them, who may.

    MAY USE names users, and queues in which everyone may; a queue_admin may in their queues.
    """
    found = call.client.classes()
    show_list(call, found, COLUMNS, name=lambda each: each.name, none="There are no classes.")


def _may_use(each: ClassDocument) -> str:
    return ",".join((*each.may_use, *(f"in {queue}" for queue in each.queues))) or "queue_admins"


COLUMNS: list[Column[ClassDocument]] = [
    Column("CLASS", lambda each: each.name),
    Column("PRIORITY", lambda each: str(each.priority), "right"),
    Column("PREEMPTS", lambda each: ",".join(each.preempts) or "-", "flexible"),
    Column(
        "PREEMPTED",
        lambda each: (
            f"{each.preempt_mode} after {exact_span(each.grace)}" if each.preemptible else "never"
        ),
    ),
    Column("MAX TIME", lambda each: exact_span(each.max_time) if each.max_time else "-", "right"),
    Column("MAY USE", _may_use, "flexible"),
    Column("SPOT ONLY", lambda each: "yes" if each.spot_only else "no", "spare"),
]
