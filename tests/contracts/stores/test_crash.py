"""What is there after a process was killed: all that was acknowledged, and nothing in halves."""

import pytest

from contracts.stores.child import EVENTS_EACH
from contracts.stores.children import child
from contracts.stores.given import allocation, audit, job, submitted, write
from contracts.stores.places import PostgresPlace, SqlitePlace
from muster.model.errors import StoreError
from muster.model.value import JobId
from muster.stores.base import EventQuery, HistoryQuery, LiveState
from muster.stores.opening import WholeStore


@pytest.mark.parametrize("lines", [1, 7, 40])
def test_kill_9_in_the_middle_of_writing_leaves_a_whole_beginning(
    database: SqlitePlace | PostgresPlace, lines: int
) -> None:
    with child("append", database.url) as writer:
        said = [writer.says() for _ in range(lines)]
        said += writer.kill()

    store = database.open()

    version = store.load().version
    assert version - int(said[-1]) in {0, 1}
    assert_whole(store, version)
    write(store, jobs=(job(version + 1),))


def assert_whole(store: WholeStore, version: int) -> None:
    state = store.load()
    assert state.jobs == (job(version),)
    assert state.allocations == (allocation(version),)
    assert state.last_event == EVENTS_EACH * version
    events = store.events(EventQuery(limit=100_000))
    assert [stored.number for stored in events] == list(range(1, EVENTS_EACH * version + 1))
    history = store.ended(HistoryQuery(limit=100_000))
    assert [each.job.id for each in history.jobs] == list(range(version - 1, 0, -1))


def test_a_batch_that_fails_half_way_leaves_nothing(
    database: SqlitePlace | PostgresPlace,
) -> None:
    store = database.open()
    too_large_for_a_column = 2**70

    with pytest.raises(StoreError, match="nothing was written"):
        write(
            store,
            next_job=JobId(9),
            jobs=(job(1),),
            events=(submitted(1),),
            audit=(audit(1), audit(too_large_for_a_column)),
        )

    assert store.load() == LiveState()
    assert store.events(EventQuery()) == ()
    assert store.audit(before=None, limit=9) == ()
    write(store, jobs=(job(1),), events=(submitted(1),))
    assert [stored.number for stored in store.events(EventQuery())] == [1]


def test_text_that_is_no_text_is_refused_and_harms_nobody(
    database: SqlitePlace | PostgresPlace,
) -> None:
    store = database.open()

    with pytest.raises(StoreError, match="nothing was written"):
        write(store, jobs=(job(1), job(2, name="half of a letter: \ud800")))

    assert store.load() == LiveState()
    write(store, jobs=(job(1),))
