"""Routes about why jobs are slow, and what became of GPUs."""

from muster.api.diagnosis import EfficiencyDocument, FindingPage, FleetDocument, TimelineDocument
from muster.controller.queries.diagnosis import MOST_STEPS, ReportQuery
from muster.doors.request.bad import BadRequestError
from muster.doors.rest.operation import Asked, Operation, Parameter
from muster.doors.rest.show_diagnosis import (
    BY,
    efficiency_document,
    finding_document,
    fleet_document,
    timeline_document,
)
from muster.doors.rest.show_site import named_in
from muster.model.value import QueuePath, UserName

MOST_SHOWN = 10_000
USUALLY_SHOWN = 20


async def _efficiency(asked: Asked) -> EfficiencyDocument:
    attempt = asked.number("attempt", 0) or None
    ask = asked.queries.diagnosis.of_job
    return efficiency_document(await asked.read(ask, asked.caller, asked.job, attempt))


async def _timeline(asked: Asked) -> TimelineDocument:
    attempt = asked.number("attempt", 0) or None
    steps = asked.number("steps", MOST_STEPS, least=1, most=1_440)

    def look() -> TimelineDocument:
        found = asked.queries.diagnosis.timeline(asked.caller, asked.job, attempt, steps=steps)
        return timeline_document(found, asked.queries.jobs.labels.found(named_in(found.events)))

    return await asked.read(look)


async def _findings(asked: Asked) -> FindingPage:
    query = _query(asked)

    def look() -> FindingPage:
        found = asked.queries.diagnosis.findings(asked.caller, query)
        return FindingPage(findings=tuple(map(finding_document, found)))

    return await asked.read(look)


async def _report(asked: Asked) -> FleetDocument:
    by = asked.texts("by") or ("pool", "use")
    for each in by:
        if each not in BY:
            raise BadRequestError("by", f"`{each}` must be one of {', '.join(BY)}")
    query, queries, is_rehearsed = _query(asked), asked.queries, asked.flag("rehearse")

    def look() -> FleetDocument:
        jobs = queries.diagnosis.reports(asked.caller, query)
        rows = queries.diagnosis.fleet(asked.caller, query)
        advice = queries.advising.advice(asked.caller, query) if is_rehearsed else ()
        return fleet_document(rows, by, jobs, advice)

    return await (asked.think if is_rehearsed else asked.read)(look)


def _query(asked: Asked) -> ReportQuery:
    queue, user = asked.text("queue"), asked.text("user")
    return ReportQuery(
        queue=None if queue is None else QueuePath(queue),
        user=None if user is None else UserName(user),
        since=asked.instant("since"),
        limit=asked.number("limit", USUALLY_SHOWN, least=1, most=MOST_SHOWN),
    )


_WHOSE = (
    Parameter(name="queue", text="of this queue and those below it"),
    Parameter(name="user", text="of this user"),
    Parameter(name="since", text="of attempts that were not over before then (RFC 3339)"),
    Parameter(name="limit", text="so many of them; 20", kind="integer"),
)

OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/jobs/{id:int}/efficiency",
        summary="See what a job did with its GPUs, and why it is slow",
        costly=True,
        answer=_efficiency,
        gives=EfficiencyDocument,
        parameters=(
            Parameter(name="attempt", text="this attempt; the last one if none", kind="integer"),
        ),
    ),
    Operation(
        method="GET",
        path="/v1/jobs/{id:int}/timeline",
        summary="See what a job measured, met and wrote, on one axis",
        costly=True,
        answer=_timeline,
        gives=TimelineDocument,
        parameters=(
            Parameter(name="attempt", text="this attempt; the last one if none", kind="integer"),
            Parameter(name="steps", text=f"so many at most; {MOST_STEPS}", kind="integer"),
        ),
    ),
    Operation(
        method="GET",
        path="/v1/findings",
        summary="See what costs most of what runs now",
        costly=True,
        answer=_findings,
        gives=FindingPage,
        parameters=_WHOSE,
    ),
    Operation(
        method="GET",
        path="/v1/report",
        summary="See what became of every second of every GPU",
        costly=True,
        answer=_report,
        gives=FleetDocument,
        parameters=(
            Parameter(name="by", text=f"columns: some of {', '.join(BY)}", repeated=True),
            *_WHOSE,
            Parameter(
                name="rehearse",
                text="with one change for each of the dearest rows, as the planner rehearses it",
                kind="boolean",
            ),
        ),
    ),
)
