"""Large specs are kept once, however many jobs share them: the parts of an array, above all.

Rows of jobs, events and ended jobs that have such a spec name it in their column `spec`, by the
digest of what it says; their body holds only what is the job's own. Rows without a name there hold
their spec whole: small ones are written so, and older programs wrote all of them so.
"""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

from muster.model.event import Event, JobSubmitted, JobUpdated
from muster.model.history import Ended
from muster.model.job import Job, JobSpec
from muster.model.shared_spec import OwnSpec, are_parts_of_one, joined, own_spec, shared_spec
from muster.model.value import JobId, Value
from muster.stores import bodies, tables
from muster.stores.talking import Put, Row, Say, Talk, rows_of

T = TypeVar("T", bound=Value)
V = TypeVar("V")

SMALL_BYTES = 1_024
"""A body of up to this size holds its spec: naming that would take time and save little."""


class _OwnJob(Job, kw_only=True, omit_defaults=True):
    """A job with only what is its own of its spec."""

    spec: OwnSpec  # pyright: ignore[reportIncompatibleVariableOverride]


class _OwnEnded(Ended):
    job: _OwnJob  # pyright: ignore[reportIncompatibleVariableOverride]


class _OwnSubmitted(JobSubmitted, tag="job_submitted"):
    spec: OwnSpec  # pyright: ignore[reportIncompatibleVariableOverride]


class _OwnUpdated(JobUpdated, tag="job_updated"):
    spec: OwnSpec  # pyright: ignore[reportIncompatibleVariableOverride]


_own_job_from = msgspec.json.Decoder(_OwnJob).decode
_own_ended_from = msgspec.json.Decoder(_OwnEnded).decode
_own_event_from = msgspec.json.Decoder(_OwnSubmitted | _OwnUpdated).decode
_spec_from = msgspec.json.Decoder(JobSpec).decode


class SpecWriter:
    """The columns `body` and `spec` of what one batch writes, and the specs that they name."""

    def __init__(self) -> None:
        self._bodies: dict[str, bytes] = {}
        self._last: tuple[JobSpec, str] | None = None

    def job(self, job: Job) -> tuple[bytes, str | None]:
        body = bodies.encoded(job)
        if len(body) <= SMALL_BYTES:
            return body, None
        return bodies.encoded(_own_job(job)), self._name(job.spec)

    def ended(self, ended: Ended) -> tuple[bytes, str | None]:
        body = bodies.encoded(ended)
        if len(body) <= SMALL_BYTES:
            return body, None
        own = _as(_OwnEnded, ended, job=_own_job(ended.job))
        return bodies.encoded(own), self._name(ended.job.spec)

    def event(self, event: Event) -> tuple[bytes, str | None]:
        body = bodies.encoded(event)
        if len(body) <= SMALL_BYTES or not isinstance(event, (JobSubmitted, JobUpdated)):
            return body, None
        kind = _OwnSubmitted if isinstance(event, JobSubmitted) else _OwnUpdated
        return bodies.encoded(_as(kind, event, spec=own_spec(event.spec))), self._name(event.spec)

    def put(self) -> Put:
        """The specs that were named so far."""
        return Put(table=tables.SPECS, rows=list(self._bodies.items()))

    def _name(self, spec: JobSpec) -> str:
        # Parts of an array mostly come one after the other.
        if self._last is not None and are_parts_of_one(self._last[0], spec):
            return self._last[1]
        body = bodies.encoded(shared_spec(spec))
        name = blake2b(body, digest_size=16).hexdigest()
        self._bodies[name] = body
        self._last = (spec, name)
        return name


def _own_job(job: Job) -> _OwnJob:
    return _as(_OwnJob, job, spec=own_spec(job.spec))


def jobs_from(rows: Iterable[Row]) -> Talk[tuple[Job, ...]]:
    """The jobs of rows of `body` and `spec`."""
    return _read(rows, bodies.job_from, lambda body, spec: _whole_job(_own_job_from(body), spec))


def ended_from(rows: Iterable[Row]) -> Talk[tuple[Ended, ...]]:
    return _read(rows, bodies.ended_from, _whole_ended)


def events_from(rows: Iterable[Row]) -> Talk[tuple[Event, ...]]:
    return _read(rows, bodies.event_from, _whole_event)


def _read(
    rows: Iterable[Row],
    plain: Callable[[bytes], V],
    named: Callable[[bytes, JobSpec], V],
) -> Talk[tuple[V, ...]]:
    known = tuple(rows)
    names = sorted({name for _, name in known if name is not None})
    found = yield from rows_of("SELECT name, body FROM specs WHERE name IN (?)", names)
    specs = {name: _spec_from(body) for name, body in found}
    return tuple(plain(body) if name is None else named(body, specs[name]) for body, name in known)


def _whole_job(own: _OwnJob, shared: JobSpec) -> Job:
    return _as(Job, own, spec=joined(shared, own.spec))


def _whole_ended(body: bytes, shared: JobSpec) -> Ended:
    own = _own_ended_from(body)
    return _as(Ended, own, job=_whole_job(own.job, shared))


def _whole_event(body: bytes, shared: JobSpec) -> Event:
    own = _own_event_from(body)
    kind = JobSubmitted if isinstance(own, _OwnSubmitted) else JobUpdated
    return _as(kind, own, spec=joined(shared, own.spec))


def _as(kind: type[T], value: Value, **changes: Any) -> T:
    """The same fields in a value of another class, some of them changed."""
    return kind(**{**msgspec.structs.asdict(value), **changes})


_DROP_UNNAMED = """DELETE FROM specs WHERE name IN (?)
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.spec = specs.name)
    AND NOT EXISTS (SELECT 1 FROM history WHERE history.spec = specs.name)
    AND NOT EXISTS (SELECT 1 FROM events WHERE events.spec = specs.name)"""


def specs_named_by(jobs: Iterable[JobId]) -> Talk[list[str]]:
    """The specs that these ended jobs have, or once had."""
    keys = tuple(jobs)
    by_job = yield from rows_of("SELECT spec FROM history WHERE id IN (?)", keys)
    by_event = yield from rows_of("SELECT spec FROM events WHERE job IN (?)", keys)
    return sorted({row[0] for row in (*by_job, *by_event) if row[0] is not None})


def dropping_unnamed(names: Iterable[str]) -> Talk[None]:
    """Drop those of these specs that no row names any more.

    Every batch begins with this row of `meta`: none can name a spec while we look.
    """
    yield Say(sql="UPDATE meta SET version = version WHERE id = 1")
    yield from rows_of(_DROP_UNNAMED, names)
