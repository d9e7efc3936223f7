"""`muster update`: other wishes for a job."""

from typing import Any

import click

from muster.api.jobs import UpdateDocument
from muster.doors.cli.complete import class_names, queue_paths
from muster.doors.cli.jobs.named import job_numbers
from muster.doors.cli.options import example, jobs_argument
from muster.doors.cli.screen.printing import say
from muster.doors.cli.screen.times import zoned
from muster.doors.cli.submit.document import pairs
from muster.doors.cli.surroundings import Call


@click.command(
    epilog=example("muster update 17 --time 4h", "muster update 17 --queue acme/nlp --priority 5")
)
@jobs_argument
@click.option("-J", "--name", help="Another name.")
@click.option("--queue", help="Another queue.", shell_complete=queue_paths)
@click.option("--class", "job_class", help="Another job class.", shell_complete=class_names)
@click.option("--priority", type=int, help="Another priority among your own jobs.")
@click.option("-t", "--time", help="Another time limit.")
@click.option("--begin", help="Not before this instant.")
@click.option("--deadline", help="Of no use after this instant.")
@click.option("--pool", "pools", multiple=True, help="A pool that will do.")
@click.option("--label", "labels", multiple=True, metavar="NAME=VALUE", help="Labels, anew.")
@click.option("--mail-type", "mail_on", metavar="OCCASIONS", help="When to send mail, anew.")
@click.option("--mail-user", "mail_to", metavar="ADDRESS", help="Another address for mail.")
@click.pass_obj
def update(call: Call, jobs: tuple[str, ...], **changes: Any) -> None:
    """Change what waiting jobs ask for.

    Of a running job, only its name, time limit, labels and mail change.
    """
    change = _change(call, changes)
    if not jobs or change == UpdateDocument():
        raise click.UsageError("Name a job and at least one thing to change.")
    for number in job_numbers(call.client, jobs):
        call.client.update(number, change)
        say(f"job {number} updated")


def _change(call: Call, changes: dict[str, Any]) -> UpdateDocument:
    now = call.around.now()
    return UpdateDocument(
        name=changes["name"],
        queue=changes["queue"],
        job_class=changes["job_class"],
        priority=changes["priority"],
        time=changes["time"],
        begin=zoned(changes["begin"], now),
        deadline=zoned(changes["deadline"], now),
        pools=changes["pools"] or None,
        labels=pairs(changes["labels"], "--label") if changes["labels"] else None,
        mail_on=None if changes["mail_on"] is None else tuple(changes["mail_on"].split(",")),
        mail_to=changes["mail_to"],
    )
