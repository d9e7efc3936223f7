"""`muster logs`: what a job wrote."""

import codecs
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing

import click

from muster.doors.cli.jobs.named import one_job
from muster.doors.cli.options import example, job_argument
from muster.doors.cli.screen.screen import is_terminal
from muster.doors.cli.screen.text import clean_lines
from muster.doors.cli.surroundings import Call


@click.command(
    epilog=example("muster logs 17", "muster logs -f -n 20 17", "muster logs 17 --stderr --task 3")
)
@job_argument
@click.option("-f", "--follow", is_flag=True, help="Go on until the job is over.")
@click.option("--stderr", is_flag=True, help="What it wrote to stderr, if that is kept apart.")
@click.option("--task", type=int, default=0, help="Of this task; the first one is 0.")
@click.option(
    "-n",
    "--tail",
    type=click.IntRange(min=1),
    metavar="LINES",
    help="Only so many lines of its end.",
)
@click.option("--raw", is_flag=True, help="Show on a terminal what could steer it, too.")
@click.pass_context
def logs(context: click.Context, /, *, job: str, task: int, stderr: bool, **_: object) -> None:
    """Print what a job wrote, byte for byte.

    On a terminal, what a job of somebody else wrote is shown without what would steer it.
    """
    call: Call = context.obj
    number = one_job(call.client, job)
    is_plain = is_terminal(sys.stdout) and not context.params["raw"] and not _is_own(call, number)
    read = call.client.follow_log if context.params["follow"] else call.client.log
    tail: int = context.params["tail"] or 0
    with closing(read(number, stderr=stderr, task=task, tail=tail)) as parts:
        copy(plain(parts) if is_plain else parts)


def plain(parts: Iterable[bytes]) -> Iterator[bytes]:
    """As text in which nothing is left that a terminal would take as a command."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for part in parts:
        yield clean_lines(decoder.decode(part), kept="\n\t\r").encode()
    yield clean_lines(decoder.decode(b"", final=True)).encode()


def _is_own(call: Call, job: int) -> bool:
    return call.client.job(job).user == call.client.me().user


def copy(parts: Iterable[bytes]) -> None:
    """To stdout, as it comes."""
    sys.stdout.flush()
    for part in parts:
        sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
