"""What srun, salloc and sbcast run: as muster_thin, and then they do something here.

They may import what they need, since they wait for something much longer anyway.
"""

import os
import signal
import sys

import muster_thin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(Exception):  # noqa: N818 -- no error: a signal asks us to end
    """A signal came while we waited for the job."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def main(command: str, home: str | None = None) -> None:
    """Use the command as it was called; ends the process."""
    try:
        code = use(command, sys.argv[1:], home)
    except BrokenPipeError:
        code = 141
    # As in muster_thin: nothing is left to clean up.
    os._exit(code)


def use(command: str, argv: list[str], home: str | None) -> int:
    """Ask until the job is there; what ends us before gives the job up."""
    if os.environ.get("MUSTER_URL", "").startswith("http"):
        return far_away(command)
    call = muster_thin.call_of(command, argv)
    for number in ENDING:
        signal.signal(number, interrupt)
    while True:
        try:
            reply = answer(command, call, home)
        except OSError as error:
            return muster_thin.unreachable(command, error)
        muster_thin.write(2, reply["err"])
        muster_thin.write(1, reply["out"])
        then = reply["then"]
        if then is None:
            return reply["code"]
        code = go_on(command, call, then)
        if code is not None:
            return code


def answer(command: str, call: "dict[str, Any]", home: str | None) -> "dict[str, Any]":
    """Without interruption: a job that is submitted must be known here."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    return muster_thin.ask(command, call, home)


def go_on(command: str, call: "dict[str, Any]", then: "dict[str, Any]") -> int | None:
    """Do what the server wants done here; a number ends the command with it."""
    kind = then["type"]
    if kind == "step":
        import muster_srun  # noqa: PLC0415 -- not while the job waits

        return muster_srun.run(then)
    if kind == "hold":
        import muster_salloc  # noqa: PLC0415 -- the same

        return muster_salloc.run(then)
    if kind == "copy":
        import muster_copy  # noqa: PLC0415 -- the same

        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        return muster_copy.run(then)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        code = muster_thin.go_on(command, call, then)
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    except Ended as ended:
        name = signal.Signals(ended.number).name
        call["memo"] = dict(then.get("memo", {}), cancel=name)
        return None if "job" in call["memo"] else 128 + ended.number
    return code


def far_away(command: str) -> int:
    text = ": error: steps can only be started on the machine of the job; unset MUSTER_URL there\n"
    muster_thin.show(2, command + text)
    return 1


def interrupt(number: int, _frame: object) -> None:
    # Once is enough: what follows is not to be disturbed.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    raise Ended(number)
