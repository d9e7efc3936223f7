"""Routes about jobs: submit, list, show, change."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future

from muster.api.jobs import (
    ExplanationDocument,
    JobDocument,
    JobPage,
    LinePage,
    ManyDocument,
    UpdateDocument,
)
from muster.api.pages import ActionDocument, SignalDocument
from muster.api.requests import SubmitDocument, SubmittedDocument
from muster.controller.messages import Outcome, Receipt
from muster.controller.rights import not_yours
from muster.doors.request.bad import MOST_INTEGER, BadRequestError, bounded, read
from muster.doors.request.parse import request_key_of
from muster.doors.rest.listing import EncodedLines, EncodedPage, lines_of, page_of
from muster.doors.rest.operation import Asked, Operation, Parameter, done
from muster.doors.rest.show_jobs import detail_document, explanation_document
from muster.doors.rest.updates import change_of
from muster.doors.rest.wanted import wanted_of
from muster.doors.units import signal_number
from muster.model.cluster import Node
from muster.model.errors import ForbiddenError, RefusedError
from muster.model.site import Role
from muster.model.value import JobId, NodeId, Value

MOST_AT_ONCE = 100_000
"""So many jobs may one request name: as many as an array may have."""


NO_NODES: Mapping[NodeId, Node] = {}


class NotDone(Value, tag="not_done", gc=False):
    """The one job that a request named could not be changed."""

    job: JobId


async def _submit(asked: Asked) -> SubmittedDocument:
    want = await wanted_of(asked, asked.document)
    key = request_key_of(asked.document.request_key)

    def submit() -> "Future[Receipt]":
        return asked.service.submit(
            asked.caller,
            want.spec,
            indices=want.indices,
            at_once=want.at_once,
            held=want.held,
            request_key=key,
        )

    # How jobs came out that this one follows may have to be read from the database.
    future = await asked.read(submit) if want.spec.after else submit()
    receipt = await done(future)
    return SubmittedDocument(
        id=receipt.jobs[0],
        ids=receipt.jobs,
        cautions=(*want.warnings, *(each.advice for each in receipt.cautions)),
    )


async def _list(asked: Asked) -> JobPage | EncodedPage:
    return await page_of(asked)


async def _lines(asked: Asked) -> EncodedLines:
    return await lines_of(asked)


async def _show(asked: Asked) -> JobDocument:
    return await asked.read(_shown, asked)


def _shown(asked: Asked) -> JobDocument:
    detail = asked.queries.jobs.detail(asked.caller, asked.job)
    # Of a job that goes on, the view knows whether its nodes are pretend.
    nodes = asked.queries.nodes.all() if detail.view.ended_at is not None else NO_NODES
    prospect = asked.queries.plan.prospect(detail.view.job)
    return detail_document(detail, asked.door.clock(), nodes, prospect)


async def _update(asked: Asked) -> JobDocument:
    change = change_of(asked.document, asked.door.clock())
    await done(asked.service.update(asked.caller, asked.job, change))
    return await _show(asked)


async def _explain(asked: Asked) -> ExplanationDocument:
    explanation = await asked.think(asked.queries.plan.explain, asked.caller, asked.job)
    detail = await asked.read(asked.queries.jobs.detail, asked.caller, asked.job)
    prospect = await asked.think(asked.queries.plan.prospect, detail.view.job)
    priority = None if prospect is None else prospect.priority
    return explanation_document(explanation, detail.view.job.state.value, priority)


async def _act_on_many(asked: Asked) -> ManyDocument:
    document: ActionDocument = asked.document
    if document.action not in ACTIONS:
        known = ", ".join(f"`{each}`" for each in ACTIONS)
        raise BadRequestError("action", f"`{document.action}` must be one of {known}")
    if len(document.ids) > MOST_AT_ONCE:
        raise BadRequestError("ids", f"name {MOST_AT_ONCE} jobs at most in one request")
    jobs = tuple(
        JobId(bounded("ids", each, 1, MOST_INTEGER)) for each in dict.fromkeys(document.ids)
    )
    outcome = await _acted(asked, document.action, jobs, document.signal)
    return ManyDocument(
        done=outcome.done, failed={str(job): why.sentence for job, why in outcome.failed.items()}
    )


def _act_on_one(action: str) -> Callable[[Asked], Awaitable[JobDocument]]:
    async def act(asked: Asked) -> JobDocument:
        document = asked.document
        signal = document.signal if isinstance(document, SignalDocument) else None
        outcome = await _acted(asked, action, (asked.job,), signal)
        for job, why in outcome.failed.items():
            # Another user's job is forbidden also when it has ended; one that never was is unknown.
            detail = await asked.read(asked.queries.jobs.detail, asked.caller, job)
            if not asked.queries.jobs.may_see(asked.caller, detail.view.job):
                site = asked.queries.site()
                raise ForbiddenError(not_yours(asked.caller, site, detail.view.job, f"{action} it"))
            raise RefusedError(NotDone(job=job), why.sentence)
        return await _show(asked)

    return act


async def _acted(asked: Asked, action: str, jobs: Sequence[JobId], signal: str | None) -> Outcome:
    named, service = tuple(jobs), asked.service
    if action == "signal":
        if signal is None:
            raise BadRequestError("signal", "name the signal, such as `USR1`")
        number = read("signal", signal_number, signal)
        return await done(service.signal(asked.caller, named, number))
    moves = {
        "cancel": service.cancel,
        "hold": service.hold,
        "release": service.release,
        "requeue": service.requeue,
        "suspend": service.suspend,
        "resume": service.resume,
    }
    return await done(moves[action](asked.caller, named))


ACTIONS = {
    "cancel": "End a job",
    "hold": "Keep a waiting job from starting",
    "release": "Let a held job start again",
    "requeue": "Send a job back to wait for another attempt",
    "suspend": "Stop a job where it is",
    "resume": "Let a suspended job go on",
    "signal": "Send a signal to a job",
}

FILTERS = (
    Parameter(name="user", text="jobs of this user", repeated=True),
    Parameter(name="queue", text="jobs of this queue and those below it", repeated=True),
    Parameter(name="state", text="jobs in this state", repeated=True),
    Parameter(name="node", text="jobs on this node", repeated=True),
    Parameter(name="id", text="these jobs", kind="integer", repeated=True),
    Parameter(name="array", text="jobs of this array", kind="integer", repeated=True),
    Parameter(name="name", text="jobs of this name"),
    Parameter(name="ended", text="look among jobs that are over as well", kind="boolean"),
    Parameter(name="ended_from", text="only jobs that ended then or later (RFC 3339)"),
    Parameter(name="ended_to", text="only jobs that ended before then (RFC 3339)"),
    Parameter(name="limit", text="so many jobs on a page", kind="integer"),
    Parameter(name="after", text="the `next` of the page before"),
)

OPERATIONS = (
    Operation(
        method="POST",
        path="/v1/jobs",
        summary="Have something run",
        needs=Role.USER,
        answer=_submit,
        takes=SubmitDocument,
        gives=SubmittedDocument,
        status=201,
    ),
    Operation(
        method="GET",
        path="/v1/jobs",
        summary="List jobs",
        costly=True,
        answer=_list,
        gives=JobPage,
        parameters=FILTERS,
    ),
    Operation(
        method="GET",
        path="/v1/jobs/lines",
        summary="List live jobs in short lines",
        costly=True,
        answer=_lines,
        gives=LinePage,
        parameters=FILTERS,
    ),
    Operation(
        method="GET",
        path="/v1/jobs/{id:int}",
        summary="Show a job",
        answer=_show,
        gives=JobDocument,
    ),
    Operation(
        method="PATCH",
        path="/v1/jobs/{id:int}",
        summary="Change what a job asks for",
        needs=Role.USER,
        answer=_update,
        takes=UpdateDocument,
        gives=JobDocument,
    ),
    Operation(
        method="DELETE",
        path="/v1/jobs/{id:int}",
        summary="End a job",
        needs=Role.USER,
        answer=_act_on_one("cancel"),
        gives=JobDocument,
    ),
    Operation(
        method="POST",
        path="/v1/jobs/actions",
        summary="Do the same to many jobs",
        needs=Role.USER,
        answer=_act_on_many,
        takes=ActionDocument,
        gives=ManyDocument,
    ),
    Operation(
        method="GET",
        path="/v1/jobs/{id:int}/explanation",
        summary="Explain why a job waits, who is in its way, and what would help",
        answer=_explain,
        gives=ExplanationDocument,
    ),
    *(
        Operation(
            method="POST",
            path=f"/v1/jobs/{{id:int}}/{action}",
            summary=summary,
            answer=_act_on_one(action),
            takes=SignalDocument if action == "signal" else None,
            gives=JobDocument,
            needs=Role.USER,
        )
        for action, summary in ACTIONS.items()
    ),
)
