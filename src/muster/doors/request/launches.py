"""What to run: commands, files, signals and checkpoints as people write them."""

from collections.abc import Iterable

from muster.api.requests import SubmitDocument
from muster.doors.request.bad import BadRequestError, bounded, read
from muster.doors.units import duration, signal_number
from muster.model.launch import Checkpointing, Launch, Runs, Terminal, Warn

MOST_LINES = 10_000
"""Rows and columns of a terminal: more has been mistaken for something else."""


def launch_of(document: SubmitDocument) -> Launch:
    """What the job runs; refused is what no operating system could start."""
    if not document.command and document.script is None:
        raise BadRequestError("command", "say what to run: a `command`, or a `script`")
    _check_texts(document)
    return Launch(
        argv=document.command,
        script=document.script,
        image=document.image,
        env=document.env,
        workdir=_workdir(document.workdir),
        runs=Runs.EVERY_TASK if document.every_task else Runs.FIRST_TASK,
        stdin=document.stdin,
        stdout=document.stdout,
        stderr=document.stderr,
        append=document.append,
        umask=None if document.umask is None else bounded("umask", document.umask, 0, 0o777),
        warn=_warn(document.warn),
        checkpoint=_checkpoint(document.checkpoint, document.checkpoint_signal),
        terminal=_terminal(document.terminal),
    )


def _check_texts(document: SubmitDocument) -> None:
    """Texts with a zero inside cannot be handed to a process."""
    files = (document.workdir, document.stdin, document.stdout, document.stderr, document.image)
    _check("command", document.command)
    _check("script", (document.script or "",))
    _check("workdir, stdin, stdout, stderr or image", (each or "" for each in files))
    _check("env", document.env.values())
    for name in document.env:
        if not name or "=" in name or "\0" in name:
            raise BadRequestError("env", f"`{name}` is no name for a variable")
    if document.command and not document.command[0]:
        raise BadRequestError("command", "its first word is empty; name a program")


def _check(where: str, texts: Iterable[str]) -> None:
    if any("\0" in text for text in texts):
        raise BadRequestError(where, "has a character of code zero inside; leave it out")


def _workdir(path: str | None) -> str | None:
    if path is not None and not path.startswith("/"):
        raise BadRequestError("workdir", f"`{path}` is relative; write it from `/` on")
    return path


def _warn(text: str | None) -> Warn | None:
    """`USR1@60`, or `B:USR1@60` for the first process only; a minute ahead by default."""
    if text is None:
        return None
    name, _, lead = text.removeprefix("B:").partition("@")
    return Warn(
        signal=read("warn", signal_number, name),
        lead=read("warn", duration, lead or "60"),
        shell_only=text.startswith("B:"),
    )


def _checkpoint(path: str | None, signal: str | None) -> Checkpointing | None:
    if path is None:
        if signal is not None:
            raise BadRequestError("checkpoint_signal", "name the `checkpoint` that it leads to")
        return None
    number = None if signal is None else read("checkpoint_signal", signal_number, signal)
    return Checkpointing(path=path, signal=number)


def _terminal(size: tuple[int, int] | None) -> Terminal | None:
    if size is None:
        return None
    rows, columns = size
    return Terminal(
        rows=bounded("terminal", rows, 1, MOST_LINES),
        columns=bounded("terminal", columns, 1, MOST_LINES),
    )
