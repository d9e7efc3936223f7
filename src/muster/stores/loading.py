"""Everything that is live, whole or what changed since a version."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from muster.model.errors import StaleSnapshotError
from muster.model.kept_object import KeptObject, ObjectKey
from muster.model.launch import Launch
from muster.model.placement import Allocation
from muster.model.steps import Step
from muster.model.value import JobId, replace
from muster.stores import bodies
from muster.stores.base import Batch, LiveState
from muster.stores.bodies import Touched
from muster.stores.specs import ended_from, events_from, jobs_from
from muster.stores.talking import AT_ONCE, Row, Say, Talk, marks, pieces, rows_of

T = TypeVar("T")

_LIVE_STEPS = """SELECT body FROM steps WHERE job IN (SELECT job FROM allocations)
    ORDER BY job, attempt, number"""


_OBJECT = "SELECT group_name, resource, namespace, name, version, body FROM objects"


def loading() -> Talk[LiveState]:
    """The state as of one moment, in the order of names and ids."""
    meta = yield Say(sql="SELECT version, next_job, next_event FROM meta WHERE id = 1")
    version, next_job, next_event = meta[0]
    jobs = yield Say(sql="SELECT body, spec FROM jobs ORDER BY id")
    live = yield from jobs_from(jobs)
    allocations = yield Say(sql="SELECT body FROM allocations ORDER BY job")
    steps = yield Say(sql=_LIVE_STEPS)
    clusters = yield Say(sql="SELECT body FROM clusters ORDER BY name")
    nodes = yield Say(sql="SELECT body FROM nodes ORDER BY id")
    site = yield Say(sql="SELECT body FROM site")
    used = yield Say(sql="SELECT body FROM used ORDER BY queue, user_name")
    usual = yield Say(sql="SELECT body FROM usual ORDER BY position")
    tokens = yield Say(sql="SELECT body FROM tokens ORDER BY id")
    objects = yield Say(sql=f"{_OBJECT} ORDER BY group_name, resource, namespace, name")
    held = _values(bodies.allocation_from, allocations)
    return LiveState(
        version=version,
        next_job=next_job,
        last_event=next_event - 1,
        jobs=live,
        allocations=held,
        steps=tuple(live_steps(_values(bodies.step_from, steps), held)),
        clusters=_values(bodies.cluster_from, clusters),
        nodes=_values(bodies.node_from, nodes),
        site=bodies.site_from(site[0][0]) if site else None,
        used=_values(bodies.used_from, used),
        usual=_values(bodies.usual_from, usual),
        tokens=_values(bodies.token_from, tokens),
        objects=tuple(map(_object_from, objects)),
    )


def live_steps(steps: Iterable[Step], held: Iterable[Allocation]) -> Iterator[Step]:
    """Those of the attempts that hold something."""
    live = {(each.job, each.attempt) for each in held}
    return (step for step in steps if (step.job, step.attempt) in live)


def following(version: int) -> Talk[tuple[Batch, ...]]:
    """One batch for everything after this version; names that left and came back have come."""
    meta = yield Say(sql="SELECT version, next_job FROM meta WHERE id = 1")
    now, next_job = meta[0]
    if now <= version:
        return ()
    rows = yield Say(
        sql="SELECT version, body FROM changes WHERE version > ? ORDER BY version", given=(version,)
    )
    if not rows or rows[0][0] != version + 1:
        raise StaleSnapshotError(expected=version, found=now)
    touched = _together(bodies.touched_from(body) for _, body in rows)
    batch = yield from _batch(touched, Batch(version=now, next_job=next_job))
    is_whole = len(batch.events) == touched.events and len(batch.ended) == len(touched.ended)
    if not is_whole:
        raise StaleSnapshotError(expected=version, found=now)
    return (batch,)


def launching(jobs: Iterable[JobId]) -> Talk[dict[JobId, Launch]]:
    sql = "SELECT job, body FROM launches WHERE job IN (?)"
    rows = yield from rows_of(sql, dict.fromkeys(jobs))
    return {JobId(job): bodies.launch_from(body) for job, body in rows}


def _together(all_touched: Iterable[Touched]) -> Touched:
    several = tuple(all_touched)
    return Touched(
        first_event=several[0].first_event,
        events=sum(each.events for each in several),
        jobs=_once(name for each in several for name in each.jobs),
        ended=_once(name for each in several for name in each.ended),
        allocations=_once(name for each in several for name in each.allocations),
        freed=_once(name for each in several for name in each.freed),
        steps=_once(name for each in several for name in each.steps),
        clusters=_once(name for each in several for name in each.clusters),
        nodes=_once(name for each in several for name in each.nodes),
        gone=_once(name for each in several for name in each.gone),
        used=_once(name for each in several for name in each.used),
        tokens=_once(name for each in several for name in each.tokens),
        objects=_once(key for each in several for key in each.objects),
        removed=_once(gone for each in several for gone in each.removed),
        requests=tuple(entry for each in several for entry in each.requests),
        site=any(each.site for each in several),
        usual=any(each.usual for each in several),
    )


def _once(names: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(names))


def _batch(touched: Touched, empty: Batch) -> Talk[Batch]:
    """The touched values as they are now; what is not there any more has left."""
    batch = yield from _jobs(touched, empty)
    batch = yield from _machines(touched, batch)
    batch = yield from _rules(touched, batch)
    batch = yield from _objects(touched, batch)
    last_event = touched.first_event + touched.events - 1
    rows = yield Say(
        sql="SELECT body, spec FROM events WHERE number BETWEEN ? AND ? ORDER BY number",
        given=(touched.first_event, last_event),
    )
    events = yield from events_from(rows)
    return replace(batch, events=events, audit=touched.requests)


def _jobs(touched: Touched, batch: Batch) -> Talk[Batch]:
    jobs = yield from rows_of("SELECT body, spec FROM jobs WHERE id IN (?)", touched.jobs)
    ended = yield from rows_of("SELECT body, spec FROM history WHERE id IN (?)", touched.ended)
    held = yield from rows_of("SELECT body FROM allocations WHERE job IN (?)", touched.allocations)
    steps = yield from _steps(touched)
    live = yield from jobs_from(jobs)
    over = yield from ended_from(ended)
    allocations = _values(bodies.allocation_from, held)
    there = {each.job for each in allocations}
    return replace(
        batch,
        jobs=live,
        ended=over,
        allocations=allocations,
        freed=tuple(job for job in touched.freed if job not in there),
        steps=_values(bodies.step_from, steps),
    )


def _steps(touched: Touched) -> Talk[list[Row]]:
    """Only those that were touched: an attempt may have had thousands."""
    numbers: dict[tuple[JobId, int], list[int]] = {}
    for job, attempt, number in touched.steps:
        numbers.setdefault((job, attempt), []).append(number)
    found: list[Row] = []
    for of_attempt, several in numbers.items():
        for some in pieces(several, AT_ONCE):
            which = f"job = ? AND attempt = ? AND number IN ({marks(len(some))})"
            sql = f"SELECT body FROM steps WHERE {which}"  # noqa: S608 - marks alone
            found += yield Say(sql=sql, given=(*of_attempt, *some))
    return found


def _machines(touched: Touched, batch: Batch) -> Talk[Batch]:
    clusters = yield from rows_of("SELECT body FROM clusters WHERE name IN (?)", touched.clusters)
    seen = yield from rows_of("SELECT body FROM nodes WHERE id IN (?)", touched.nodes)
    nodes = _values(bodies.node_from, seen)
    there = {each.id for each in nodes}
    return replace(
        batch,
        clusters=_values(bodies.cluster_from, clusters),
        nodes=nodes,
        gone=tuple(node for node in touched.gone if node not in there),
    )


def _rules(touched: Touched, batch: Batch) -> Talk[Batch]:
    queues = _once(queue for queue, _ in touched.used)
    rows = yield from rows_of("SELECT body FROM used WHERE queue IN (?)", queues)
    used = _values(bodies.used_from, rows)
    tokens = yield from rows_of("SELECT body FROM tokens WHERE id IN (?)", touched.tokens)
    site = (yield Say(sql="SELECT body FROM site")) if touched.site else []
    usual = (yield Say(sql="SELECT body FROM usual ORDER BY position")) if touched.usual else []
    wanted = set(touched.used)
    return replace(
        batch,
        used=tuple(each for each in used if (each.queue, each.user) in wanted),
        tokens=_values(bodies.token_from, tokens),
        site=bodies.site_from(site[0][0]) if site else None,
        usual=_values(bodies.usual_from, usual),
    )


def _objects(touched: Touched, batch: Batch) -> Talk[Batch]:
    found: list[KeptObject] = []
    where = "group_name = ? AND resource = ? AND namespace = ? AND name = ?"
    for key in touched.objects:
        given = (key.group, key.resource, key.namespace, key.name)
        rows = yield Say(sql=f"{_OBJECT} WHERE {where}", given=given)
        found += map(_object_from, rows)
    there = {each.key for each in found}
    gone = {each.key: each for each in touched.removed if each.key not in there}
    return replace(batch, objects=tuple(found), removed=tuple(gone.values()))


def _object_from(row: Row) -> KeptObject:
    group, resource, namespace, name, version, body = row
    key = ObjectKey(group=group, resource=resource, namespace=namespace, name=name)
    return KeptObject(key=key, version=version, body=body)


def _values(value_from: Callable[[bytes], T], rows: Iterable[Row]) -> tuple[T, ...]:
    return tuple(value_from(row[0]) for row in rows)
