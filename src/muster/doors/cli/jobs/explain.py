"""`muster explain` and `muster why`: the reason for where a job is."""

from collections.abc import Iterator, Mapping

import click

from muster.api.jobs import (
    AlternativeDocument,
    ExplanationDocument,
    JobDocument,
    TurnDocument,
    UpdateDocument,
)
from muster.doors.cli.jobs.dates import about, range_text, starts_text, why_then
from muster.doors.cli.jobs.endings import FINAL
from muster.doors.cli.jobs.named import job_numbers, label_of, labelled, one_job
from muster.doors.cli.jobs.ps import where_or_why
from muster.doors.cli.options import (
    colour_option,
    document_options,
    example,
    job_argument,
    jobs_argument,
)
from muster.doors.cli.screen.printing import facts, say, say_lines, show_one, wrapped
from muster.doors.cli.screen.screen import BOLD, GREEN, Screen
from muster.doors.cli.screen.text import clean_lines, counted, jobs_text
from muster.doors.cli.screen.times import Moment
from muster.doors.cli.surroundings import Call

HAS_STARTED = frozenset({"starting", "running", "stopping"})
UNKNOWN = {
    "held": "it is held, and starts after it is released",
    "dependency": "it waits for another job",
    "never": "as it is, it cannot start",
}


@click.command(
    epilog=example("muster explain 17", "muster explain 17 --apply 2", "muster explain 17 -o json")
)
@job_argument
@click.option(
    "--apply",
    "chosen",
    type=click.IntRange(min=1),
    metavar="N",
    help="Do what would help, by its number.",
)
@document_options
@click.pass_obj
def explain(call: Call, job: str, chosen: int | None) -> None:
    """Say why a job waits, when it should start, what its turn is made of, and what would help.

    What would help is numbered; `--apply N` changes the job in that way.
    """
    number = one_job(call.client, job)
    found = call.client.explain(number)
    if chosen is not None:
        _apply(call, found, chosen)
        return
    show_one(call, found, lambda: _lines(call, found), name=str(found.job))


@click.command(epilog=example("muster why 17 18"))
@jobs_argument
@colour_option
@click.pass_obj
def why(call: Call, jobs: tuple[str, ...]) -> None:
    """Say in one line why a job is where it is."""
    if not jobs:
        raise click.UsageError("Name at least one job.")
    found = [call.client.job(each) for each in job_numbers(call.client, jobs)]
    say_lines(_in_one_line(job, call.screen, call.moment) for job in found)


def explained(call: Call, job: int) -> list[str]:
    """Why a job waits and what would help, as lines."""
    return _lines(call, call.client.explain(job))


def _lines(call: Call, found: ExplanationDocument) -> list[str]:
    named = () if found.start is None else (*found.start.after, *found.start.passing)
    labels = labelled(call.client, (found.job, *found.blockers, *named))
    return list(_explained(found, call.screen, call.moment, labels))


def _apply(call: Call, found: ExplanationDocument, chosen: int) -> None:
    if chosen > len(found.alternatives):
        many = counted(len(found.alternatives), "thing")
        raise click.UsageError(f"There is no number {chosen}: {many} would help this job.")
    alternative = found.alternatives[chosen - 1]
    call.client.update(found.job, UpdateDocument(alternative=alternative.change))
    label = labelled(call.client, (found.job,))[found.job]
    say(f"job {label} updated: {clean_lines(alternative.text)}")


def _explained(
    found: ExplanationDocument, screen: Screen, moment: Moment, labels: Mapping[int, str]
) -> Iterator[str]:
    own = labels[found.job]
    first, *others = wrapped(f"job {own} is {found.state}: {clean_lines(found.text)}", screen)
    yield first.replace(found.state, screen.state(found.state), 1)
    yield from others
    yield from facts(
        screen,
        [
            ("Starts", _start(found, moment)),
            ("Because", "" if found.start is None else why_then(found.start, labels)),
            ("In its way", jobs_text([labels[each] for each in found.blockers])),
            ("Takes", "" if found.time is None else clean_lines(found.time.text)),
            ("Priority", "" if found.turn is None else _turn(found.turn)),
            ("Goes first", _goes_first(found, moment)),
        ],
    )
    if found.alternatives:
        yield screen.paint("What would help:", BOLD)
        for number, each in enumerate(found.alternatives, 1):
            yield from help_lines(f"  {number}. ", each, screen)
        yield f"To have it so: muster explain {own} --apply 1"


def _start(found: ExplanationDocument, moment: Moment) -> str:
    if found.state in HAS_STARTED:
        return ""
    if found.start is not None:
        return range_text(found.start, moment)
    if found.expected_start is not None:
        return about(found.expected_start, moment)
    if found.no_estimate is None:
        return ""
    return f"cannot be said: {UNKNOWN.get(found.no_estimate, found.no_estimate)}"


def _goes_first(found: ExplanationDocument, moment: Moment) -> str:
    """From when on it goes before all others: nobody waits without end."""
    if found.time is None or found.time.first_from is None:
        return ""
    return f"if it still waits on {moment.relative(found.time.first_from)}"


def _turn(turn: TurnDocument) -> str:
    """`5,000,000: fair share 4,000,000, age 1,000,000`."""
    parts = (f"{words} {points:,}" for words, points in _parts(turn) if points)
    made = ", ".join(parts)
    first = "; its queue is within its guarantee and goes first" if turn.own_first else ""
    return f"{turn.points:,}" + (f": {made}" if made else "") + first


def _parts(turn: TurnDocument) -> tuple[tuple[str, int], ...]:
    return (
        ("class", turn.job_class),
        ("fair share", turn.fair_share),
        ("age", turn.age),
        ("queue", turn.queue),
        ("size", turn.size),
        ("short", turn.short),
        ("service", turn.service),
        ("own priority", turn.priority),
    )


def help_lines(before: str, each: AlternativeDocument, screen: Screen) -> Iterator[str]:
    """Its sentence says what would come of it; in colour where that is a start at once."""
    text = before + clean_lines(each.text).removesuffix(".")
    for line in wrapped(text, screen, indent=" " * len(before)):
        yield screen.paint(line, GREEN) if each.starts_now else line


def _in_one_line(job: JobDocument, screen: Screen, moment: Moment) -> str:
    text = "" if job.reason is None else clean_lines(job.reason.text)
    reason = f": {text.removesuffix('.') if job.expected_start else text}" if text else ""
    where = f" on {where_or_why(job)}" if job.nodes else ""
    verb = "" if job.state in FINAL else "is "
    starts = f"; starts {starts_text(job, moment)}" if job.expected_start else ""
    return f"job {label_of(job)} {verb}{screen.state(job.state)}{where}{reason}{starts}"
