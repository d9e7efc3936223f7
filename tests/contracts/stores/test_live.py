"""What every store promises about what is live."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from contracts.stores.given import (
    allocation,
    audit,
    cluster,
    ended,
    job,
    kept,
    launch_of,
    node,
    part,
    removed,
    site,
    soon,
    step,
    submitted,
    token,
    used,
    usual,
    write,
)
from contracts.stores.places import Place
from muster.model.errors import StaleSnapshotError
from muster.model.job import Dependency, DependencyKind, JobState
from muster.model.value import Instant, JobId, NodeId
from muster.stores.base import Batch, EventQuery, HistoryQuery, LiveState
from muster.stores.opening import WholeStore


def test_a_new_store_is_empty(store: WholeStore) -> None:
    assert store.load() == LiveState()


def test_everything_that_is_live_comes_back(place: Place) -> None:
    write(
        place.open(),
        next_job=JobId(12),
        events=(submitted(1), submitted(2)),
        jobs=(job(2, array=part(1, 1)), job(1, state=JobState.RUNNING)),
        allocations=(allocation(1),),
        steps=(step(1, 1), step(1), step(1, attempt_number=2), step(2)),
        clusters=(cluster(),),
        nodes=(node("n2"), node("n1", labels={"zone": "a"})),
        site=site(),
        used=(used("bob"), used("ann")),
        usual=(usual(9), usual(3)),
        tokens=(token("t2"), token("t1", revoked=True)),
        objects=(kept("b"), kept("a", 9)),
    )

    assert place.open().load() == LiveState(
        version=1,
        last_event=2,
        next_job=JobId(12),
        jobs=(job(1, state=JobState.RUNNING), job(2, array=part(1, 1))),
        allocations=(allocation(1),),
        steps=(step(1), step(1, 1)),
        clusters=(cluster(),),
        nodes=(node("n1", labels={"zone": "a"}), node("n2")),
        site=site(),
        used=(used("ann"), used("bob")),
        usual=(usual(9), usual(3)),
        tokens=(token("t1", revoked=True), token("t2")),
        objects=(kept("a", 9), kept("b")),
    )


def test_newer_values_replace_older_ones(store: WholeStore) -> None:
    write(store, jobs=(job(1),), nodes=(node("n1"),), used=(used(),), usual=(usual(1), usual(2)))

    write(
        store,
        jobs=(job(1, state=JobState.HELD),),
        nodes=(node("n1", reason="broken"),),
        used=(used(amount=8),),
        usual=(usual(4),),
    )

    state = store.load()
    assert state.jobs == (job(1, state=JobState.HELD),)
    assert state.nodes == (node("n1", reason="broken"),)
    assert state.used == (used(amount=8),)
    assert state.usual == (usual(4),)


def test_a_value_that_is_reported_twice_is_as_it_was_reported_last(store: WholeStore) -> None:
    write(store, jobs=(job(1), job(1, state=JobState.HELD)))

    assert store.load().jobs == (job(1, state=JobState.HELD),)


def test_what_is_not_reported_stays(store: WholeStore) -> None:
    write(store, site=site(), usual=(usual(3),), jobs=(job(1),))

    write(store, jobs=(job(2),))

    state = store.load()
    assert state.site == site()
    assert state.usual == (usual(3),)
    assert state.jobs == (job(1), job(2))


def test_what_leaves_is_gone(store: WholeStore) -> None:
    write(
        store,
        allocations=(allocation(1), allocation(2)),
        nodes=(node("n1"), node("n2")),
        objects=(kept("a"), kept("b")),
    )

    write(store, freed=(JobId(1),), gone=(NodeId("n2"),), removed=(removed("a"),))

    state = store.load()
    assert state.allocations == (allocation(2),)
    assert state.nodes == (node("n1"),)
    assert state.objects == (kept("b"),)


def test_an_ended_job_leaves_the_live_ones_and_enters_the_history(store: WholeStore) -> None:
    write(store, jobs=(job(1), job(2)))

    write(store, ended=(ended(1, at=100),))

    assert store.load().jobs == (job(2),)
    assert store.ended(HistoryQuery()).jobs == (ended(1, at=100),)


@pytest.mark.parametrize("version", [1, 3, 9])
def test_who_decided_on_another_version_writes_nothing(store: WholeStore, version: int) -> None:
    write(store, jobs=(job(1),))

    with pytest.raises(StaleSnapshotError) as refused:
        store.append(
            Batch(
                version=version,
                next_job=JobId(5),
                jobs=(job(2),),
                events=(submitted(2),),
                audit=(audit(1),),
            )
        )

    assert (refused.value.expected, refused.value.found) == (version - 1, 1)
    assert store.load() == LiveState(version=1, jobs=(job(1),))
    assert store.events(EventQuery()) == ()
    assert store.audit(before=None, limit=9) == ()


def test_of_two_writers_the_second_looks_again(place: Place) -> None:
    first, second = place.open(), place.open()
    write(first, jobs=(job(1),))

    with pytest.raises(StaleSnapshotError):
        second.append(Batch(version=1, next_job=JobId(2), jobs=(job(2),)))

    second.append(Batch(version=2, next_job=JobId(2), jobs=(job(2),)))
    assert first.load().jobs == (job(1), job(2))


def test_what_a_job_runs_is_kept_beside_it(store: WholeStore) -> None:
    write(store, launches=(launch_of(1),))

    assert store.launch(JobId(1)) == launch_of(1).launch
    assert store.launch(JobId(2)) is None


def test_what_many_jobs_run_is_read_at_once(store: WholeStore) -> None:
    write(store, launches=tuple(launch_of(number, f"echo {number}") for number in range(1, 1_202)))

    found = store.launches(tuple(JobId(number) for number in (*range(2, 1_300), 2)))

    assert found == {JobId(n): launch_of(n, f"echo {n}").launch for n in range(2, 1_202)}
    assert store.launches(()) == {}


def test_what_a_job_waits_for_comes_back(store: WholeStore) -> None:
    ok, ended = DependencyKind.AFTER_OK, DependencyKind.AFTER_ANY
    either = (Dependency(kind=ok, job=JobId(1)), Dependency(kind=ended, job=JobId(2), way=1))
    waiting = job(3, after=either)

    write(store, jobs=(waiting,))

    assert store.load().jobs == (waiting,)


def test_text_of_every_kind_survives(store: WholeStore) -> None:
    name = "naïve 'quoted' \"double\" %_ \\ 日本 \U0001f600"
    write(store, ended=(ended(1, at=5, name=name),), launches=(launch_of(1, "\0\x01\n" + name),))

    assert store.ended(HistoryQuery(name=name)).jobs == (ended(1, at=5, name=name),)
    assert store.launch(JobId(1)) == launch_of(1, "\0\x01\n" + name).launch


def test_large_batches_are_as_whole_as_small_ones(store: WholeStore) -> None:
    jobs = tuple(job(number) for number in range(1, 3_001))

    write(store, jobs=jobs, events=tuple(submitted(each.id) for each in jobs))

    state = store.load()
    assert state.jobs == jobs
    assert state.last_event == 3_000
    last = store.events(EventQuery(after=2_999))
    assert [stored.event.at for stored in last] == [Instant(3_000)]


def test_who_listens_is_woken_by_what_is_written(store: WholeStore) -> None:
    calls: list[int] = []
    store.listen(lambda: calls.append(1))
    before = len(calls)

    write(store, jobs=(job(1),))

    assert soon(lambda: len(calls) > before)


def test_many_read_while_one_writes_and_each_sees_whole_versions(store: WholeStore) -> None:
    write(store, events=(submitted(1),), jobs=(job(1),), launches=(launch_of(1),))
    is_over = Event()

    def look() -> int:
        looks = 0
        while not is_over.is_set() or not looks:
            state = store.load()
            assert state.jobs == (job(state.version),)
            assert len(store.ended(HistoryQuery(limit=1_000)).jobs) >= state.version - 1
            assert store.launch(JobId(1)) is not None
            looks += 1
        return looks

    with ThreadPoolExecutor(6) as pool:
        readers = [pool.submit(look) for _ in range(6)]
        for number in range(2, 60):
            write(store, jobs=(job(number),), ended=(ended(number - 1, at=number),))
        is_over.set()

    assert all(reader.result() > 0 for reader in readers)
