"""The route of the Slurm commands: one request for each use of a command."""

from muster.doors.rest.operation import Asked, Operation
from muster.doors.slurm.answering import answered
from muster.doors.slurm.call import Call, Door, Reply
from muster.doors.slurm.fleet import Memory
from muster.doors.slurm.traffic import Traffic
from muster.model.value import replace

_MEMORY = Memory()
"""Of nodes, by which object they are: several servers in one process do not disturb each other."""

_TRAFFIC = Traffic()


async def _command(asked: Asked) -> Reply:
    caller = replace(asked.caller, door="slurm")
    door = Door(
        service=asked.service,
        caller=caller,
        now=asked.door.clock(),
        memory=_MEMORY,
        traffic=_TRAFFIC,
    )
    return await asked.read(answered, asked.path["command"], asked.document, door)


OPERATIONS = (
    Operation(
        method="POST",
        path="/v1/slurm/{command}",
        summary="Use one of Slurm's commands",
        answer=_command,
        takes=Call,
        gives=Reply,
    ),
)
