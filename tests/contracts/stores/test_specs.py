"""What every store promises about specs that many jobs share: each is kept once."""

from itertools import pairwise
from typing import Any

from contracts.stores.given import ANN, ended, part, spec, write
from contracts.stores.places import SqlitePlace, sqlite_file
from muster.model.event import JobSubmitted, JobUpdated
from muster.model.history import Ended
from muster.model.job import Dependency, DependencyKind, Job, JobSpec, JobState
from muster.model.value import Instant, JobId, replace
from muster.stores.base import Batch, EventQuery, HistoryQuery
from muster.stores.opening import WholeStore

PARTS = 20
LARGE = {f"label-{each}": "v" * 4_000 for each in range(15)}
LABELS_BYTES = 60_000


def test_the_parts_of_a_large_array_come_back_as_they_were(store: WholeStore) -> None:
    batch = submitted_array(store)

    assert store.load().jobs == batch.jobs
    assert tuple(each.event for each in store.events(EventQuery())) == batch.events
    (followed,) = store.since(0)
    assert (followed.jobs, followed.events) == (batch.jobs, batch.events)


def test_parts_that_end_and_parts_that_were_changed_come_back_too(store: WholeStore) -> None:
    jobs = submitted_array(store).jobs
    changed = replace(jobs[1], spec=replace(jobs[1].spec, priority=7))
    update = JobUpdated(at=Instant(9), job=changed.id, spec=changed.spec, by=ANN)
    over = Ended(
        job=replace(jobs[0], state=JobState.COMPLETED), started_at=None, ended_at=Instant(9)
    )
    write(store, jobs=(changed,), ended=(over,), events=(update,))

    assert store.load().jobs == (changed, *jobs[2:])
    assert store.ended(HistoryQuery()).jobs == (over,)
    assert store.events(EventQuery(job=changed.id))[-1].event == update
    (followed,) = store.since(1)
    assert (followed.jobs, followed.ended) == ((changed,), (over,))


def test_conditions_of_one_part_alone_stay_with_it(store: WholeStore) -> None:
    common = tuple(_after(each) for each in range(100, 200))
    specs = [
        spec(array=part(1, each), after=(*common, _after(each, part=each)), labels=LARGE)
        for each in range(3)
    ]
    write(store, jobs=tuple(_job(number, each) for number, each in enumerate(specs, 1)))

    assert [job.spec for job in store.load().jobs] == specs


def test_parts_share_their_spec_again_after_a_restart(sqlite: SqlitePlace) -> None:
    submitted_array(sqlite.open())

    jobs = sqlite.open().load().jobs

    assert all(one.spec.labels is other.spec.labels for one, other in pairwise(jobs))


def test_the_spec_of_a_large_array_is_written_once(sqlite: SqlitePlace) -> None:
    store = sqlite.open()
    jobs = submitted_array(store).jobs
    write(store, jobs=tuple(replace(job, state=JobState.STARTING) for job in jobs))
    write(store, ended=tuple(_over(job) for job in jobs))

    assert kept_specs(sqlite) == 1
    sqlite.close()
    assert sqlite.path.stat().st_size < 5 * LABELS_BYTES


def test_a_small_spec_stays_with_its_job(sqlite: SqlitePlace) -> None:
    write(sqlite.open(), jobs=(_job(1, spec()), _job(2, spec(array=part(2, 0)))))

    assert kept_specs(sqlite) == 0


def test_a_spec_goes_with_the_last_job_that_has_it(sqlite: SqlitePlace) -> None:
    store = sqlite.open()
    jobs = submitted_array(store, parts=3).jobs
    write(store, ended=(_over(jobs[0], at=10), _over(jobs[1], at=20)))
    store.forget(Instant(15), limit=10)
    after_the_first = kept_specs(sqlite)
    store.forget(Instant(25), limit=10)
    after_the_second = kept_specs(sqlite)
    write(store, ended=(_over(jobs[2], at=30),))
    store.forget(Instant(35), limit=10)

    assert (after_the_first, after_the_second, kept_specs(sqlite)) == (1, 1, 0)


def test_a_spec_that_a_job_had_before_goes_with_that_job(sqlite: SqlitePlace) -> None:
    store = sqlite.open()
    (job,) = submitted_array(store, parts=1).jobs
    changed = replace(job, spec=replace(job.spec, priority=7))
    update = JobUpdated(at=Instant(9), job=job.id, spec=changed.spec, by=ANN)
    write(store, events=(update,), jobs=(changed,))
    before = kept_specs(sqlite)
    write(store, ended=(_over(changed, at=10), ended(9, at=11)))

    store.forget(Instant(15), limit=10)

    assert (before, kept_specs(sqlite)) == (2, 0)


def test_what_a_newer_job_shares_outlives_the_older(store: WholeStore) -> None:
    (older,) = submitted_array(store, parts=1).jobs
    write(store, ended=(_over(older, at=10),))
    newer = replace(older, id=JobId(7))
    write(store, jobs=(newer,), events=(_submitted(newer),))

    store.forget(Instant(15), limit=10)

    assert store.load().jobs == (newer,)
    assert [each.event for each in store.events(EventQuery())] == [_submitted(newer)]


def submitted_array(store: WholeStore, *, parts: int = PARTS) -> Batch:
    of_all = spec(labels=LARGE)
    jobs = tuple(
        _job(number, replace(of_all, array=part(1, number))) for number in range(1, parts + 1)
    )
    return write(store, jobs=jobs, events=tuple(map(_submitted, jobs)))


def _job(number: int, asked: JobSpec) -> Job:
    return Job(id=JobId(number), spec=asked, submitted_at=Instant(1))


def _submitted(job: Job) -> JobSubmitted:
    return JobSubmitted(at=Instant(1), job=job.id, spec=job.spec)


def _over(job: Job, *, at: int = 9) -> Ended:
    ended_at = Instant(at)
    return Ended(job=replace(job, state=JobState.COMPLETED), started_at=None, ended_at=ended_at)


def _after(job: int, **more: Any) -> Dependency:
    return Dependency(kind=DependencyKind.AFTER_ANY, job=JobId(job), **more)


def kept_specs(place: SqlitePlace) -> int:
    with sqlite_file(place.path) as file:
        rows = file.execute("SELECT count(*) FROM specs").fetchall()
    return int(rows[0][0])
