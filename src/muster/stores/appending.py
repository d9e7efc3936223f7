"""What one batch writes: the events, the values they led to, and which rows that touched."""

from typing import Any

from muster.model.errors import StaleSnapshotError
from muster.model.history import Attempt, Ended
from muster.model.job import Job
from muster.model.kept_object import KeptObject, ObjectKey
from muster.model.queue import lineage
from muster.model.steps import Step
from muster.stores import tables
from muster.stores.base import Batch
from muster.stores.bodies import Touched, encoded, job_of, kind_of, requests_in
from muster.stores.specs import SpecWriter
from muster.stores.talking import Drop, Put, Say, Talk

CHANGES_KEPT = 10_000
"""A process that follows may be so many versions behind; further, it loads everything again."""

_NEXT_VERSION = """UPDATE meta SET version = ?, next_job = ?, next_event = next_event + ?
    WHERE id = 1 AND version = ? RETURNING next_event"""

Rows = list[tuple[Any, ...]]


def appending(batch: Batch) -> Talk[None]:
    """Take the next version, or find that another process did; then write everything."""
    before = batch.version - 1
    given = (batch.version, batch.next_job, len(batch.events), before)
    found = yield Say(sql=_NEXT_VERSION, given=given)
    if not found:
        meta = yield Say(sql="SELECT version FROM meta WHERE id = 1")
        raise StaleSnapshotError(expected=before, found=meta[0][0])
    first_event: int = found[0][0] - len(batch.events)
    for put in _puts(batch, first_event):
        if put.rows:
            yield put
    for drop in _drops(batch):
        if drop.rows:
            yield drop
    yield from _usual(batch)
    if batch.version % 1_000 == 0:
        yield Say(
            sql="DELETE FROM changes WHERE version <= ?", given=(batch.version - CHANGES_KEPT,)
        )


def _puts(batch: Batch, first_event: int) -> tuple[Put, ...]:
    specs = SpecWriter()
    return (
        Put(table=tables.EVENTS, rows=_event_rows(batch, first_event, specs)),
        Put(table=tables.CHANGES, rows=[(batch.version, encoded(touched(batch, first_event)))]),
        Put(table=tables.JOBS, rows=[_job_row(job, specs) for job in batch.jobs]),
        Put(
            table=tables.ALLOCATIONS, rows=[(each.job, encoded(each)) for each in batch.allocations]
        ),
        Put(
            table=tables.LAUNCHES,
            rows=[(each.job, encoded(each.launch)) for each in batch.launches],
        ),
        Put(table=tables.ATTEMPTS, rows=[_attempt_row(each) for each in batch.attempts]),
        Put(table=tables.STEPS, rows=[_step_row(each) for each in batch.steps]),
        Put(table=tables.HISTORY_NODES, rows=_node_rows(batch)),
        Put(table=tables.HISTORY, rows=[_ended_row(each, specs) for each in batch.ended]),
        # Only now all that name a spec are known.
        specs.put(),
        Put(table=tables.HISTORY_QUEUES, rows=_queue_rows(batch)),
        Put(table=tables.CLUSTERS, rows=[(each.name, encoded(each)) for each in batch.clusters]),
        Put(table=tables.NODES, rows=[(each.id, encoded(each)) for each in batch.nodes]),
        Put(table=tables.SITE, rows=[] if batch.site is None else [(1, encoded(batch.site))]),
        Put(
            table=tables.USED, rows=[(each.queue, each.user, encoded(each)) for each in batch.used]
        ),
        Put(table=tables.TOKENS, rows=[(each.id, encoded(each)) for each in batch.tokens]),
        Put(table=tables.AUDIT, rows=_audit_rows(batch)),
        Put(table=tables.OBJECTS, rows=[_object_row(each) for each in batch.objects]),
        Put(
            table=tables.DATES,
            rows=[(each.job, each.started_at, encoded(each)) for each in batch.dates],
        ),
    )


def _event_rows(batch: Batch, first_event: int, specs: SpecWriter) -> Rows:
    return [
        (number, batch.version, event.at, job_of(event), kind_of(event), *specs.event(event))
        for number, event in enumerate(batch.events, first_event)
    ]


def touched(batch: Batch, first_event: int) -> Touched:
    """The names of all that this batch changes."""
    return Touched(
        first_event=first_event,
        events=len(batch.events),
        jobs=tuple(each.id for each in batch.jobs),
        ended=tuple(each.job.id for each in batch.ended),
        allocations=tuple(each.job for each in batch.allocations),
        freed=batch.freed,
        steps=tuple((each.job, each.attempt, each.number) for each in batch.steps),
        clusters=tuple(each.name for each in batch.clusters),
        nodes=tuple(each.id for each in batch.nodes),
        gone=batch.gone,
        used=tuple((each.queue, each.user) for each in batch.used),
        tokens=tuple(each.id for each in batch.tokens),
        objects=tuple(each.key for each in batch.objects),
        removed=batch.removed,
        requests=requests_in(batch.audit),
        site=batch.site is not None,
        usual=bool(batch.usual),
    )


def _job_row(job: Job, specs: SpecWriter) -> tuple[Any, ...]:
    return job.id, _array(job), *specs.job(job)


def _array(job: Job) -> int | None:
    return None if job.spec.array is None else job.spec.array.array


def _attempt_row(attempt: Attempt) -> tuple[Any, ...]:
    return attempt.job, attempt.number, encoded(attempt)


def _step_row(step: Step) -> tuple[Any, ...]:
    return step.job, step.attempt, step.number, encoded(step)


def _node_rows(batch: Batch) -> Rows:
    return [(node, each.job) for each in batch.attempts for node in each.nodes]


def _ended_row(ended: Ended, specs: SpecWriter) -> tuple[Any, ...]:
    job, spec = ended.job, ended.job.spec
    return (
        job.id,
        _array(job),
        spec.user,
        spec.queue,
        spec.name,
        str(job.state),
        job.submitted_at,
        ended.started_at,
        ended.ended_at,
        *specs.ended(ended),
    )


def _queue_rows(batch: Batch) -> Rows:
    return [
        (queue, ended.ended_at, ended.job.id)
        for ended in batch.ended
        for queue in lineage(ended.job.spec.queue)
    ]


def _audit_rows(batch: Batch) -> Rows:
    return [
        (batch.version, position, entry.at, encoded(entry))
        for position, entry in enumerate(batch.audit)
    ]


def _object_row(each: KeptObject) -> tuple[Any, ...]:
    return *_place(each.key), each.version, each.body


def _place(key: ObjectKey) -> tuple[str, str, str, str]:
    return key.group, key.resource, key.namespace, key.name


def _drops(batch: Batch) -> tuple[Drop, ...]:
    ended = [(each.job.id,) for each in batch.ended]
    return (
        Drop(table=tables.JOBS, columns=("id",), rows=list(ended)),
        Drop(table=tables.ALLOCATIONS, columns=("job",), rows=[(job,) for job in batch.freed]),
        Drop(table=tables.NODES, columns=("id",), rows=[(node,) for node in batch.gone]),
        Drop(
            table=tables.OBJECTS,
            columns=tables.OBJECTS.key,
            rows=[_place(each.key) for each in batch.removed],
        ),
    )


def _usual(batch: Batch) -> Talk[None]:
    """They are few and change together: all of them are written again."""
    if not batch.usual:
        return
    yield Say(sql="DELETE FROM usual")
    yield Put(
        table=tables.USUAL,
        rows=[(position, encoded(each)) for position, each in enumerate(batch.usual)],
    )
