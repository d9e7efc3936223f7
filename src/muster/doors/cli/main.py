"""Where the `muster` command begins and ends: errors become messages and exit codes here.

0 done, 1 refused or failed, 2 wrong usage, 3 nobody answers, 4 not found, 5 forbidden,
130 interrupted, 141 nobody reads any more.
"""

import gc
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from muster.doors.cli.daemon.port import Daemon
from muster.doors.cli.group import LazyGroup
from muster.doors.cli.options import colour_option
from muster.doors.cli.screen.screen import screen_of
from muster.doors.cli.surroundings import Call, Surroundings
from muster.model.errors import MusterError, UnknownError

if TYPE_CHECKING:
    from muster.client.calls import Client

REFUSED, USAGE, UNREACHABLE, NOT_FOUND, FORBIDDEN = 1, 2, 3, 4, 5
INTERRUPTED, NOBODY_READS = 130, 141

COMPLETE_VARIABLE = "_MUSTER_COMPLETE"


def main(argv: Sequence[str], *, daemon: Daemon, surroundings: Surroundings | None = None) -> int:
    """Run one command and return its exit code. Nothing is raised that a user should not see."""
    # A command is short, and collecting would look at every job of a long list again and again.
    gc.disable()
    call = Call(daemon, surroundings or real_surroundings())
    try:
        if instruction := call.around.environ.get(COMPLETE_VARIABLE):
            return _completed(call, instruction)
        return _run(list(argv), call)
    except BrokenPipeError:
        return _without_reader()
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    finally:
        call.close()


def real_surroundings() -> Surroundings:
    """The process's own."""
    return Surroundings(
        connect=_connected,
        now=lambda: datetime.now(UTC).astimezone(),
        screen=screen_of(sys.stdout, os.environ),
        environ=os.environ,
        workdir=_workdir(),
    )


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Help on one command: muster COMMAND --help",
)
@click.version_option(package_name="muster-gpu", message="muster %(version)s")
@colour_option
def muster() -> None:
    """Share a fleet of GPUs: hand in jobs, see why they wait, steer them.

    Talks to the Muster of this machine, or to the one at MUSTER_URL with the key in MUSTER_TOKEN.
    """


def _run(argv: list[str], call: Call) -> int:
    try:
        with muster.make_context("muster", argv, obj=call) as context:
            outcome = muster.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as wrong:
        wrong.show()
        return wrong.exit_code
    except MusterError as error:
        return _failed(call, error)
    return outcome if isinstance(outcome, int) else 0


def _failed(call: Call, error: MusterError) -> int:
    from muster.client.errors import ApiError, UnreachableError  # noqa: PLC0415  only on failure
    from muster.doors.cli.screen.printing import complain  # noqa: PLC0415  the same

    if isinstance(error, ApiError):
        where = error.problem.where
        pointed = where is not None and where not in error.problem.text
        complain(call, f"{where}: {error.problem.text}" if pointed else error.problem.text)
        return {404: NOT_FOUND, 401: FORBIDDEN, 403: FORBIDDEN}.get(error.status, REFUSED)
    complain(call, str(error))
    if isinstance(error, UnknownError):
        return NOT_FOUND
    return UNREACHABLE if isinstance(error, UnreachableError) else REFUSED


def _completed(call: Call, instruction: str) -> int:
    from click.shell_completion import shell_complete  # noqa: PLC0415  only to complete

    return shell_complete(muster, {"obj": call}, "muster", COMPLETE_VARIABLE, instruction)


def _without_reader() -> int:
    """What is still buffered would raise again when the interpreter ends; nobody would read it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return NOBODY_READS


def _connected() -> "Client":
    from muster.client.calls import Client  # noqa: PLC0415  many calls need no server

    return Client(door="cli")


def _workdir() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "/"
