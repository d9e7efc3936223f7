"""`muster status`: the installation at a glance."""

from collections.abc import Iterator, Mapping, Sequence

import click

from muster.api.site import DatesHeldDocument, MeDocument, StatusDocument
from muster.doors.cli.options import document_options, example
from muster.doors.cli.screen.printing import caution, facts, show_one
from muster.doors.cli.screen.text import number
from muster.doors.cli.screen.times import Moment
from muster.doors.cli.surroundings import Call

REFUSED = 1
SHOWN = 8
"""Of so many queues and classes it is said here how many dates held."""


@click.command(epilog=example("muster status", "muster status -o json"))
@document_options
@click.pass_obj
def status(call: Call) -> int:
    """Show the installation at a glance. Exits with 1 when something is wrong with it."""
    found, me = call.client.status(), call.client.me()
    pairs = list(_facts(found, me, call.moment))
    show_one(call, found, lambda: facts(call.screen, pairs), name=found.version)
    if call.look.is_table:
        for problem in found.problems:
            caution(call, problem)
    return REFUSED if found.problems else 0


def _facts(found: StatusDocument, me: MeDocument, moment: Moment) -> Iterator[tuple[str, str]]:
    yield "Muster", found.version
    yield "You", f"{me.user} ({', '.join(me.roles) or 'no role'})"
    yield "Controller", "leads" if found.leading else "stands by"
    yield "Store", found.store
    yield "Nodes", counts(found.nodes)
    yield "GPUs", gpus_text(found)
    yield "Jobs", counts(found.jobs) or "none"
    yield "Last plan", _plan(found, moment)
    if found.dates_told:
        yield "Dates", f"{found.dates_held} of {found.dates_told} held in the last week"
    if len(found.dates) > 1:
        yield "Dates by queue and class", _dates(found.dates)


def _dates(groups: Sequence[DatesHeldDocument]) -> str:
    """A line for each, those with the most dates first."""
    lines = [f"{each.queue}, {each.job_class}: {each.held} of {each.told}" for each in groups]
    more = [f"{len(lines) - SHOWN} more: muster status -o json"] if len(lines) > SHOWN else []
    return "".join(f"\n  {line}" for line in (*lines[:SHOWN], *more))


def counts(of: Mapping[str, int]) -> str:
    """`3 running, 5 pending`."""
    return ", ".join(f"{count} {state}" for state, count in of.items() if count)


def gpus_text(found: StatusDocument) -> str:
    """`3 of 8 used (pretend)`."""
    mark = " (pretend)" if found.pretend else ""
    return f"{number(found.gpus_used)} of {found.gpus} used{mark}"


def _plan(found: StatusDocument, moment: Moment) -> str:
    if found.planned_at is None:
        return "none yet"
    return f"{moment.relative(found.planned_at)}, took {found.plan_ms} ms"
