"""Questions about the past, as SQL that takes one good index and filters the rest."""

from collections.abc import Iterable, Sequence
from typing import Any

from muster.model.dates import KeptDate
from muster.model.history import Attempt, AuditEntry, Finished
from muster.model.job import JobState
from muster.model.steps import Step
from muster.model.value import Instant, JobId, QueuePath
from muster.stores import bodies
from muster.stores.base import EndedBy, EndedPage, EventQuery, HistoryQuery, Stored
from muster.stores.marks import mark_of, page, size
from muster.stores.specs import ended_from, events_from
from muster.stores.talking import Say, Talk, marks, rows_of

Condition = tuple[str, tuple[Any, ...]]


def finding_ended(query: HistoryQuery) -> Talk[EndedPage]:
    rows = yield ended_question(query)
    found = yield from ended_from(rows)
    return page(query, list(found))


def ended_question(query: HistoryQuery) -> Say:
    """The page that is asked for, and one job more."""
    walks_queue = _walks_queue(query)
    conditions = [*_conditions(query, walks_queue=walks_queue), *_after(query)]
    where = " AND ".join(text for text, _ in conditions) or "1 = 1"
    given = tuple(value for _, values in conditions for value in values)
    source = "history_queues q JOIN history h ON h.id = q.job" if walks_queue else "history h"
    end, job = _order_columns(walks_queue=walks_queue)
    order = f"{end} DESC, {job} DESC" if query.order is EndedBy.END else f"{job} DESC"
    # Only our own words are put together here; every value travels as a parameter.
    sql = f"SELECT h.body, h.spec FROM {source} WHERE {where} ORDER BY {order} LIMIT ?"  # noqa: S608
    return Say(sql=sql, given=(*given, size(query) + 1))


def _walks_queue(query: HistoryQuery) -> bool:
    """Is one queue all that narrows it down? Its jobs are listed in order; others are filtered."""
    narrower = (query.jobs, query.arrays, query.users, query.nodes, query.name)
    return len(query.queues) == 1 and not any(narrower)


def _order_columns(*, walks_queue: bool) -> tuple[str, str]:
    return ("q.ended_at", "q.job") if walks_queue else ("h.ended_at", "h.id")


def _conditions(query: HistoryQuery, *, walks_queue: bool) -> list[Condition]:
    end, _ = _order_columns(walks_queue=walks_queue)
    found = [
        *_among("h.id", query.jobs),
        *_among("h.array_id", query.arrays),
        *_among("h.user_name", query.users),
        *_states(query, walks_queue=walks_queue),
    ]
    if query.name is not None:
        found.append(("h.name = ?", (query.name,)))
    if query.nodes:
        ran_there = f"SELECT job FROM history_nodes WHERE node IN ({marks(len(query.nodes))})"  # noqa: S608 - marks alone
        found.append((f"h.id IN ({ran_there})", query.nodes))
    if walks_queue:
        found.append(("q.queue = ?", query.queues))
    elif query.queues:
        found.append(_within(query.queues))
    if query.ended_from is not None:
        found.append((f"{end} >= ?", (query.ended_from,)))
    if query.ended_to is not None:
        found.append((f"{end} < ?", (query.ended_to,)))
    return found


def _among(column: str, values: Sequence[Any]) -> list[Condition]:
    return [(f"{column} IN ({marks(len(values))})", tuple(values))] if values else []


def _states(query: HistoryQuery, *, walks_queue: bool) -> list[Condition]:
    """Nearly all jobs are in one state: its index is only worth walking for want of another."""
    narrower = (query.jobs, query.arrays, query.users, query.nodes, query.name)
    is_alone = not walks_queue and not any(narrower)
    column = "h.state" if is_alone else "COALESCE(h.state, '')"
    return _among(column, tuple(str(state) for state in query.states))


def _within(queues: tuple[QueuePath, ...]) -> Condition:
    """The queue itself, or what begins with it and a slash: `0` is the letter after the slash."""
    text = " OR ".join("h.queue = ? OR (h.queue >= ? AND h.queue < ?)" for _ in queues)
    given = tuple(bound for queue in queues for bound in (queue, f"{queue}/", f"{queue}0"))
    return f"({text})", given


def _after(query: HistoryQuery) -> list[Condition]:
    mark = mark_of(query)
    if mark is None:
        return []
    end, job = _order_columns(walks_queue=_walks_queue(query))
    if query.order is EndedBy.ID:
        return [(f"{job} < ?", (mark.job,))]
    return [(f"({end}, {job}) < (?, ?)", (mark.ended_at, mark.job))]


def finding_finished(jobs: Iterable[JobId]) -> Talk[dict[JobId, Finished]]:
    sql = "SELECT id, state, started_at, ended_at FROM history WHERE id IN (?)"
    rows = yield from rows_of(sql, dict.fromkeys(jobs))
    return {
        JobId(job): Finished(state=JobState(state), started_at=started_at, ended_at=ended_at)
        for job, state, started_at, ended_at in rows
    }


def finding_attempts(jobs: Iterable[JobId]) -> Talk[tuple[Attempt, ...]]:
    sql = "SELECT body FROM attempts WHERE job IN (?) ORDER BY job, number"
    rows = yield from rows_of(sql, sorted(set(jobs)))
    return tuple(bodies.attempt_from(row[0]) for row in rows)


def finding_steps(jobs: Iterable[JobId]) -> Talk[tuple[Step, ...]]:
    sql = "SELECT body FROM steps WHERE job IN (?) ORDER BY job, attempt, number"
    rows = yield from rows_of(sql, sorted(set(jobs)))
    return tuple(bodies.step_from(row[0]) for row in rows)


def finding_events(query: EventQuery) -> Talk[tuple[Stored, ...]]:
    of_job = "" if query.job is None else "job = ? AND "
    job = () if query.job is None else (query.job,)
    sql = f"SELECT number, body, spec FROM events WHERE {of_job}number > ? ORDER BY number LIMIT ?"  # noqa: S608 - our own words
    rows = yield Say(sql=sql, given=(*job, query.after, max(1, query.limit)))
    events = yield from events_from([row[1:] for row in rows])
    numbers = (row[0] for row in rows)
    return tuple(
        Stored(number=number, event=event) for number, event in zip(numbers, events, strict=True)
    )


def finding_audit(before: Instant | None, limit: int) -> Talk[tuple[AuditEntry, ...]]:
    """Whole instants, so that the instant of the last entry is where the next page begins."""
    until = before if before is not None else Instant(2**62)
    sql = """SELECT body FROM audit WHERE at < ? AND at >= (
            SELECT MIN(at) FROM (
                SELECT at FROM audit WHERE at < ? ORDER BY at DESC LIMIT ?) newest)
        ORDER BY at DESC, version DESC, position DESC"""
    rows = yield Say(sql=sql, given=(until, until, max(1, limit)))
    return tuple(bodies.audit_from(row[0]) for row in rows)


def finding_dates(since: Instant, limit: int) -> Talk[tuple[KeptDate, ...]]:
    sql = "SELECT body FROM dates WHERE started_at >= ? ORDER BY started_at DESC, job DESC LIMIT ?"
    rows = yield Say(sql=sql, given=(since, max(0, limit)))
    return tuple(bodies.date_from(row[0]) for row in rows)
