"""Submitting from Python: what may be submitted, and the job that comes of it."""

import codecs
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from muster.api.jobs import ExplanationDocument, JobDocument
from muster.api.requests import JobFile, SubmittedDocument
from muster.client.errors import ClientError

if TYPE_CHECKING:
    from muster.client.calls import Client
    from muster.client.wire import Stream

P = ParamSpec("P")
C = TypeVar("C")
W = TypeVar("W")
T = TypeVar("T")

Work = Sequence[str] | JobFile
"""A command as words, the text of a script, or a job file that was read."""


SHELL = "#!/bin/sh\n"


def with_keywords_of(
    document: Callable[P, JobFile],
) -> Callable[[Callable[[C, W, Mapping[str, Any]], T]], Callable[Concatenate[C, W, P], T]]:
    """Let a method take the fields of a document as keywords, which type checkers know."""

    def wrap(method: Callable[[C, W, Mapping[str, Any]], T]) -> Callable[Concatenate[C, W, P], T]:
        @wraps(method)
        def called(self: C, work: W, *_: P.args, **keywords: P.kwargs) -> T:
            return method(self, work, keywords)

        own = list(inspect.signature(method).parameters.values())[:2]
        fields = [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for each in inspect.signature(document).parameters.values()
        ]
        # For help() and for shells that complete.
        called.__signature__ = inspect.Signature([*own, *fields])  # pyright: ignore[reportAttributeAccessIssue]
        return called

    return wrap


def asked_for(work: Work, asked: Mapping[str, Any]) -> JobFile:
    """The job that these words and keywords describe."""
    fields: dict[str, Any] = dict(asked)
    if isinstance(work, JobFile):
        said = {name: getattr(work, name) for name in work.__struct_fields__}
        return JobFile(**(said | fields))
    if "script" in asked or ("command" in asked and not isinstance(work, str)):
        raise TypeError("say once what to run: as the first argument, or in a job file")
    if isinstance(work, str):
        fields["script"] = work if work.startswith("#!") else f"{SHELL}{work}\n"
    else:
        fields["command"] = tuple(work)
    return JobFile(**fields)


class SubmittedJob:
    """A job that was submitted, or all jobs of an array.

    id: of the job, or of the first one of the array. ids: of all of them.
    cautions: what the server has to say about the request, for people.
    """

    def __init__(self, client: "Client", submitted: SubmittedDocument) -> None:
        self._client = client
        self.id = submitted.id
        self.ids = submitted.ids
        self.cautions = submitted.cautions

    def __repr__(self) -> str:
        many = f" and {len(self.ids) - 1} more" if len(self.ids) > 1 else ""
        return f"<job {self.id}{many}>"

    @property
    def state(self) -> str:
        """Where it is now: `pending`, `running`, `completed` ..."""
        return self.show().state

    @property
    def parts(self) -> "tuple[SubmittedJob, ...]":
        """The jobs of an array, one by one; the job alone if it is none."""
        each = (SubmittedDocument(id=job, ids=(job,)) for job in self.ids)
        return tuple(SubmittedJob(self._client, one) for one in each)

    def show(self) -> JobDocument:
        """Everything about it, as it is now."""
        return self._client.job(self.id)

    def wait(self) -> JobDocument:
        """The job when it is over: of an array, the first one that did not complete, if any."""
        ended = [self._client.wait(job) for job in self.ids]
        return next((job for job in ended if job.state != "completed"), ended[0])

    def logs(self, *, stderr: bool = False) -> str:
        """What it wrote so far."""
        with closing(self._client.log(self.id, stderr=stderr)) as parts:
            return b"".join(parts).decode(errors="replace")

    def follow(self, *, stderr: bool = False) -> Iterator[str]:
        """What it writes, as it writes it, until it is over."""
        with closing(self._client.follow_log(self.id, stderr=stderr)) as parts:
            yield from _texts(parts)

    def explain(self) -> ExplanationDocument:
        """Why it waits, who is in its way, and what would help."""
        return self._client.explain(self.id)

    def cancel(self) -> None:
        """End it; what is already over stays as it is."""
        outcome = self._client.cancel(self.ids)
        left = [job for job in map(int, outcome.failed) if not self._is_over(job)]
        if left:
            raise ClientError(outcome.failed[str(left[0])])

    def _is_over(self, job: int) -> bool:
        return self._client.job(job).ended_at is not None


def _texts(parts: "Stream") -> Iterator[str]:
    """Text as it comes; a letter of several bytes may come in two parts."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    for part in parts:
        if text := decoder.decode(part):
            yield text
    if text := decoder.decode(b"", final=True):
        yield text
