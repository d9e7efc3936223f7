"""What a submission comes to, be it written in our words or in those of sbatch."""

import re

from muster.api.requests import SubmitDocument
from muster.doors.request.bad import BadRequestError
from muster.doors.request.dependencies import Meant
from muster.doors.request.parse import Submitter, Wanted, wanted
from muster.doors.rest.operation import Asked
from muster.doors.slurm.call import Call, Door, Script
from muster.doors.slurm.commands import sbatch
from muster.doors.slurm.lists.filters import parts_of
from muster.doors.slurm.words.errors import SlurmError
from muster.model.launch import Terminal
from muster.model.value import JobId, QueuePath, replace

_PREFIX = re.compile(r"^(?:sbatch: (?:error: |fatal: )?)?(?:Batch job submission failed: )?")


async def wanted_of(asked: Asked, document: SubmitDocument) -> Wanted:
    """The submission as values; BadRequestError says in plain words what cannot be read."""
    if document.sbatch is not None:
        return await asked.read(_by_sbatch, asked, document, document.sbatch)
    if document.after:
        # Jobs that are over may have to be read from the database.
        return await asked.read(wanted, document, submitter(asked))
    return wanted(document, submitter(asked))


def submitter(asked: Asked) -> Submitter:
    """Who submits: to the queue of their own, of their token, or of everybody."""
    site = asked.queries.site()
    user = site.users.get(asked.caller.user)
    token = asked.caller.token
    own = (user and user.default_queue) or site.default_queue
    queue = token.queue if token is not None and token.queue is not None else own
    return Submitter(
        user=asked.caller.user,
        queue=QueuePath(queue),
        now=asked.door.clock(),
        meant=_meant(slurm_door(asked)),
    )


def slurm_door(asked: Asked) -> Door:
    """The door of Slurm's commands, for the same caller."""
    return Door(
        service=asked.service,
        caller=replace(asked.caller, door="slurm"),
        now=asked.door.clock(),
        cache=asked.door.slurm_cache,
        traffic=asked.door.slurm_traffic,
    )


def _meant(door: Door) -> Meant:
    def meant(job: int, index: int | None) -> dict[JobId, int | None]:
        return parts_of(door, job, index)

    return meant


def _by_sbatch(asked: Asked, document: SubmitDocument, words: tuple[str, ...]) -> Wanted:
    call = Call(
        argv=words,
        cwd=document.workdir or "/",
        env=document.env,
        script=Script(text=document.script or ""),
        umask=0o022 if document.umask is None else document.umask,
    )
    try:
        want = sbatch.asked(call, slurm_door(asked))
    except SlurmError as no:
        raise BadRequestError("", _plain(no)) from no
    if document.terminal is None:
        return want
    rows, columns = document.terminal
    launch = replace(want.spec.launch, terminal=Terminal(rows=rows, columns=columns))
    return replace(want, spec=replace(want.spec, launch=launch))


def _plain(error: SlurmError) -> str:
    """Without the command before each line, and without the advice to ask it for help."""
    lines = (_PREFIX.sub("", line) for line in error.lines if not line.startswith("Try "))
    return "; ".join(line.strip().rstrip(".") for line in lines if line.strip())
