"""The route of the Slurm commands: one request for each use of a command."""

import msgspec

from muster.doors.request.bad import BadRequestError
from muster.doors.rest.operation import Asked, Content, Operation
from muster.doors.rest.wanted import slurm_door
from muster.doors.slurm.answering import answered
from muster.doors.slurm.call import FORM, Call, Door, Reply

BYTES = "application/octet-stream"


async def _command(asked: Asked) -> Content:
    _demand_form(asked.document)
    body = await asked.read(_reply, asked.path["command"], asked.document, slurm_door(asked))
    return Content(body=body, media=BYTES)


def _demand_form(call: Call) -> None:
    """A command whose client is compiled does not change with the server."""
    if call.form != FORM:
        raise BadRequestError(
            "",
            "this command was installed by another version of Muster; "
            "install the commands again: muster slurm install",
        )


def _reply(command: str, call: Call, door: Door) -> bytes:
    return written(answered(command, call, door))


def written(reply: Reply) -> bytes:
    """A line with the exit code and the sizes of three parts, and then the parts.

    They are what to print on stderr and on stdout, and as JSON what to do then. So a megabyte of
    a listing is neither quoted here nor unquoted there, and a client needs no reader of JSON.
    """
    err = reply.err.encode(errors="surrogateescape")
    out = reply.out.encode(errors="surrogateescape")
    then = b"" if reply.then is None else msgspec.json.encode(reply.then)
    line = f"{reply.code} {len(err)} {len(out)} {len(then)}\n"
    return b"".join((line.encode(), err, out, then))


OPERATIONS = (
    Operation(
        method="POST",
        path="/v1/slurm/{command}",
        summary="Use one of Slurm's commands",
        costly=True,
        answer=_command,
        takes=Call,
        media=BYTES,
    ),
)
