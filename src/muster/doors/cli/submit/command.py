"""`muster submit`: hand in a job."""

from typing import Any

import click

from muster.api.requests import SubmitDocument, SubmittedDocument
from muster.client.errors import ApiError, ClientError
from muster.doors.cli.jobs.endings import end_text, exit_code
from muster.doors.cli.options import example
from muster.doors.cli.screen.printing import caution, note, say
from muster.doors.cli.screen.text import counted
from muster.doors.cli.submit.options import SubmitCommand
from muster.doors.cli.submit.work import Work, work_of
from muster.doors.cli.surroundings import Call


@click.command(
    cls=SubmitCommand,
    epilog=example(
        "muster submit --gpus 2 --time 2h train.sh --epochs 10",
        "muster submit --gpus 1 --name probe -- nvidia-smi -L",
        "muster submit --array 0-9%4 --after afterok:17 sweep.sh",
        "muster submit job.yaml",
        "JOB=$(muster submit --quiet train.sh)",
    ),
)
@click.option("-w", "--wait", is_flag=True, help="Wait for its end; exit with its exit code.")
@click.option("-Q", "--quiet", "--parsable", is_flag=True, help="Print nothing but the id.")
@click.argument("words", nargs=-1, type=click.Path(), metavar="FILE [ARGS]... | -- COMMAND...")
@click.pass_context
def submit(context: click.Context, **_: Any) -> int:
    """Hand in a job and return at once.

    FILE is a script, whose text is sent (`-` reads it from the input), or a job file in YAML; a
    command stands after `--`. Lines of a script that begin with `#MUSTER` hold options, such as
    `#MUSTER --gpus 2`; `#SBATCH`, `#PBS` and `#BSUB` lines are read as well. The command line wins
    over all of them.

    The job runs in this folder and with this shell's environment, unless `--workdir` and
    `--env-only` say otherwise. Options that may be given several times also take commas.
    """
    call: Call = context.obj
    work = work_of(context)
    quiet: bool = context.params["quiet"]
    for text in work.cautions:
        caution(call, text)
    made = _submitted(call, work)
    announce(call, work.document, made, quiet=quiet)
    return _waited(call, made, quiet=quiet) if context.params["wait"] else 0


def _submitted(call: Call, work: Work) -> SubmittedDocument:
    """What the server finds wrong with a file is shown with its line, where that is known."""
    try:
        return call.client.submit_document(work.document)
    except ApiError as no:
        place = work.place(no.problem)
        if place is None:
            raise
        text = no.problem.text.removeprefix(f"{no.problem.where}: ")
        raise ClientError(f"{place}: {text}") from no


def announce(call: Call, document: SubmitDocument, made: SubmittedDocument, *, quiet: bool) -> None:
    """Say what was made; cautions go to stderr."""
    if quiet:
        say(str(made.id))
    elif len(made.ids) > 1:
        many = counted(len(made.ids), "job")
        say(f"array {made.id} of {many} submitted to {_queue(call, document, made)}")
    else:
        say(f"job {made.id} submitted to {_queue(call, document, made)}")
    for text in made.cautions:
        caution(call, text)


def _queue(call: Call, document: SubmitDocument, made: SubmittedDocument) -> str:
    """Where it went; asked only if the user left it to the server."""
    return document.queue or call.client.job(made.id).queue


def _waited(call: Call, made: SubmittedDocument, *, quiet: bool) -> int:
    """The worst of the exit codes, for an array."""
    code = 0
    for job in made.ids:
        ended = call.client.wait(job)
        if not quiet:
            note(end_text(ended))
        code = max(code, exit_code(ended))
    return code
