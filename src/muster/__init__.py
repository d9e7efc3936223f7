"""Muster shares a fleet of GPUs between teams.

from muster import Client

with Client() as client:
job = client.submit(["python", "train.py"], gpus=4)
print(job.wait().state)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muster.api.requests import GroupDocument, JobFile
    from muster.client.calls import Client
    from muster.client.errors import ApiError, ClientError, LostAnswerError, UnreachableError
    from muster.client.submitting import SubmittedJob
    from muster.doors.request.job_file import BadJobFileError, read_job_file

__version__ = "0.1.0"

__all__ = [
    "ApiError",
    "BadJobFileError",
    "Client",
    "ClientError",
    "GroupDocument",
    "JobFile",
    "LostAnswerError",
    "SubmittedJob",
    "UnreachableError",
    "read_job_file",
]

# Found when first used: `import muster` is quick, and `muster.checkpoint` imports nothing else.
_PLACES = {
    "ApiError": "muster.client.errors",
    "BadJobFileError": "muster.doors.request.job_file",
    "Client": "muster.client.calls",
    "ClientError": "muster.client.errors",
    "GroupDocument": "muster.api.requests",
    "JobFile": "muster.api.requests",
    "LostAnswerError": "muster.client.errors",
    "SubmittedJob": "muster.client.submitting",
    "UnreachableError": "muster.client.errors",
    "read_job_file": "muster.doors.request.job_file",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'muster' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  only when something is asked for

    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_PLACES]
