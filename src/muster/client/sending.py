"""From a job as its user writes it to the document that the server is sent."""

import os
import os.path
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from muster.api.requests import JobFile, JobRequest, SubmitDocument
from muster.model.value import Value

SECRETS = frozenset({"MUSTER_TOKEN"})
"""The key to the server is nothing that a job should find, or that should be kept with it."""


class Origin(Value):
    """Where a job is submitted: what it does not say is taken from here."""

    workdir: str
    environ: Mapping[str, str]
    umask: int | None
    zone: tzinfo | None = None


def here() -> Origin:
    """This process: its folder, its variables, its umask, and the clock of this machine."""
    mask = os.umask(0o077)  # it can only be read by setting it
    os.umask(mask)
    return Origin(
        workdir=os.getcwd(),
        environ=os.environ,
        umask=mask,
        zone=datetime.now(UTC).astimezone().tzinfo,
    )


def sent(job: JobFile, origin: Origin) -> SubmitDocument:
    """The whole document. What neither says is the server's to choose."""
    same: dict[str, Any] = {name: getattr(job, name) for name in JobRequest.__struct_fields__}
    changed: dict[str, Any] = {
        "workdir": os.path.normpath(os.path.join(origin.workdir, job.workdir or ".")),
        "umask": origin.umask if job.umask is None else job.umask,
        "begin": zoned(job.begin, origin.zone),
        "deadline": zoned(job.deadline, origin.zone),
    }
    return SubmitDocument(
        **(same | changed),
        command=job.command,
        script=job.script,
        env=environment(job, origin.environ),
    )


def environment(job: JobFile, around: Mapping[str, str]) -> dict[str, str]:
    """The variables that the job finds: those around, or only some, and those that are set.

    What cannot be written as text is left out.
    """
    names = around if job.env_only is None else job.env_only
    found = {name: around[name] for name in names if name in around and name not in SECRETS}
    for name, value in job.env.items():
        if value is not None:
            found[name] = value
        elif name in around:
            found[name] = around[name]
    return {name: value for name, value in found.items() if _is_text(name + value)}


def zoned(text: str | None, zone: tzinfo | None) -> str | None:
    """A date without a zone is meant on the user's clock; the server may have another."""
    if text is None:
        return None
    try:
        there = datetime.fromisoformat(text.strip())
    except ValueError:
        return text  # `now+2h`, or a mistake that the server can name
    return text if there.tzinfo else there.replace(tzinfo=zone).isoformat()


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
