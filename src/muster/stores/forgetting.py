"""Old jobs leave the history a few at a time, so that the live side hardly waits for it."""

from typing import Any

from muster.model.queue import lineage
from muster.model.value import Instant, QueuePath
from muster.stores import tables
from muster.stores.specs import dropping_unnamed, specs_named_by
from muster.stores.talking import Drop, Row, Say, Talk, rows_of

PIECE = 100
"""So many jobs are forgotten in one transaction."""

_OLDEST = """SELECT id, array_id, queue, ended_at FROM history
    WHERE ended_at < ? ORDER BY ended_at, id LIMIT ?"""

_OLDEST_OF_NO_JOB = """DELETE FROM events WHERE number IN (
    SELECT number FROM events WHERE job IS NULL AND at < ? ORDER BY at, number LIMIT ?)"""

_STILL_THERE = """SELECT id FROM {table} WHERE id IN (?)"""
_ARRAY_STILL_THERE = """SELECT DISTINCT array_id FROM {table} WHERE array_id IN (?)"""


def forgetting(before: Instant, limit: int) -> Talk[int]:
    """Drop the oldest jobs that ended before, at most `limit`; how many there were."""
    rows = yield Say(sql=_OLDEST, given=(before, limit))
    yield Say(sql=_OLDEST_OF_NO_JOB, given=(before, PIECE))
    if not rows:
        return 0
    jobs = [(row[0],) for row in rows]
    specs = yield from specs_named_by(row[0] for row in rows)
    yield Drop(table=tables.HISTORY, columns=("id",), rows=jobs)
    yield Drop(
        table=tables.HISTORY_QUEUES,
        columns=("queue", "ended_at", "job"),
        rows=[
            (queue, ended_at, job)
            for job, _, path, ended_at in rows
            for queue in lineage(QueuePath(path))
        ],
    )
    yield Drop(table=tables.HISTORY_NODES, columns=("job",), rows=jobs)
    yield Drop(table=tables.ATTEMPTS, columns=("job",), rows=jobs)
    yield Drop(table=tables.STEPS, columns=("job",), rows=jobs)
    yield Drop(table=tables.DATES, columns=("job",), rows=jobs)
    yield Drop(table=tables.EVENTS, columns=("job",), rows=jobs)
    if specs:
        yield from dropping_unnamed(specs)
    launches = yield from _unused_launches(rows)
    if launches:
        yield Drop(table=tables.LAUNCHES, columns=("job",), rows=launches)
    return len(rows)


def _unused_launches(rows: list[Row]) -> Talk[list[tuple[Any, ...]]]:
    """The launch of an array stays until the last of its jobs is forgotten."""
    keys = sorted({key for job, array, _, _ in rows for key in (job, array) if key is not None})
    used: set[int] = set()
    for sql in (_STILL_THERE, _ARRAY_STILL_THERE):
        for table in ("jobs", "history"):
            found = yield from rows_of(sql.format(table=table), keys)
            used.update(row[0] for row in found)
    return [(key,) for key in keys if key not in used]
