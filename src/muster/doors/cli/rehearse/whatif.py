"""`muster whatif`: rehearse a submission or a change against the live state."""

from collections.abc import Iterator
from typing import Any

import click

from muster.api.pages import RehearsalAsked
from muster.api.site import MovedDocument, RehearsalDocument
from muster.doors.cli.jobs.dates import about, range_text
from muster.doors.cli.jobs.explain import help_lines
from muster.doors.cli.options import document_options, example
from muster.doors.cli.rules.apply import file_option, read_file
from muster.doors.cli.rules.quota import asked_of, quota_options
from muster.doors.cli.screen.printing import facts, show_one
from muster.doors.cli.screen.screen import BOLD, Screen
from muster.doors.cli.screen.text import clean_lines, jobs_text, listed
from muster.doors.cli.screen.times import Moment
from muster.doors.cli.submit.options import SubmitCommand
from muster.doors.cli.submit.work import command_document, work_of
from muster.doors.cli.surroundings import Call

MOST_NAMED = 5
"""So many of the jobs that would move are named."""


@click.group()
def whatif() -> None:
    """Ask the planner what would happen; nothing is done."""


@whatif.command(
    name="submit",
    cls=SubmitCommand,
    epilog=example(
        "muster whatif submit --gpus 8 --time 2h",
        "muster whatif submit --queue acme/nlp train.sh",
    ),
)
@click.argument("words", nargs=-1, type=click.Path(), metavar="[SCRIPT | -- COMMAND]...")
@click.pass_context
def whatif_submit(context: click.Context, **_: Any) -> None:
    """Would this job start now, when would it, and who would have to make room?

    Takes the options of `muster submit`; nothing to run need be named.
    """
    call: Call = context.obj
    named = bool(context.params["words"])
    document = work_of(context).document if named else command_document(context, ("true",))
    _show(call, RehearsalAsked(submit=document))


@whatif.command(name="quota", epilog=example("muster whatif quota acme/nlp --limit 16"))
@quota_options
@document_options
@click.pass_obj
def whatif_quota(call: Call, **options: Any) -> None:
    """What would start, wait or make room if a queue had other numbers?"""
    _show(call, RehearsalAsked(quota=asked_of(options)))


@whatif.command(name="apply", epilog=example("muster whatif apply -f cluster.yaml"))
@file_option
@document_options
@click.pass_obj
def whatif_apply(call: Call, file: str) -> None:
    """What would start, wait or make room if this configuration were in force?"""
    _show(call, RehearsalAsked(site=read_file(file)))


def _show(call: Call, asked: RehearsalAsked) -> None:
    found = call.client.rehearse(asked)
    show_one(call, found, lambda: _told(found, call.screen, call.moment), name=listed(found.starts))


def _told(found: RehearsalDocument, screen: Screen, moment: Moment) -> Iterator[str]:
    yield clean_lines(found.text)
    starts = about(found.expected_start, moment) if found.expected_start else ""
    if found.start is not None:
        starts = range_text(found.start, moment)
    because = found.explanation or ""
    because = "" if found.text.endswith(because) else because
    yield from facts(
        screen,
        [
            ("Because", because),
            ("Starts", starts),
            ("Would start now", jobs_text(found.starts)),
            ("Would have to wait", jobs_text(found.waits)),
            ("Would make room", jobs_text(found.preempted)),
            ("Would move", "; ".join(_moves(found, moment))),
        ],
    )
    if found.alternatives:
        yield screen.paint("What would help:", BOLD)
        for each in found.alternatives:
            yield from help_lines("  ", each, screen)


def _moves(found: RehearsalDocument, moment: Moment) -> Iterator[str]:
    """`job 7 from 14:10:00 to 13:20:00`, those that move most first."""
    far = sorted(found.moved, key=lambda each: -abs(_shift_s(each, moment)))
    for each in far[:MOST_NAMED]:
        yield f"job {each.job} from {moment.near(each.before)} to {moment.near(each.after)}"
    if len(far) > MOST_NAMED:
        yield f"{len(far) - MOST_NAMED} more"


def _shift_s(each: MovedDocument, moment: Moment) -> float:
    return moment.since(each.before) - moment.since(each.after)
