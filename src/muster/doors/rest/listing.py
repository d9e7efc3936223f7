"""Pages of jobs: those that live, from memory, and after them those that are over."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Set
from typing import Final

import msgspec
from msgspec import Raw

from muster.api.jobs import JobLine, JobPage
from muster.controller.messages import JobQuery, JobsPage, JobView
from muster.doors.line_cache import LineCache
from muster.doors.request.bad import integer
from muster.doors.request.parse import chosen
from muster.doors.rest.operation import Asked
from muster.doors.rest.show_jobs import job_document, job_line, with_attempts
from muster.doors.rest.words import end_names
from muster.model.history import Attempt
from muster.model.job import FINAL, JobState
from muster.model.plan import Backlog, Prospect
from muster.model.value import Instant, JobId, NodeId, QueuePath, UserName, Value, replace
from muster.stores.base import HistoryQuery

MOST_ON_A_PAGE = 20_000
SHORT = 200
"""A page of so many jobs is looked up at once."""

AT_ONCE = 32
"""So many documents are made in one go, in a millisecond or two: others are answered in between."""

MOST_OF_HISTORY = 1_000
"""So many ended jobs are read at once: they come from the database."""

ENDED = "ended:"
"""How the `after` of a page begins that goes on among the ended jobs."""

Show = Callable[[JobView, Instant, Prospect | None], Value]

NO_BACKLOG: Backlog = {}

LIST_PATIENCE_S = 0.05
"""So long a list waits for the expected starts by the last plan; else it has earlier ones."""

encode: Final = msgspec.json.Encoder().encode


class EncodedPage(Value):
    """A `JobPage` whose jobs are already encoded."""

    jobs: tuple[Raw, ...]
    next: str | None = None


class EncodedLines(Value):
    """A `LinePage` whose lines are already encoded."""

    lines: tuple[Raw, ...]
    next: str | None = None


async def page_of(asked: Asked) -> JobPage | EncodedPage:
    """The page that the parameters ask for."""
    query = _live_query(asked)
    after = asked.text("after")
    if after is not None and after.startswith(ENDED):
        return await _ended(asked, query, after.removeprefix(ENDED) or None)
    if not _wants_live(asked, query):
        return await _ended(asked, query, None)
    if after is not None:
        query = replace(query, after=JobId(integer("after", after)))
    page = await _jobs_page(asked, query)
    backlog = await asked.read(asked.queries.plan.backlog, LIST_PATIENCE_S)
    jobs = await _encoded(page.jobs, asked, job_document, backlog)
    if page.next is not None:
        return EncodedPage(jobs=jobs, next=str(page.next))
    if not _wants_ended(asked, query):
        return EncodedPage(jobs=jobs)
    if len(jobs) >= query.limit:
        return EncodedPage(jobs=jobs, next=ENDED)
    wanted = not_among(query, {view.job.id for view in page.jobs})
    if wanted is None:
        return EncodedPage(jobs=jobs)
    rest = await _ended(asked, wanted, None)
    over = tuple(Raw(encode(each)) for each in rest.jobs)
    return EncodedPage(jobs=jobs + over, next=rest.next)


def not_among(query: JobQuery, found: Set[JobId]) -> JobQuery | None:
    """What is left to ask for when these were found; None: nothing.

    Who names jobs gets each once: one that has just ended does not take the place of another.
    """
    left = tuple(each for each in query.jobs if each not in found)
    if query.jobs and not left:
        return None
    return replace(query, jobs=left, limit=query.limit - len(found))


async def lines_of(asked: Asked) -> EncodedLines:
    """The same of live jobs, in short lines."""
    query, after = _live_query(asked), asked.text("after")
    if after is not None:
        query = replace(query, after=JobId(integer("after", after)))
    page = await _jobs_page(asked, query)
    lines = await _encoded(page.jobs, asked, _line, NO_BACKLOG)
    return EncodedLines(lines=lines, next=None if page.next is None else str(page.next))


async def _jobs_page(asked: Asked, query: JobQuery) -> JobsPage:
    """A short page at once; a long one while others are answered."""
    if query.limit <= SHORT and not asked.query.keys() - {"limit", "after", "id"}:
        return asked.queries.jobs.page(asked.caller, query)
    return await asked.read(asked.queries.jobs.page, asked.caller, query)


def _live_query(asked: Asked) -> JobQuery:
    return JobQuery(
        jobs=tuple(JobId(each) for each in asked.numbers("id")),
        arrays=tuple(JobId(each) for each in asked.numbers("array")),
        users=tuple(UserName(each) for each in asked.texts("user")),
        queues=tuple(QueuePath(each) for each in asked.texts("queue")),
        nodes=tuple(NodeId(each) for each in asked.texts("node")),
        states=tuple(chosen("state", JobState, each) for each in asked.texts("state")),
        name=asked.text("name"),
        limit=asked.number("limit", 1_000, least=1, most=MOST_ON_A_PAGE),
    )


def _wants_live(asked: Asked, query: JobQuery) -> bool:
    if asked.text("ended_from") or asked.text("ended_to"):
        return False
    return not query.states or not FINAL.issuperset(query.states)


def _wants_ended(asked: Asked, query: JobQuery) -> bool:
    if not asked.flag("ended"):
        return False
    return not query.states or not FINAL.isdisjoint(query.states)


def _line(view: JobView, now: Instant, _: Prospect | None) -> JobLine:
    return job_line(view, now)


async def _encoded(
    views: tuple[JobView, ...], asked: Asked, show: Show, backlog: Backlog
) -> tuple[Raw, ...]:
    now, cache = asked.door.clock(), asked.door.lines.of(show)
    cache.forget_ended(asked.queries.jobs.is_live)
    made: list[Raw] = []
    for begin in range(0, len(views), AT_ONCE):
        if begin:
            await asyncio.sleep(0)
        some = views[begin : begin + AT_ONCE]
        made.extend(encoded(some, now, show, backlog, cache))
    return tuple(made)


def encoded(
    views: Iterable[JobView], now: Instant, show: Show, backlog: Backlog, cache: LineCache[Raw]
) -> Iterator[Raw]:
    """Each job as `show` has it, in JSON; from the cache, if it is known there."""
    prospect_of, known_line = backlog.get, cache.get
    for view in views:
        prospect = prospect_of(view.job.id)
        expected = None if prospect is None else prospect.date or prospect.expected
        line = known_line(view, expected)
        if line is None:
            wait = view.wait
            line = Raw(encode(show(view, now, None if wait is None else prospect)))
            if wait is None or not wait.why.facts.dated:
                cache.put(view, line, expected)
        yield line


async def _ended(asked: Asked, query: JobQuery, after: str | None) -> JobPage:
    history = HistoryQuery(
        jobs=query.jobs,
        arrays=query.arrays,
        users=query.users,
        queues=query.queues,
        nodes=query.nodes,
        states=query.states,
        name=query.name,
        ended_from=asked.instant("ended_from"),
        ended_to=asked.instant("ended_to"),
        limit=min(query.limit, MOST_OF_HISTORY),
        after=after,
    )
    return await asked.read(_history_page, asked, history)


def _history_page(asked: Asked, query: HistoryQuery) -> JobPage:
    page = asked.queries.history.jobs(asked.caller, query)
    now, nodes = asked.door.clock(), asked.queries.nodes.all()
    past: dict[JobId, list[Attempt]] = defaultdict(list)
    for attempt in asked.queries.history.attempts(
        asked.caller, tuple(each.job.id for each in page.jobs)
    ):
        past[attempt.job].append(attempt)
    named = (name for each in page.jobs for name in end_names(each.job.why))
    labels = asked.queries.jobs.labels.found(named)
    views = (
        JobView(job=each.job, started_at=each.started_at, ended_at=each.ended_at, labels=labels)
        for each in page.jobs
    )
    jobs = tuple(with_attempts(job_document(view, now), past[view.job.id], nodes) for view in views)
    return JobPage(jobs=jobs, next=None if page.next is None else ENDED + page.next)
