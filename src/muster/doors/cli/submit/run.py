"""`muster run` and `muster attach`: sit at a job until it is over."""

import signal
import sys
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from types import FrameType
from typing import Any

import click

from muster.api.jobs import JobDocument
from muster.api.requests import SubmitDocument
from muster.client.errors import ApiError
from muster.doors.cli.jobs.endings import FINAL, end_text, exit_code
from muster.doors.cli.jobs.logs import copy
from muster.doors.cli.jobs.named import one_job
from muster.doors.cli.options import example, job_argument
from muster.doors.cli.screen.printing import caution, complain, note
from muster.doors.cli.screen.screen import has_input, is_terminal, terminal_size
from muster.doors.cli.submit.options import SubmitCommand
from muster.doors.cli.submit.work import command_document
from muster.doors.cli.surroundings import Call
from muster.model.errors import MusterError
from muster.model.value import replace

REFUSED, INTERRUPTED = 1, 130
LONG_ENOUGH_S = 1.0
"""Who waits for longer than this wants to know why."""

NOT_YET = frozenset({"held", "pending", "starting"})


@click.command(
    cls=SubmitCommand,
    epilog=example(
        "muster run --gpus 1 nvidia-smi",
        "muster run --gpus 2 --time 1h bash",
        "muster run --gpus 1 python train.py > out.txt",
    ),
)
@click.argument("words", nargs=-1, required=True, metavar="COMMAND [ARGS]...")
@click.pass_context
def run(context: click.Context, **_: Any) -> int:
    """Run a command as a job and see it through; exit with its exit code.

    At a terminal the job gets a terminal too: keys, Ctrl-C and the size of the window go to it.
    Ctrl-P Ctrl-Q leaves it running; `muster attach` comes back. Elsewhere what it writes is
    printed as it comes, Ctrl-C interrupts it, and a second Ctrl-C cancels it. Ctrl-C while it
    still waits cancels it. What it writes is kept in its output file as well. It reads the file
    that --input names, and nothing that is piped in.
    """
    call: Call = context.obj
    words: tuple[str, ...] = context.params["words"]
    document = command_document(context, words)
    seated = is_terminal(sys.stdin) and is_terminal(sys.stdout)
    if document.stdin is None and has_input(sys.stdin):
        caution(call, "The job does not read what is piped in; put it into a file: --input FILE.")
    job = _submitted(call, _with_terminal(document) if seated else document)
    started = _started(call, job)
    if started is None:
        return INTERRUPTED
    if started.state in FINAL:
        return _over(call, started)
    return _seated(call, started) if seated else _streamed(call, started)


@click.command(epilog=example("muster attach 17"))
@job_argument
@click.pass_obj
def attach(call: Call, job: str) -> int:
    """Sit down again at the terminal of a job that `muster run` started.

    Ctrl-P Ctrl-Q leaves it running.
    """
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise click.UsageError("There is no terminal here; `muster logs -f` prints what it writes.")
    return _seated(call, call.client.job(one_job(call.client, job)))


def _with_terminal(document: SubmitDocument) -> SubmitDocument:
    size = terminal_size(sys.stdout.fileno())
    return replace(document, terminal=(size.lines, size.columns))


def _submitted(call: Call, document: SubmitDocument) -> int:
    made = call.client.submit_document(document)
    for text in made.cautions:
        caution(call, text)
    return made.id


def _started(call: Call, job: int) -> JobDocument | None:
    """The job when it has started, or is over; None when the user would not wait."""
    late = threading.Timer(LONG_ENOUGH_S, _say_why, (call, job))
    late.daemon = True
    late.start()
    try:
        return _when_started(call, job)
    except KeyboardInterrupt:
        call.client.close()  # an answer may be on its way that nobody reads any more
        call.client.cancel([job])
        note(f"job {job} cancelled")
        return None
    finally:
        late.cancel()


def _when_started(call: Call, job: int) -> JobDocument:
    # Events after those that were there before the first look: none can be missed in between.
    seen = call.client.job_events(job).next
    found = call.client.job(job)
    with closing(call.client.events(seen, job=job)) as happening:
        while found.state in NOT_YET:
            next(happening)
            found = call.client.job(job)
    return found


def _say_why(call: Call, job: int) -> None:
    """In a thread of its own, and so with a client of its own."""
    try:
        with closing(call.around.connect()) as client:
            found = client.job(job)
    except MusterError:
        return
    if found.state in NOT_YET:
        why = f": {found.reason.text}" if found.reason is not None else ""
        note(f"job {job} waits{why} (Ctrl-C cancels it)")


def _seated(call: Call, job: JobDocument) -> int:
    if job.state in FINAL:
        return _ended(call, job)
    # Only here: it needs modules that no other command does.
    from muster.doors.cli.screen.terminal import REFUSED as NO_TERMINAL  # noqa: PLC0415
    from muster.doors.cli.screen.terminal import Left, sit_at  # noqa: PLC0415

    with call.client.attach(job.id) as connection:
        left = sit_at(connection, sys.stdin.fileno(), sys.stdout.fileno())
    if connection.close_code == NO_TERMINAL:
        why = connection.close_reason or "there is no terminal"
        found = call.client.job(job.id)
        if found.state in FINAL:
            return _over(call, found)
        complain(call, why)
        return REFUSED
    match left:
        case Left.DETACHED:
            note(f"job {job.id} runs on; come back with: muster attach {job.id}")
            return 0
        case Left.LOST:
            complain(call, f"the connection broke; come back with: muster attach {job.id}")
            return REFUSED
        case Left.OVER:
            return _ended(call, call.client.wait(job.id))


def _over(call: Call, job: JobDocument) -> int:
    """It was over before anybody could sit down: what it wrote is all there is."""
    with suppress(ApiError), closing(call.client.log(job.id)) as parts:
        copy(parts)
    return _ended(call, job)


def _streamed(call: Call, job: JobDocument) -> int:
    with _forwarded(call, job.id), closing(call.client.follow_log(job.id)) as parts:
        copy(parts)
    return _ended(call, call.client.wait(job.id))


@contextmanager
def _forwarded(call: Call, job: int) -> Generator[None]:
    """Ctrl-C interrupts the job; a second one cancels it; a third one leaves."""
    pressed: list[int] = []

    def forward(number: int, _: FrameType | None) -> None:
        pressed.append(number)
        if len(pressed) > 2:
            raise KeyboardInterrupt
        with closing(call.around.connect()) as client:
            if len(pressed) == 1:
                client.signal([job], "INT")
            else:
                client.cancel([job])

    before = signal.signal(signal.SIGINT, forward)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _ended(call: Call, job: JobDocument) -> int:
    if job.state != "completed":
        complain(call, end_text(job))
    return exit_code(job)
