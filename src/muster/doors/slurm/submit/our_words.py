"""What a Slurm job asks for that Slurm has no word for: `#MUSTER` lines and `--muster=spot=only`.

Both take the options of `muster submit`, and win over the options of Slurm that mean the same.
"""

from typing import Any

import click

from muster.api.requests import JobFile
from muster.client.sending import Origin, sent
from muster.doors.request.bad import BadRequestError
from muster.doors.request.dependencies import Meant
from muster.doors.request.lines import directives, parsed
from muster.doors.request.options import layered
from muster.doors.request.overlay import OF_GPUS, overlaid
from muster.doors.request.parse import Submitter, Wanted
from muster.doors.request.parse import wanted as read_request
from muster.doors.slurm.submit.fleet import Machines
from muster.doors.slurm.submit.request import Request
from muster.doors.slurm.words.errors import failed
from muster.model.value import Instant, PoolName, QueuePath, UserName, Value

OPTION = "muster"
ANYTHING = ("true",)
"""Stands for what the job runs, of which Slurm's own words tell."""


class World(Value):
    """What a request is read against.

    meant: which jobs an id stands for. default: the partition of jobs that name none.
    has_usual_limit: do jobs without a time limit get one?
    """

    machines: Machines
    user: UserName
    now: Instant
    meant: Meant
    partitions: frozenset[PoolName]
    default: PoolName | None = None
    accounts: frozenset[QueuePath] = frozenset()
    has_usual_limit: bool = False


def in_our_words(job: Wanted, request: Request, script: str, world: World) -> Wanted:
    """The job, with what it asks for in our words; SlurmError for what cannot be read."""
    try:
        fields = _said(request, script)
        if not fields:
            return job
        by = Submitter(user=world.user, queue=QueuePath(""), now=world.now, meant=world.meant)
        return overlaid(job, read_request(sent(_job(fields), _origin(request)), by), fields)
    except click.UsageError as wrong:
        raise failed(request.command, wrong.format_message()) from wrong
    except BadRequestError as wrong:
        raise failed(request.command, f"--{OPTION}: {wrong}") from wrong


def _said(request: Request, script: str) -> dict[str, Any]:
    """The lines of the script first, the options of the command over them."""
    name = request.given.rest[0] if request.given.rest else request.command
    typed = [_option(request, text) for text in request.given.values(OPTION)]
    fields = layered(directives(script, name), *typed)
    if "env_only" in fields:
        raise failed(request.command, f"--{OPTION}=env-only: use --export")
    return fields


def _option(request: Request, text: str) -> dict[str, Any]:
    try:
        return parsed([f"--{text.removeprefix('--')}"])
    except click.UsageError as wrong:
        raise failed(request.command, f"--{OPTION}={text}: {wrong.format_message()}") from wrong


def _job(fields: dict[str, Any]) -> JobFile:
    """Which GPUs may be said where Slurm's words say how many; which variables, --export says."""
    some = {} if fields.keys().isdisjoint(OF_GPUS) else {"gpus": 1}
    said: dict[str, Any] = {**some, **fields, "command": ANYTHING, "env_only": ()}
    return JobFile(**said)


def _origin(request: Request) -> Origin:
    call = request.call
    return Origin(workdir=call.cwd, environ=call.env, umask=call.umask, zone=call.zone)
