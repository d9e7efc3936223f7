"""`muster events`: what happened, and what happens."""

import sys
from contextlib import closing
from typing import TYPE_CHECKING

import click
import msgspec

from muster.api.site import EventDocument
from muster.doors.cli.jobs.named import one_job
from muster.doors.cli.options import example, list_options
from muster.doors.cli.screen.printing import note, say, show_list
from muster.doors.cli.screen.table import Column
from muster.doors.cli.screen.text import clean
from muster.doors.cli.screen.times import Moment
from muster.doors.cli.surroundings import Call

if TYPE_CHECKING:
    from muster.client.calls import Client

PAGE = 1_000


@click.command(
    epilog=example("muster events --job 17", "muster events -f", "muster events -f -o json")
)
@click.option("-f", "--follow", is_flag=True, help="Print what happens from now on.")
@click.option("--job", help="Only what happens to this job.")
@click.option("--after", type=int, help="Only what came after this number.")
@click.option("--limit", type=click.IntRange(min=1), default=100, help="The most to list.")
@list_options
@click.pass_obj
def events(call: Call, *, follow: bool, job: str | None, after: int | None, limit: int) -> None:
    """List what happened lately, oldest first, or watch it happen.

    Of one job, everything is listed. When following, JSON is one event on each line.
    """
    number = one_job(call.client, job) if job else None
    if follow:
        _follow(call, after, number)
        return
    if after is None:
        after = 0 if number is not None else max(0, call.client.status().last_event - limit)
    found = _logged(call.client, after, number, limit)
    columns = _columns(call.moment)
    show_list(call, found, columns, name=lambda event: event.number, none="Nothing happened.")
    if len(found) == limit:
        note(f"There may be more: muster events --after {found[-1].number}")


def _logged(client: "Client", after: int, job: int | None, limit: int) -> list[EventDocument]:
    found: list[EventDocument] = []
    while len(found) < limit:
        size = min(PAGE, limit - len(found))
        page = (
            client.event_page(after=after, limit=size)
            if job is None
            else client.job_events(job, after=after, limit=size)
        )
        found.extend(page.events)
        if len(page.events) < size:
            break
        after = page.next
    return found


def _follow(call: Call, after: int | None, job: int | None) -> None:
    with closing(call.client.events(after, job=job)) as happening:
        for event in happening:
            say(_line(call, event))
            sys.stdout.flush()


def _line(call: Call, event: EventDocument) -> str:
    if call.look.output == "json":
        return msgspec.json.encode(event).decode()
    about = f"job {_label(event)}" if event.job is not None else "-"
    return clean(f"{call.moment.near(event.at)}  {about:<10}  {event.kind:<18}  {event.text}")


def _label(event: EventDocument) -> str:
    """The job, as it is called everywhere. A server of an earlier version gives its id alone."""
    return event.label or ("-" if event.job is None else str(event.job))


def _columns(moment: Moment) -> list[Column[EventDocument]]:
    return [
        Column("NUMBER", lambda event: str(event.number), "wide right"),
        Column(moment.titled("AT"), lambda event: moment.near(event.at)),
        Column("JOB", _label, "right"),
        Column("EVENT", lambda event: event.kind),
        Column("WHAT", lambda event: event.text, "flexible"),
    ]
